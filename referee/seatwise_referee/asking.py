"""The clocks of the open prompt: who is asked, since when, and what an answer would be charged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from seatwise_referee.clock import TimeControl
from seatwise_referee.game import Json, Prompt, Seat


@dataclass(slots=True)
class _Asked:
    """The clock of one seat."""

    put_ms: int
    latest_ms: int
    """When the seat's time begins if nobody says sooner that it was handed the prompt."""
    is_awaited: bool = False
    """Its bot has yet to come back, and no time of the seat runs before."""
    handed_ms: int | None = None
    allowance_ms: int | None = None
    """`None` as long as its round trip is not known."""


class Asking:
    """One prompt at a time, put by one owner of the match."""

    def __init__(self, time_control: TimeControl) -> None:
        self._time_control = time_control
        self._asked: dict[Seat, _Asked] = {}
        self._base_ms = 0
        self._standstills: list[tuple[int, int]] = []
        """Since the prompt was put, each from when until when."""
        self._put = (0, 0)
        """The epoch and the number of the prompt that `_asked` is about."""
        self._away: dict[Seat, int] = {}
        """Seats that lost their link through a fault of ours, each with when it has to be back."""
        self._is_race = False

    def __contains__(self, seat: Seat) -> bool:
        return seat in self._asked

    def __iter__(self) -> Iterator[Seat]:
        return iter(sorted(self._asked))

    def is_put(self, epoch: int, prompt: Prompt | None) -> bool:
        """Whether no prompt is open, or this one has been put by the present owner."""
        return prompt is None or self._put == (epoch, prompt.number)

    def put(self, epoch: int, prompt: Prompt, now: int, base_ms: int = 0) -> None:
        """A new prompt is open. In a race that is taken over, charges go on from `base_ms`."""
        self._put = (epoch, prompt.number)
        self._base_ms = base_ms
        self._standstills = []
        self._is_race = prompt.race
        self._asked = {seat: self._newly_asked(seat, now) for seat in prompt.seats}

    def _newly_asked(self, seat: Seat, now: int) -> _Asked:
        latest_ms = now + self._time_control.handover_ms
        back_by_ms = 0 if self._is_race else self._away.get(seat, 0)
        return _Asked(now, max(latest_ms, back_by_ms), back_by_ms > now)

    def expect(self, seat: Seat, by_ms: int) -> None:
        """The seat lost its link through a fault of ours: until it is back, or until then, none of its time runs.

        It is asked again in full. Not so in a race: there all build meanwhile, and one would have time for nothing.
        """
        self._away[seat] = by_ms
        asked = self._asked.get(seat)
        if asked is not None and not self._is_race:
            self._asked[seat] = _Asked(asked.put_ms, max(asked.latest_ms, by_ms), is_awaited=True)

    @property
    def away(self) -> frozenset[Seat]:
        """Seats that have yet to come back."""
        return frozenset(self._away)

    def back(self, seat: Seat, now: int) -> bool:
        """The seat's bot is here again: from now on it is as any other. False if that makes no difference."""
        self._away.pop(seat, None)
        asked = self._asked.get(seat)
        if asked is None or not asked.is_awaited:
            return False
        asked.is_awaited = False
        asked.latest_ms = min(asked.latest_ms, now + self._time_control.handover_ms)
        return True

    def keep(self, seats: Iterable[Seat]) -> None:
        """Only these are still asked."""
        kept = frozenset(seats)
        self._asked = {seat: asked for seat, asked in self._asked.items() if seat in kept}

    def hand(self, seat: Seat, now: int, allowance_ms: int | None) -> bool:
        """The prompt is with the transport: the seat's time runs. False if it ran already, or does not yet."""
        asked = self._asked[seat]
        if asked.handed_ms is not None or asked.is_awaited:
            return False
        asked.handed_ms = min(max(now, asked.put_ms), asked.latest_ms)
        asked.allowance_ms = None if allowance_ms is None else self._capped(allowance_ms)
        return True

    def measured(self, seat: Seat, allowance_ms: int) -> bool:
        """The round trip of a seat that was handed the prompt before it was known. False if that makes no difference."""
        asked = self._asked[seat]
        if asked.handed_ms is None or asked.allowance_ms is not None:
            return False
        asked.allowance_ms = self._capped(allowance_ms)
        return True

    def _capped(self, allowance_ms: int) -> int:
        return max(0, min(allowance_ms, self._time_control.allowance_cap_ms))

    def stood_still(self, ms: int, now: int) -> bool:
        """Whether any clock ran in the `ms` before `now`."""
        return any(min(ms, now - self.started(seat, now)) > 0 for seat in self._asked)

    def freeze(self, ms: int, now: int) -> None:
        """Takes the `ms` before `now` off every charge in which they fall, be it of what came before."""
        self._standstills.append((now - ms, now))

    def started(self, seat: Seat, now: int) -> int:
        """When the seat's time began: at the hand-over, or at the latest `handover_ms` after the put.

        Not before its bot is back, if its link was lost through a fault of ours.
        Who guesses the prompt and answers before it is put has used no time.
        """
        return min(now, self._start(self._asked[seat]))

    def allowance_ms(self, seat: Seat) -> int:
        """What is taken off for the network, as far as that is known."""
        return self._asked[seat].allowance_ms or 0

    def charge(self, seat: Seat, now: int) -> int:
        """What an answer that arrives now costs."""
        return self._base_ms + max(0, self._used_ms(seat, now) - self.allowance_ms(seat))

    def least_charge(self, seat: Seat, now: int) -> int:
        """The same, whatever allowance the seat is still to get."""
        return self._base_ms + max(0, self._used_ms(seat, now) - self._most_allowance_ms(seat))

    def times(self, seat: Seat, now: int) -> dict[str, Json]:
        """As journal entries tell them."""
        return {
            "asked_ms": self.started(seat, now),
            "allowance_ms": self.allowance_ms(seat),
            "charged_ms": self.charge(seat, now),
        }

    def free_left(self, pace: str, seat: Seat, now: int) -> int:
        """The seat's free time for this prompt, as it is told; never negative."""
        return max(0, self._time_control.free_ms[pace] - self._base_ms - max(0, self._used_ms(seat, now)))

    def deadline(self, seat: Seat, allowed_ms: int) -> int:
        """The last moment at which an answer is charged no more than `allowed_ms`."""
        return self._when_used(seat, allowed_ms - self._base_ms + self.allowance_ms(seat))

    def last_deadline(self, seat: Seat, allowed_ms: int) -> int:
        """The same, whatever allowance the seat is still to get."""
        return self._when_used(seat, allowed_ms - self._base_ms + self._most_allowance_ms(seat))

    def _most_allowance_ms(self, seat: Seat) -> int:
        known_ms = self._asked[seat].allowance_ms
        return self._time_control.allowance_cap_ms if known_ms is None else known_ms

    def _used_ms(self, seat: Seat, now: int) -> int:
        started_ms = self.started(seat, now)
        return now - started_ms - self._stood_still_ms(started_ms, now)

    def _when_used(self, seat: Seat, ms: int) -> int:
        """When the seat has used so much; all standstills so far are over."""
        started_ms = self._start(self._asked[seat])
        if not self._standstills:
            return started_ms + ms
        return (
            started_ms
            + ms
            + sum(max(0, until - max(started_ms, since)) for since, until in self._standstills)
        )

    def _stood_still_ms(self, started_ms: int, now: int) -> int:
        if not self._standstills:  # nearly always
            return 0
        return sum(max(0, min(now, until) - max(started_ms, since)) for since, until in self._standstills)

    @staticmethod
    def _start(asked: _Asked) -> int:
        return asked.latest_ms if asked.handed_ms is None else asked.handed_ms
