"""A race at a local table, in virtual time: the seat with the least charged time is asked next.

Times are priced or measured. Priced: an answer of a bot costs one millisecond, or the time that the bot declares by yielding
`Thought(ms)` before it. The work that the bot does in functions with a price comes on top (`WorkMeter`). So the machine
does not matter, and with a seed a match is the same each time. Measured: a step costs the real time in which the bot makes it.
A thought takes its time like an answer: a bot that thinks without end is not asked any more when the round is over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

from seatwise.kits.game_kit import RaceMethod, StepReader
from seatwise.kits.race_steps import SendRate, StepKind, Thought, kind_of_step
from seatwise_referee.game import RaceGame, Seat

US_PER_MS: Final = 1000
COST_MS: Final = 1
"""The cost of an answer without a declared thought, and the least cost of a thought."""


@dataclass(slots=True)
class Builder:
    """One seat, and the steps that its bot yields."""

    seat: Seat
    generator: Any
    reader: StepReader
    rate: SendRate = field(default_factory=SendRate)
    unsaid: dict[StepKind, Any] = field(default_factory=dict)
    """The newest layout and offer that are not yet sent, because they came too soon after the last ones."""
    owed_us: int = 0
    """The part of its costs that is not charged yet: work since it was asked, and what is less than a millisecond."""
    has_thought: bool = False
    """Whether a thought has already paid for its next answer."""
    is_done: bool = False


class LocalRace:
    """One round. `ask` returns a builder's next step, or `None` at its end. `submit` sends a move to the referee."""

    def __init__(
        self,
        rules: RaceGame[Any, Any, Any],
        method: RaceMethod,
        builders: list[Builder],
        ask: Callable[[Builder], Any],
        submit: Callable[[Seat, Any, int], None],
        *,
        is_measured: bool = False,
    ) -> None:
        self._rules = rules
        self._last_move = method.last_move
        self._ask = ask
        self._submit = submit
        self._is_measured = is_measured
        self._events: list[tuple[int, Seat, int, Any]] = []
        self._count = 0
        self._builders = {builder.seat: builder for builder in builders}
        for builder in builders:
            self._ask_builder(builder, 0)

    @property
    def next_ms(self) -> int | None:
        """The time at which the next seat is due, from the start of the round; `None` if no seat is."""
        return self._events[0][0] if self._events else None

    def run_next_step(self) -> None:
        """Send the move of the seat that is due, or end its thought."""
        at_ms, seat, _, move = heappop(self._events)
        builder = self._builders[seat]
        if move is None:
            self._send_pending(builder, at_ms)
            return
        if not isinstance(move, Thought):
            self._send_move(builder, move, at_ms)
        if not builder.is_done:
            self._ask_builder(builder, at_ms)

    def _ask_builder(self, builder: Builder, at_ms: int) -> None:
        """Ask the bot. Its seat is due when the cost of its step has passed."""
        step = self._ask(builder)
        builder.is_done = step is None or (not isinstance(step, Thought) and self._rules.is_call(step))
        if not self._is_measured:
            builder.owed_us += US_PER_MS * _price_ms(builder, step)
        cost_ms, builder.owed_us = divmod(builder.owed_us, US_PER_MS)
        self._push_event(at_ms + cost_ms, builder.seat, self._last_move if step is None else step)

    def _push_event(self, at_ms: int, seat: Seat, move: Any) -> None:
        self._count += 1
        heappush(self._events, (at_ms, seat, self._count, move))

    def _send_move(self, builder: Builder, move: Any, at_ms: int) -> None:
        kind = kind_of_step(self._rules, move)
        if kind is StepKind.CALL:
            self._send_pending(builder, at_ms)
            self._submit(builder.seat, move, at_ms)
            return
        is_waiting = bool(builder.unsaid)
        builder.unsaid[kind] = move
        ready_ms = builder.rate.ready_ms(at_ms)
        if ready_ms <= at_ms:
            self._send_pending(builder, at_ms)
        elif not is_waiting:
            self._push_event(int(ready_ms) + 1, builder.seat, None)

    def _send_pending(self, builder: Builder, at_ms: int) -> None:
        """Send the layout first, because an offer may end the round."""
        for kind in sorted(builder.unsaid):
            builder.rate.count_layout(at_ms)
            self._submit(builder.seat, builder.unsaid.pop(kind), at_ms)


def _price_ms(builder: Builder, step: Any) -> int:
    """Return the price of a step: a thought costs what it declares, an answer after a thought nothing."""
    is_paid, builder.has_thought = builder.has_thought, isinstance(step, Thought)
    if isinstance(step, Thought):
        return max(step.ms, COST_MS)
    return 0 if is_paid else COST_MS


def close_generator(builder: Builder, wait: Callable[[Any], Any]) -> None:
    """Close the bot's generator, because the round is over."""
    with suppress(Exception):  # it had its say
        if hasattr(builder.generator, "aclose"):
            wait(builder.generator.aclose())
        else:
            builder.generator.close()
