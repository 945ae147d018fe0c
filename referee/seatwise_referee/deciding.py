"""How a match comes to its journal entries: what commands of every kind have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from seatwise_referee.asking import Asking
from seatwise_referee.effects import Effect, Finish, Reason, Record, Reject, Show
from seatwise_referee.ending import Ending, VoidReason, result_ranks
from seatwise_referee.game import Json, Prompt, RaceGame, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import Defaulted, Entry, Finished, Forfeited, Rejected, Voided
from seatwise_referee.position import TIMED_OUT, AnyGame, Position, after, first_position
from seatwise_referee.race import HeldCall, Race
from seatwise_referee.setup import Setup


class Unconfirmed(RuntimeError):
    """A command came before the last one was confirmed: the shell's mistake."""


class Deciding:
    """The position, the clocks of the open prompt, and the effects of the command that is being decided."""

    def __init__(self, setup: Setup, position: Position | None = None, game: AnyGame | None = None) -> None:
        self.setup = setup
        self.game: AnyGame = game or GAMES[setup.game]
        self._time_control = setup.time_control
        self._position = position or first_position(setup)
        self._confirmed = self._position
        self._asking = Asking(setup.time_control)
        self._effects: list[Effect] = []
        self._race: Race | None = None
        """What is laid and called within the open prompt, if that is a race."""
        self._shown: Any = None
        """The state with what lies in an open race, as far as it may be shown."""
        self._callers: frozenset[Seat] = frozenset()
        """Who has called in the open race: only they themselves may notice it yet."""
        self._lag_ms = 0
        self._stood_still_ms = 0
        """In the set-up, for which nobody can have sat down."""
        if self._position.prompt is not None:
            self._put_prompt(self._position.prompt, self._position.at_ms)

    def _put_prompt(self, prompt: Prompt, now: int) -> None:
        position = self._position
        self._asking.put(position.epoch, prompt, now, position.race_ms)
        self._race = None
        if prompt.race:
            game = cast("RaceGame[Any, Any, Any]", self.game)  # only such a game has races
            self._race = Race(game, position.state, self._asking.charge, position.at_ms)

    def _must_be_put(self) -> None:
        """`Unconfirmed` if the prompt on the table has not been put yet."""
        if not self._asking.is_put(self._position.epoch, self._position.prompt):
            raise Unconfirmed(
                f"{self.setup.match}: confirm entry {self._position.seq} before the next command"
            )

    def _clamped(self, now: int) -> int:
        """The time of a command that is the same as its entry's; or `Unconfirmed`."""
        self._must_be_put()
        return max(now, self._position.at_ms)

    def _stamp(self, now: int) -> dict[str, Any]:
        return {"seq": self._position.seq + 1, "at_ms": max(now, self._position.at_ms)}

    def _record(self, entry: Entry, state: Any = None) -> None:
        before = self._position.prompt
        self._position = after(self._position, entry, self.setup, self.game, state)
        self._effects.append(Record(entry))
        if self._race is not None:
            self._go_on_with_race(self._race, before)

    def _go_on_with_race(self, race: Race, before: Prompt | None) -> None:
        prompt = self._position.prompt
        if prompt is None or before is None or prompt.number != before.number:
            self._race = None
        elif prompt.seats != before.seats:
            gone = "this seat has left the match; the referee plays for it"
            self._refuse_calls(race.rebase(self._position.state), Reason.NOT_ASKED, gone)

    def _refuse_calls(self, calls: Iterable[HeldCall], reason: Reason, why: str) -> None:
        self._effects.extend(Reject(call.seat, call.request_id, reason, why) for call in calls)

    def _done(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _illegal(self, seat: Seat, prompt: int, request_id: str, why: str, now: int) -> None:
        self._reject(seat, prompt, request_id, Reason.ILLEGAL, why, now)
        if self._position.seats[seat].rejections >= self._time_control.max_rejections:
            self._record(Forfeited(seat=seat, ending=Ending.ILLEGAL_MOVES, **self._stamp(now)))
            self._go_on(now)

    def _reject(self, seat: Seat, prompt: int, request_id: str, reason: Reason, why: str, now: int) -> None:
        entry = Rejected(
            seat=seat, prompt=prompt, reason=reason, request_id=request_id, message=why, **self._stamp(now)
        )
        self._record(entry)
        self._effects.append(Reject(seat, request_id, reason, why))

    def _go_on(self, now: int) -> None:
        """Plays for seats that have left until somebody who has not is asked, or the match is over."""
        while self._position.state is not None and self._position.end is None:
            if None not in [own.left for own in self._position.seats]:
                self._record(Voided(reason=VoidReason.ABANDONED, **self._stamp(now)))
            elif self._position.prompt is None:
                self._finish(now)
            elif not self._play_for_the_gone(self._position.prompt, now) and not self._decide_race(now):
                break
        self._show(self._position.prompt)

    def _decide_race(self, now: int) -> bool:
        """Writes the next entry that is due in an open race, if one is; see `racing`."""
        raise NotImplementedError

    def _play_for_the_gone(self, prompt: Prompt, now: int) -> bool:
        gone = [seat for seat in sorted(prompt.seats) if self._position.seats[seat].left]
        if not gone:
            return False
        for reason in ("RESIGNED", "FORFEITED"):
            seats = [seat for seat in gone if (reason == "RESIGNED") is self._resigned(seat)]
            if seats:
                self._default(seats, reason, now)
                return True
        return False

    def _resigned(self, seat: Seat) -> bool:
        left = self._position.seats[seat].left
        return left is not None and left.ending is Ending.RESIGNED

    def _default(self, seats: list[Seat], reason: str, now: int) -> None:
        prompt, state = cast("Prompt", self._position.prompt), self._position.state
        moves: list[dict[str, Json]] = []
        for seat in seats:
            times = self._asking.times(seat, now) if reason == TIMED_OUT else {}
            for move in (*self._unwritten(seat), self.game.default_move(state, seat)):
                state = self.game.play(state, seat, move)
                moves.append({"seat": seat, "move": self.game.move_to_json(move), **times})
        entry = Defaulted(reason=reason, prompt=prompt.number, moves=tuple(moves), **self._stamp(now))
        self._record(entry)

    def _unwritten(self, seat: Seat) -> list[Any]:
        """What the seat has laid in an open race: it counts although the seat builds no more."""
        lay = self._race.last_lay(seat) if self._race else None
        return [] if lay is None else [lay]

    def _finish(self, now: int) -> None:
        seats = self._position.seats
        outcome = self.game.outcome(self._position.state)
        assert outcome is not None
        ranks = result_ranks(outcome.ranks, [own.left for own in seats])
        rounds: list[Json] = [list(each) for each in outcome.rounds]
        entry = Finished(
            outcome={"points": list(outcome.points), "ranks": list(outcome.ranks), "rounds": rounds},
            result={"ranks": list(ranks)},
            endings=tuple(own.left.ending if own.left else Ending.COMPLETED for own in seats),
            **self._stamp(now),
        )
        self._record(entry)

    def _show(self, prompt: Prompt | None) -> None:
        if self._position.end is not None:
            self._effects.append(Finish())
        elif prompt is not None:
            self._effects.extend(Show(seat, prompt.number) for seat in sorted(prompt.seats))

    def _seats(self, which: Any) -> list[Seat]:
        return [Seat(seat) for seat, own in enumerate(self._position.seats) if which(own)]

    def _is_put(self) -> bool:
        """Whether no prompt is open, or the open one has been put by its present owner."""
        return self._asking.is_put(self._position.epoch, self._position.prompt)

    def _allowed(self, prompt: Prompt, seat: Seat) -> int:
        """The highest charge that is still in time; a race takes nothing from the bank."""
        bank_ms = 0 if prompt.race else self._position.seats[seat].bank_ms
        return self._time_control.allowed_ms(prompt.pace, bank_ms)

    def _is_late(self, seat: Seat, now: int) -> bool:
        prompt = self._position.prompt
        return prompt is not None and self._asking.charge(seat, now) > self._allowed(prompt, seat)

    def _setup_ends(self) -> int:
        return self._position.opened_ms + self._time_control.setup_ms + self._stood_still_ms
