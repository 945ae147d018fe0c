"""One match as a machine: commands and the time go in, effects come out.

Times are whole milliseconds since the match was opened, as the shell reckons them. A command
decides on journal entries; the position moves only through them. The shell writes the entries of a
command, calls `confirm`, and then performs the other effects. Until `confirm`, `update` and `view`
still show the position before: nobody sees what is not in the journal.

An answer may arrive before the last entry was written and be read after it. It counts as of that
entry's time, so that `at_ms` never falls and every charge can be worked out from the record; what
we stood still in between is a `frozen` entry, and so comes off the charge.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from seatwise_referee.deciding import Unconfirmed
from seatwise_referee.effects import Accept, Effect, Finish, Reason, Reject, Show, WakeAt
from seatwise_referee.ending import Ending, VoidReason
from seatwise_referee.game import IllegalMove, Prompt, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Dealt,
    Entry,
    Forfeited,
    Frozen,
    Moved,
    Resigned,
    Sat,
    TakenOver,
    Voided,
)
from seatwise_referee.position import TIMED_OUT, Answer, AnyGame, Position, SeatState, after, first_position
from seatwise_referee.racing import LATE, Racing
from seatwise_referee.setup import Setup

FEWEST_SEATS = 2
"""With fewer bots at the table there is no match."""

NONCE_BYTES = 32


class Update(NamedTuple):
    """All that a seat is told of a match, from the last confirmed position."""

    prompt: int
    """0 if none is open."""
    to_act: bool
    pace: str
    move_ms: int
    bank_ms: int
    charged_ms: int
    allowance_ms: int
    strikes: int
    seen_seq: int
    """For the receipt; it never goes out as a number."""
    view: Any
    """The game's view, or `None` before the deal."""


