"""The clocks of the open prompt: which seats are asked, since when, and the charge of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatwise_referee.game import Prompt, Seat
from seatwise_referee.journal import Charge
from seatwise_referee.time_control import TimeControl


class _SeatClock:
    """The clock of one seat."""

    __slots__ = ("allowance_ms", "delivered_ms", "is_answered", "is_awaited", "latest_start_ms", "opened_ms")

    def __init__(self, opened_ms: int, latest_start_ms: int, is_awaited: bool) -> None:
        self.opened_ms = opened_ms
        self.latest_start_ms = latest_start_ms
        """The seat's time begins then, if the prompt is not delivered before."""
        self.is_awaited = is_awaited
        """Its bot has not come back yet, and none of the seat's time runs before it does."""
        self.delivered_ms: int | None = None
        self.allowance_ms: int | None = None
        """`None` as long as the seat's round trip is not known."""
        self.is_answered = False

    @property
    def start_ms(self) -> int:
        """The time at which the seat's time begins."""
        return self.latest_start_ms if self.delivered_ms is None else self.delivered_ms


class PromptClock:
    """The clocks of one prompt at a time, as one owner of the match opened it.

    A prompt is *opened* when its entry is confirmed, and *delivered* to a seat when the transport has it. All
    times are milliseconds since the match was opened.
    """

    def __init__(self, time_control: TimeControl) -> None:
        self._time_control = time_control
        self._clocks: dict[Seat, _SeatClock] = {}
        self._base_ms = 0
        self._standstills: list[tuple[int, int]] = []
        """Standstills of the process since the prompt was opened, each from when until when."""
        self._opened = (0, 0)
        """The epoch and the number of the prompt to which `_clocks` belong."""
        self._away: dict[Seat, int] = {}
        """Seats that lost their link through a fault of the server, each with the time by which it has to be back."""
        self._room_by: dict[Seat, int] = {}
        """Seats that cannot connect for want of room, each with the time by which it has to be back."""
        self._room_left_ms: dict[Seat, int] = {}
        """The rest of the time that a seat may gain so in this match, once it has used some of it."""
        self._is_race = False

    def __contains__(self, seat: Seat) -> bool:
        return seat in self._clocks

    def __iter__(self) -> Iterator[Seat]:
        return iter(self._clocks if len(self._clocks) < 2 else sorted(self._clocks))  # a turn asks one seat

    def is_opened(self, epoch: int, prompt: Prompt | None) -> bool:
        """Return whether there is no prompt, or the present owner has opened this one."""
        return prompt is None or self._opened == (epoch, prompt.number)

    def open_prompt(self, epoch: int, prompt: Prompt, now: int, base_ms: int = 0) -> None:
        """Start the clocks of this prompt. In a race that is taken over, charges continue from `base_ms`."""
        self._opened = (epoch, prompt.number)
        self._base_ms = base_ms
        self._standstills = []
        self._is_race = prompt.race
        self._clocks = {seat: self._new_clock(seat, now) for seat in prompt.seats}

    def _new_clock(self, seat: Seat, now: int) -> _SeatClock:
        latest_ms = now + self._time_control.handover_ms
        back_by_ms = 0 if self._is_race else self._away.get(seat, 0)
        return _SeatClock(now, max(latest_ms, back_by_ms), back_by_ms > now)

    def keep_only(self, seats: Iterable[Seat]) -> None:
        """Stop the clocks of all other seats."""
        kept = frozenset(seats)
        self._clocks = {seat: clock for seat, clock in self._clocks.items() if seat in kept}

    # Seats that are away

    @property
    def away(self) -> frozenset[Seat]:
        """Seats that have not come back yet."""
        return frozenset(self._away)

    def await_return(self, seat: Seat, by_ms: int) -> None:
        """Stop the seat's time until it is back, or until `by_ms`: it lost its link through a fault of the server.

        It is asked again with its full time. A race is different: the others build meanwhile, and one seat would
        get more time than they.
        """
        self._away[seat] = by_ms
        clock = self._clocks.get(seat)
        if clock is not None and not self._is_race:
            latest_ms = max(clock.latest_start_ms, by_ms)
            self._clocks[seat] = _SeatClock(clock.opened_ms, latest_ms, is_awaited=True)

    def await_room(self, seat: Seat, now: int, most_ms: int) -> None:
        """Await a seat that cannot connect because the server is full: in the whole match it gains `most_ms` at most.

        Its bot may itself be what fills the server. The time of the open prompt that it is given back counts as gained.
        """
        if seat not in self._room_by:
            clock = self._clocks.get(seat)
            since_ms = now if clock is None or clock.is_awaited else self.started_ms(seat, now)
            self._room_by[seat] = since_ms + self._room_left_ms.get(seat, most_ms)
        if self._room_by[seat] > max(now, self._away.get(seat, 0)):
            self.await_return(seat, self._room_by[seat])

    def list_shut_out(self, now: int) -> Iterator[Seat]:
        """Yield the seats that are asked, cannot connect, and are not waited for any longer. A race never waits."""
        return (
            seat
            for seat, by_ms in self._room_by.items()
            if seat in self._clocks and (self._is_race or now >= by_ms)
        )

    def note_return(self, seat: Seat, now: int) -> bool:
        """The seat's bot is back, and is like any other from now on. False if that makes no difference."""
        self._away.pop(seat, None)
        if seat in self._room_by:
            self._room_left_ms[seat] = max(0, self._room_by.pop(seat) - now)
        clock = self._clocks.get(seat)
        if clock is None or not clock.is_awaited:
            return False
        clock.is_awaited = False
        clock.latest_start_ms = min(clock.latest_start_ms, now + self._time_control.handover_ms)
        return True

    # Delivery and allowance

    def note_delivery(self, seat: Seat, now: int, allowance_ms: int | None) -> bool:
        """The transport has the prompt: the seat's time runs. False if it ran already, or does not yet."""
        clock = self._clocks[seat]
        if clock.delivered_ms is not None or clock.is_awaited:
            return False
        clock.delivered_ms = min(max(now, clock.opened_ms), clock.latest_start_ms)
        clock.allowance_ms = None if allowance_ms is None else self._capped_ms(allowance_ms)
        return True

    def note_allowance(self, seat: Seat, allowance_ms: int) -> bool:
        """A round trip of a seat was measured after the delivery. False if that makes no difference.

        A shorter one than was known counts at once, a longer one does not: a bot may have two links, and
        answer by the quicker one.
        """
        clock, capped_ms = self._clocks[seat], self._capped_ms(allowance_ms)
        if clock.delivered_ms is None:
            return False
        if clock.allowance_ms is not None and clock.allowance_ms <= capped_ms:
            return False
        clock.allowance_ms = capped_ms
        return True

    def note_answer(self, seat: Seat, now: int) -> int | None:
        """The seat has answered. Return the ms since the prompt was opened if this is its first answer, or `None`.

        An overloaded server may note a delivery long after it, so the time since the delivery would prove too much.
        """
        clock = self._clocks[seat]
        if clock.delivered_ms is None or clock.is_answered:
            return None
        clock.is_answered = True
        return max(0, now - clock.opened_ms)

    def _capped_ms(self, allowance_ms: int) -> int:
        return max(0, min(allowance_ms, self._time_control.allowance_cap_ms))

    # Standstills

    def has_run_in(self, ms: int, now: int) -> bool:
        """Return whether any clock ran in the `ms` before `now`."""
        return any(min(ms, now - self.started_ms(seat, now)) > 0 for seat in self._clocks)

    def add_standstill(self, ms: int, now: int) -> None:
        """Take the `ms` before `now` off every charge in which they fall, also of answers that came before."""
        self._standstills.append((now - ms, now))

    # Charges

    def started_ms(self, seat: Seat, now: int) -> int:
        """Return when the seat's time began: at the delivery, and at the latest `handover_ms` after the opening.

        It does not begin before the bot is back, if the server broke its link. A bot that guesses the prompt and
        answers before it is opened has used no time.
        """
        return min(now, self._clocks[seat].start_ms)

    def allowance_ms(self, seat: Seat) -> int:
        """Return the time that is taken off the charge for the network; 0 as long as it is not known."""
        return self._clocks[seat].allowance_ms or 0

    def charged_ms(self, seat: Seat, now: int) -> int:
        """Return the charge of an answer that arrives now."""
        return self.charge_parts(seat, now)[2]

    def least_charged_ms(self, seat: Seat, now: int) -> int:
        """Return the same with the greatest allowance that the seat can still get."""
        return self._base_ms + max(0, self._used_ms(seat, now) - self._most_allowance_ms(seat))

    def charge_of(self, seat: Seat, now: int) -> Charge:
        """Return the charge of an answer that arrives now, with its parts, as entries hold it."""
        return Charge(*self.charge_parts(seat, now))

    def charge_parts(self, seat: Seat, now: int) -> tuple[int, int, int]:
        """Return when the seat's time began, what is taken off for the network, and the charge of an answer that arrives now."""
        clock = self._clocks[seat]
        asked_ms, allowance_ms = min(now, clock.start_ms), clock.allowance_ms or 0
        used_ms = now - asked_ms - self._stood_still_ms(asked_ms, now)
        return asked_ms, allowance_ms, self._base_ms + max(0, used_ms - allowance_ms)

    def free_left_ms(self, pace: str, seat: Seat, now: int) -> int:
        """Return the free time that the seat has left for this prompt; never negative."""
        return max(0, self._time_control.free_ms[pace] - self._base_ms - max(0, self._used_ms(seat, now)))

    def deadline_ms(self, seat: Seat, allowed_ms: int) -> int:
        """Return the last time at which an answer is charged no more than `allowed_ms`."""
        return self._when_used(seat, allowed_ms - self._base_ms + self.allowance_ms(seat))

    def latest_deadline_ms(self, seat: Seat, allowed_ms: int) -> int:
        """Return the same with the greatest allowance that the seat can still get."""
        return self._when_used(seat, allowed_ms - self._base_ms + self._most_allowance_ms(seat))

    def _most_allowance_ms(self, seat: Seat) -> int:
        known_ms = self._clocks[seat].allowance_ms
        return self._time_control.allowance_cap_ms if known_ms is None else known_ms

    def _used_ms(self, seat: Seat, now: int) -> int:
        started_ms = self.started_ms(seat, now)
        return now - started_ms - self._stood_still_ms(started_ms, now)

    def _when_used(self, seat: Seat, ms: int) -> int:
        """Return when the seat has used `ms` of its time. All standstills so far are over."""
        started_ms = self._clocks[seat].start_ms
        if not self._standstills:
            return started_ms + ms
        stood_ms = sum(max(0, until - max(started_ms, since)) for since, until in self._standstills)
        return started_ms + ms + stood_ms

    def _stood_still_ms(self, started_ms: int, now: int) -> int:
        if not self._standstills:  # nearly always
            return 0
        return sum(max(0, min(now, until) - max(started_ms, since)) for since, until in self._standstills)
