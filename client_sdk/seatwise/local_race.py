"""A race at a local table, in virtual time: the seat with the least charged time is asked next.

What a bot yields costs a millisecond, or what it declares by yielding `Thought(ms)` before. So nobody's
machine matters, and with a seed a match is the same each time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

from seatwise.building import Step, Steps, Thought
from seatwise.rate import Rate
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import Call, Lay, OfferEnd

COST_MS: Final = 1
"""Of an answer for which nothing else was declared."""

LAST: Final = OfferEnd(on=True)
"""Who builds no more stands in nobody's way."""


@dataclass(slots=True)
class Builder:
    """One seat, and what its bot yields."""

    seat: Seat
    generator: Any
    steps: Steps
    rate: Rate = field(default_factory=Rate)
    unsaid: dict[type, Any] = field(default_factory=dict)
    """The newest layout and offer that were too quick after the last."""
    is_done: bool = False


class LocalRace:
    """One round. `ask` gives a builder's next answer, or `None` at its end; `submit` and `tick` the referee's word."""

    def __init__(
        self,
        builders: list[Builder],
        ask: Callable[[Builder], Step | None],
        submit: Callable[[Seat, Any, int], None],
    ) -> None:
        self._ask = ask
        self._submit = submit
        self._events: list[tuple[int, Seat, int, Any]] = []
        self._count = 0
        self._builders = {builder.seat: builder for builder in builders}
        for builder in builders:
            self._go_on(builder, 0)

    @property
    def next_ms(self) -> int | None:
        """When the next seat is due, from the start of the round; `None` when nothing is to come."""
        return self._events[0][0] if self._events else None

    def step(self) -> None:
        """The seat that is due says what it has to say."""
        at_ms, seat, _, move = heappop(self._events)
        builder = self._builders[seat]
        if move is None:
            self._flush(builder, at_ms)
            return
        self._say(builder, move, at_ms)
        if not builder.is_done:
            self._go_on(builder, at_ms)

    def _go_on(self, builder: Builder, at_ms: int) -> None:
        """The bot is asked, and is due when it has thought."""
        cost_ms = 0
        while isinstance(step := self._ask(builder), Thought):
            cost_ms += step.ms
        builder.is_done = step is None or isinstance(step, Call)
        self._push(at_ms + (cost_ms or COST_MS), builder.seat, LAST if step is None else step)

    def _push(self, at_ms: int, seat: Seat, move: Any) -> None:
        self._count += 1
        heappush(self._events, (at_ms, seat, self._count, move))

    def _say(self, builder: Builder, move: Any, at_ms: int) -> None:
        if isinstance(move, Call):
            self._flush(builder, at_ms)
            self._submit(builder.seat, move, at_ms)
            return
        is_waiting = bool(builder.unsaid)
        builder.unsaid[type(move)] = move
        ready_ms = builder.rate.ready_ms(at_ms)
        if ready_ms <= at_ms:
            self._flush(builder, at_ms)
        elif not is_waiting:
            self._push(int(ready_ms) + 1, builder.seat, None)

    def _flush(self, builder: Builder, at_ms: int) -> None:
        """First the layout, for an offer may end the round."""
        for kind in (Lay, OfferEnd):
            if kind in builder.unsaid:
                builder.rate.spend(at_ms)
                self._submit(builder.seat, builder.unsaid.pop(kind), at_ms)


def close(builder: Builder, wait: Callable[[Any], Any]) -> None:
    """The round is over: the bot's generator is told."""
    with suppress(Exception):  # it had its say
        if hasattr(builder.generator, "aclose"):
            wait(builder.generator.aclose())
        else:
            builder.generator.close()