class Match(Racing):
    """The authority over one match; never reads a clock and never waits."""

    # What is known

    @property
    def position(self) -> Position:
        """The last confirmed position."""
        return self._confirmed

    @property
    def is_confirmed(self) -> bool:
        """Whether every entry given out so far has been confirmed."""
        return self._confirmed is self._position

    @property
    def is_over(self) -> bool:
        """Whether the confirmed position is the end."""
        return self._confirmed.end is not None

    def view(self, seat: Seat | None) -> Any:
        """The game's view of the last confirmed position, or `None` before the deal."""
        state = self._shown or self._confirmed.state
        return None if state is None else self.game.view(state, seat)

    def update(self, seat: Seat, now: int) -> Update:
        """What the seat is to be told now."""
        position = self._confirmed
        prompt, own = position.prompt, position.seats[seat]
        is_building = seat in self._asking and seat not in self._callers
        is_asked = prompt is not None and seat in prompt.seats and is_building
        return Update(
            prompt=prompt.number if prompt else 0,
            to_act=is_asked,
            pace=prompt.pace if prompt else "",
            move_ms=self._asking.free_left(prompt.pace, seat, now) if prompt and is_asked else 0,
            bank_ms=0 if prompt and prompt.race else own.bank_ms,
            charged_ms=own.charged_ms,
            allowance_ms=self._asking.allowance_ms(seat) if is_asked else 0,
            strikes=own.strikes,
            seen_seq=position.seen_seq(seat),
            view=self.view(seat),
        )

    def answer_to(self, seat: Seat, prompt: int, request_id: str) -> Effect | None:
        """The answer that the seat's last request got, if this is a repeat of it."""
        answer = self._confirmed.seats[seat].answer
        if answer is None or (answer.prompt, answer.request_id) != (prompt, request_id):
            return None
        return _told(seat, answer)

    # Commands

    def sit(self, seat: Seat, nonce: bytes | None, now: int) -> list[Effect]:
        """The seat is taken, or retaken. The nonce counts only the first time, before the deal.

        It has 32 bytes; anything else counts as none. Nor does any count in a set of duplicate deals.
        """
        now = self._clamped(now)
        if not self._position.seats[seat].has_sat and self._position.state is None and not self._position.end:
            counts = nonce and len(nonce) == NONCE_BYTES and not self.setup.deal_set
            taken_with = nonce.hex() if nonce and counts else None
            self._record(Sat(seat=seat, nonce=taken_with, **self._stamp(now)))
            if all(own.has_sat for own in self._position.seats):
                self._deal(now)
        prompt = self._position.prompt
        self._effects.append(Show(seat, prompt.number if prompt else 0))
        return self._done()

    def handed(self, seat: Seat, prompt: int, now: int, allowance_ms: int | None = 0) -> list[Effect]:
        """The prompt has been given to the transport: the seat's time runs, less its allowance.

        That is `None` as long as it is not known; see `measured`.
        """
        current = self._confirmed.prompt
        if seat not in self._asking or current is None or current.number != prompt:
            return []
        return [self._wake()] if self._asking.hand(seat, now, allowance_ms) else []

    def measured(self, seat: Seat, allowance_ms: int) -> list[Effect]:
        """The seat's first round trip is known: it counts for a prompt that is open, too."""
        is_asked = seat in self._asking and self._asking.measured(seat, allowance_ms)
        return [self._wake()] if is_asked else []

    def submit(self, seat: Seat, prompt: int, request_id: str, move: Any, now: int) -> list[Effect]:
        """A seat answers a prompt; `now` is when the answer arrived."""
        repeated = self.answer_to(seat, prompt, request_id)
        if repeated is not None:
            return [repeated]
        self._must_be_put()
        refusal = self._refusal(seat, prompt)
        if refusal is not None:
            return [Reject(seat, request_id, *refusal)]
        if self._race is not None:
            return [*self._race_submit(self._race, seat, request_id, move, now), self._wake()]
        now = max(now, self._position.at_ms)
        charged_ms = self._asking.charge(seat, now)
        if charged_ms > self._allowed(cast("Prompt", self._position.prompt), seat):
            return self._too_late(seat, prompt, request_id, now)
        try:
            state = self.game.play(self._position.state, seat, move)
        except IllegalMove as illegal:
            self._illegal(seat, prompt, request_id, str(illegal), now)
            return self._done()
        entry = Moved(
            seq=self._position.seq + 1,
            at_ms=now,
            seat=seat,
            prompt=prompt,
            move=self.game.move_to_json(move),
            asked_ms=self._asking.started(seat, now),
            allowance_ms=self._asking.allowance_ms(seat),
            charged_ms=charged_ms,
            request_id=request_id,
        )
        return self._moved(entry, state)

    def resign(self, seat: Seat, now: int) -> list[Effect]:
        """The seat gives up; its default moves are played to the end. Only who has sat can."""
        self._must_be_put()
        if self._position.end is not None:
            return [Reject(seat, "", Reason.MATCH_OVER, "the match is over")]
        if not self._position.seats[seat].has_sat:
            return [Reject(seat, "", Reason.NOT_SEATED, "sit down first")]
        if self._position.seats[seat].left is None:
            self._record(Resigned(seat=seat, **self._stamp(now)))
            self._go_on(now)
        return self._done()

    def tick(self, now: int) -> list[Effect]:
        """Time has passed: the set-up may be over, or seats may be late.

        Nothing happens before the last command is confirmed: `confirm` says when to come again.
        """
        if self._position.end is not None or not self._is_put():
            return []
        if self._race is not None:
            self._race_tick(self._race, now)
            return [*self._done(), self._wake()]
        now = self._clamped(now)
        if self._position.state is None:
            if now >= self._setup_ends():
                self._deal(now)
        elif late := [seat for seat in self._asking if self._is_late(seat, now)]:
            self._expire(late, now)
        return [*self._done(), self._wake()]

    def freeze(self, ms: int, why: str, now: int) -> list[Effect]:
        """We stood still for the `ms` before `now`; it is taken off every open charge in which it fell.

        A set-up only lasts longer: it is charged to nobody, so no entry tells of it.
        """
        now = self._clamped(now)
        if self._position.state is None and self._position.end is None:
            self._stood_still_ms += max(0, min(ms, now - self._position.opened_ms))
            return [self._wake()]
        if self._position.end is not None or not self._asking.stood_still(ms, now):
            return []
        self._record(Frozen(ms=ms, why=why, **self._stamp(now)))
        self._asking.freeze(ms, now)
        return self._done()

    def take_over(self, epoch: int, now: int, away: Iterable[Seat] = ()) -> list[Effect]:
        """Another referee owns the match from here on: whoever is asked is asked again in full.

        That bots are `away` is no fault of theirs: they have a set-up time to come back in, see `back`.
        """
        if self._position.end is not None:
            return []
        self._record(TakenOver(epoch=epoch, **self._stamp(self._clamped(now))))
        for seat in away:
            self.expect(seat, self._position.at_ms)
        return self._done()

    def expect(self, seat: Seat, now: int) -> None:
        """The seat lost its link through a fault of ours: it has a set-up time to come `back` in."""
        self._asking.expect(seat, now + self._time_control.setup_ms)

    @property
    def awaited(self) -> frozenset[Seat]:
        """Seats that have yet to sit down: for the first time, or again after a fault of ours."""
        if self._confirmed.state is None:
            return frozenset(self._seats(lambda own: not own.has_sat))
        return self._asking.away

    def wait_on(self, seats: Iterable[Seat], ms: int, now: int) -> list[Effect]:
        """In the `ms` before `now` nobody could tell these seats where to go: the set-up lasts as much longer;
        after a takeover it begins anew for them.
        """
        if self._confirmed.state is None:
            return self.freeze(ms, "LOBBY", now)
        for seat in self._asking.away & frozenset(seats):
            self.expect(seat, now)
        return []

    def back(self, seat: Seat, now: int) -> list[Effect]:
        """The seat's bot has come back, or has only sat down once more."""
        return [self._wake()] if self._asking.back(seat, now) else []

    def void(self, reason: VoidReason, now: int) -> list[Effect]:
        """The match counts for nobody. Nothing happens if it is over."""
        if self._position.end is None:
            self._record(Voided(reason=reason, **self._stamp(self._clamped(now))))
            self._effects.append(Finish())
        return self._done()

    def confirm(self, now: int) -> list[Effect]:
        """All entries given out are in the journal: they may be seen, and a new prompt is put."""
        self._confirmed = self._position
        prompt = self._confirmed.prompt
        if prompt is None:
            self._asking.keep(())
        elif self._is_put():
            self._asking.keep(prompt.seats)
        else:
            self._put_prompt(prompt, max(now, self._confirmed.at_ms))
        self._show_race()
        return [self._wake()]

    # Deciding on entries

    def _deal(self, now: int) -> None:
        for seat in self._seats(lambda own: not own.has_sat and own.left is None):
            self._record(Forfeited(seat=seat, ending=Ending.NEVER_SAT, **self._stamp(now)))
        if len(self._seats(lambda own: own.has_sat)) < FEWEST_SEATS:
            self._record(Voided(reason=VoidReason.TOO_FEW_SAT, **self._stamp(now)))
            self._effects.append(Finish())
            return
        self._record(Dealt(**self._stamp(now)))
        self._go_on(now)

    def _moved(self, entry: Moved, state: Any) -> list[Effect]:
        self._record(entry, state)
        self._effects.append(Accept(entry.seat, entry.request_id, entry.charged_ms))
        self._go_on(entry.at_ms)
        return self._done()

    def _too_late(self, seat: Seat, prompt: int, request_id: str, now: int) -> list[Effect]:
        self._reject(seat, prompt, request_id, Reason.TOO_LATE, LATE, now)
        self._expire([seat], now)
        return self._done()

    def _expire(self, late: list[Seat], now: int) -> None:
        self._default(late, TIMED_OUT, now)
        for seat in late:
            if self._position.seats[seat].strikes >= self._time_control.max_strikes:
                self._record(Forfeited(seat=seat, ending=Ending.TIMED_OUT, **self._stamp(now)))
        self._go_on(now)

    def _refusal(self, seat: Seat, prompt: int) -> tuple[Reason, str] | None:
        position = self._position
        if position.end is not None:
            return Reason.MATCH_OVER, "the match is over"
        if position.seats[seat].left:
            return Reason.NOT_ASKED, "this seat has left the match; the referee plays for it"
        if not position.seats[seat].has_sat:
            return Reason.NOT_SEATED, "sit down first"
        if position.prompt is None:
            return Reason.NOT_ASKED, "nobody is asked before the deal"
        if prompt != position.prompt.number:
            if prompt == position.seats[seat].late_prompt:
                return Reason.TOO_LATE, LATE
            return Reason.STALE, f"prompt {prompt} is not open; open is {position.prompt.number}"
        if seat not in position.prompt.seats:
            return Reason.NOT_ASKED, "this seat is not asked"
        return None

    # Time

    def _wake(self) -> WakeAt:
        if self._position.end is not None:
            return WakeAt(None)
        if self._position.state is None:
            return WakeAt(self._setup_ends())
        prompt = self._position.prompt
        if prompt is None:
            return WakeAt(None)
        if self._race is not None:
            wakes = self._race_wakes(self._race, prompt)
            return WakeAt(1 + min(wakes) if wakes else None)
        deadlines = [self._asking.deadline(seat, self._allowed(prompt, seat)) for seat in self._asking]
        return WakeAt(1 + min(deadlines) if deadlines else None)


def replay(setup: Setup, entries: Iterable[Entry], game: AnyGame | None = None) -> Match:
    """The match as its journal tells it. `IllegalMove` if the journal breaks the rules."""
    rules = game or GAMES[setup.game]
    position = first_position(setup)
    for entry in entries:
        position = after(position, entry, setup, rules)
    return Match(setup, position, rules)


def _told(seat: Seat, answer: Answer) -> Effect:
    if answer.reason:
        return Reject(seat, answer.request_id, Reason(answer.reason), answer.message)
    return Accept(seat, answer.request_id, answer.charged_ms)


__all__ = ["FEWEST_SEATS", "NONCE_BYTES", "Match", "SeatState", "Unconfirmed", "Update", "replay"]
