"""One match as a state machine: commands and the time go in, effects come out.

The program around a match is its *shell* (`play/table.py` of the server, `local/table.py` of the SDK). The
shell has the clock, the network and the store; a match has none of them.

1. The shell calls a command, for example `submit_move`, with the time at which it came. Times are whole
   milliseconds since the match was opened.
2. The match decides, and returns effects. The entries among them are decisions: only they move the position.
3. The shell writes the entries to the journal and calls `confirm_entries`. Until then `view_for` and
   `update_for` show the position before, so nobody sees what the journal does not have.
4. The shell performs the other effects in their order: it shows views, sends answers, sets its timer.

| open | decided by | an answer is |
|---|---|---|
| no prompt: the set-up | `sit`, `tick` | refused |
| a turn | `TurnPrompt` | decided when it arrives |
| a race | `RacePrompt` | held until no call can precede it |
| no prompt: the match is over | | refused |

An answer may arrive before the last entry was written, and be read after it. Then it counts as of the time
of that entry. So `at_ms` never falls, and every charge can be recomputed from the record. If the process
stood still in between, a `frozen` entry says so, and the charge is that much smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from seatwise_referee.decision import (
    HAS_LEFT,
    TIME_IS_OVER,
    AbsentSeat,
    AcceptMove,
    Decision,
    Effect,
    RejectRequest,
    ShowView,
    WakeAt,
)
from seatwise_referee.ending import Ending, RejectReason, VoidReason
from seatwise_referee.game import Prompt, RaceGame, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import (
    Dealt,
    DefaultReason,
    Entry,
    Frozen,
    Resigned,
    Sat,
    TakenOver,
    Unconfirmed,
    Voided,
)
from seatwise_referee.position import AnyGame, Position, RequestReply, first_position, position_after
from seatwise_referee.prompt_clock import PromptClock
from seatwise_referee.race_prompt import RacePrompt
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import NONCE_BYTES
from seatwise_referee.turn_prompt import TurnPrompt

FEWEST_SEATS = 2
"""A match with fewer seats taken is void."""
LAST_MOMENT_MS = 1000
"""A set-up that waits no more for bots without a connection is looked at so long before its end."""
_new_tuple: Final = tuple.__new__
"""The function behind a named tuple's constructor, which takes much longer."""
ALL_SIT = "leagues/"
"""The competitions whose matches begin only when all bots sit: there a match that one of them misses is repeated."""


class SeatUpdate(NamedTuple):
    """All that a seat is told of a match, from the last confirmed position."""

    prompt: int
    """The number of the open prompt; 0 if none is open."""
    to_act: bool
    """Whether the seat is asked."""
    pace: str
    """The pace of the open prompt; empty if none is open."""
    move_ms: int
    """The free time that the seat has left for this prompt, in milliseconds."""
    bank_ms: int
    """The rest of the seat's bank, in milliseconds; 0 in a race, which takes nothing from it."""
    charged_ms: int
    """The charge of the seat's last move, in milliseconds."""
    allowance_ms: int
    """The time for the network that is taken off the charge, in milliseconds."""
    strikes: int
    """How often the seat has run out of time."""
    seen_seq: int
    """The last entry that the seat may know of. It is for the receipt, and is never sent as a number."""
    view: Any
    """The game's view; `None` before the deal."""


class Match:
    """The authority over one match. It never reads a clock and never waits.

    The match checks a command, and the open prompt decides on it (`TurnPrompt` or `RacePrompt`). Both record
    their decisions in the shared `Decision`. Then `_advance_match` brings the match to its next prompt.
    """

    def __init__(self, setup: Setup, position: Position | None = None, game: AnyGame | None = None) -> None:
        """Create a match before its first entry, or after those that led to `position`.

        `game` are the rules to play by, if not those of the registry.
        """
        self.setup = setup
        self.game: AnyGame = game or GAMES[setup.game]
        self._confirmed = position or first_position(setup)
        self._decision = Decision(setup, self.game, self._confirmed)
        self._clock = PromptClock(setup.time_control)
        self._turn = TurnPrompt(self._decision, self._clock)
        self._race: RacePrompt | None = None
        """The open prompt, if it is a race."""
        self._lag_ms = 0
        self._stood_still_ms = 0
        """How long the process stood still during the set-up: no bot could sit down then."""
        self._lacked_room_ms = 0
        """How much of that is due to bots that could not connect."""
        if self._confirmed.prompt is not None:
            self._open_prompt(self._confirmed.prompt, self._confirmed.at_ms)

    # The confirmed position

    @property
    def position(self) -> Position:
        """The last confirmed position."""
        return self._confirmed

    @property
    def is_confirmed(self) -> bool:
        """Whether the shell has confirmed every entry that it was given."""
        return self._confirmed is self._decision.position

    @property
    def is_over(self) -> bool:
        """Whether the match is over, and the shell has confirmed it."""
        return self._confirmed.end is not None

    @property
    def awaited_seats(self) -> frozenset[Seat]:
        """Seats that have not sat down yet: for the first time, or again after the server broke their link."""
        if self._confirmed.state is None:
            return frozenset(
                Seat(seat) for seat, own in enumerate(self._decision.position.seats) if not own.has_sat
            )
        return self._clock.away

    def view_for(self, seat: Seat | None) -> Any:
        """Return what a seat may see now, or a spectator (`None`). Before the deal there is no view, and this is `None`."""
        state = self._race.shown_state if self._race else self._confirmed.state
        return None if state is None else self.game.view(state, seat)

    def update_for(self, seat: Seat, now: int) -> SeatUpdate:
        """Return all that the seat is to be told at the time `now`, in milliseconds."""
        position = self._confirmed
        prompt, own = position.prompt, position.seats[seat]
        is_building = seat in self._clock and not self._has_called(seat)
        is_asked = prompt is not None and seat in prompt.seats and is_building
        fields = (
            prompt.number if prompt else 0,
            is_asked,
            prompt.pace if prompt else "",
            self._clock.free_left_ms(prompt.pace, seat, now) if prompt and is_asked else 0,
            0 if prompt and prompt.race else own.bank_ms,
            own.charged_ms,
            self._clock.allowance_ms(seat) if is_asked else 0,
            own.strikes,
            position.seen_seq(seat),
            self.view_for(seat),
        )
        return _new_tuple(SeatUpdate, fields)

    def _has_called(self, seat: Seat) -> bool:
        return self._race is not None and seat in self._race.hidden_callers

    def reply_to(self, seat: Seat, prompt: int, request_id: str) -> Effect | None:
        """Return the answer to the seat's last request once more, if this is a repeat of it; else `None`."""
        answer = self._confirmed.seats[seat].reply
        if answer is None or (answer.prompt, answer.request_id) != (prompt, request_id):
            return None
        return _reply_effect(seat, answer)

    # Commands of a seat

    def sit(self, seat: Seat, nonce: bytes | None, now: int) -> list[Effect]:
        """The bot of this seat sits down, or sits down again. `now` is in milliseconds, here and below.

        The first time, before the deal, it may bring a nonce of 32 bytes, which goes into the deal. Any other
        nonce counts as none. In a set of duplicate deals no nonce counts.
        """
        self._require_open()
        decision = self._decision
        if not decision.position.seats[seat].has_sat and self._is_in_setup():
            counts = nonce and len(nonce) == NONCE_BYTES and not self.setup.deal_set
            taken_with = nonce.hex() if nonce and counts else None
            decision.record_entry(Sat(seat=seat, nonce=taken_with, **decision.next_stamp(now)))
            if all(own.has_sat for own in decision.position.seats):
                self._deal_cards(now)
        prompt = decision.position.prompt
        decision.effects.append(ShowView(seat, prompt.number if prompt else 0))
        return decision.take_effects()

    def submit_move(self, seat: Seat, prompt: int, request_id: str, move: Any, now: int) -> list[Effect]:
        """A seat answers a prompt; `now` is when the answer arrived.

        A repeat with the same `request_id` gets the same answer again. An answer that does not stand gets a
        `RejectRequest`. Raises `Unconfirmed` if the last entries are not confirmed yet.
        """
        repeated = self.reply_to(seat, prompt, request_id)
        if repeated is not None:
            return [repeated]
        self._require_open()
        refusal = _refusal_of(self._decision.position, seat, prompt)
        if refusal is not None:
            return [RejectRequest(seat, request_id, *refusal)]
        decided_ms = (self._race or self._turn).submit_move(seat, request_id, move, now)
        if decided_ms is not None:
            self._advance_match(decided_ms)
        return self._decision.take_effects() + self._wake_effects()

    def resign(self, seat: Seat, now: int) -> list[Effect]:
        """The seat gives up, and the referee plays its default moves to the end. Only a seat that has sat can resign."""
        self._require_open()
        decision = self._decision
        own = decision.position.seats[seat]
        if decision.position.end is not None:
            return [RejectRequest(seat, "", RejectReason.MATCH_OVER, "the match is over")]
        if not own.has_sat:
            return [RejectRequest(seat, "", RejectReason.NOT_SEATED, "sit down first")]
        if own.left is None:
            decision.record_entry(Resigned(seat=seat, **decision.next_stamp(now)))
            self._advance_match(now)
        return decision.take_effects()

    # Facts about a seat that the shell reports

    def note_delivery(self, seat: Seat, prompt: int, now: int, allowance_ms: int | None = 0) -> list[Effect]:
        """The transport has the prompt, so the seat's time runs.

        `allowance_ms` is taken off its charge, for the network. It is `None` as long as no round trip has been
        measured; see `note_allowance`.
        """
        current = self._confirmed.prompt
        if seat not in self._clock or current is None or current.number != prompt:
            return []
        return self._wake_effects() if self._clock.note_delivery(seat, now, allowance_ms) else []

    def note_allowance(self, seat: Seat, allowance_ms: int) -> list[Effect]:
        """The seat's first round trip has been measured, or a shorter one. It counts for the open prompt too."""
        is_asked = seat in self._clock and self._clock.note_allowance(seat, allowance_ms)
        return self._wake_effects() if is_asked else []

    def note_answer(self, seat: Seat, prompt: int, now: int) -> int | None:
        """An answer of a seat has come. Return how long the seat took, in ms, from the opening of the prompt.

        `None` unless it is the seat's first answer to the open prompt.
        """
        current = self._confirmed.prompt
        if seat not in self._clock or current is None or current.number != prompt:
            return None
        return self._clock.note_answer(seat, now)

    def await_return(self, seat: Seat, now: int) -> None:
        """The server broke the link of this seat: its bot has a set-up time to return, in which no time of the seat runs."""
        self._clock.await_return(seat, now + self.setup.time_control.setup_ms)

    def note_return(self, seat: Seat, now: int) -> list[Effect]:
        """The bot of this seat has sat down again."""
        return self._wake_effects() if self._clock.note_return(seat, now) else []

    def note_unreachable(self, seats: Iterable[Seat], ms: int, now: int) -> list[Effect]:
        """In the `ms` before `now` no lobby could tell these seats where to sit down.

        The set-up lasts that much longer. After a takeover the time to return begins again for these seats.
        """
        if self._confirmed.state is None:
            return self.note_standstill(ms, "LOBBY", now)
        for seat in self._clock.away & frozenset(seats):
            self.await_return(seat, now)
        return []

    def note_no_room(self, seats: Iterable[Seat], ms: int, now: int) -> list[Effect]:
        """In the `ms` before `now` these seats could not connect. The set-up lasts that much longer; later they are awaited.

        Each of these is at most one set-up time in a match, because a bot could use the server's connections up itself.
        """
        if self._confirmed.state is None:
            ms = min(ms, self.setup.time_control.setup_ms - self._lacked_room_ms)
            self._lacked_room_ms += ms
            return self.note_standstill(ms, "LOBBY", now)
        for seat in seats:
            self.await_room(seat, now)
        return []

    def await_room(self, seat: Seat, now: int) -> None:
        """This seat cannot connect, because the server has no free connection: see `note_no_room`."""
        self._clock.await_room(seat, now, self.setup.time_control.setup_ms)

    def shut_out_seats(self, now: int) -> list[Seat]:
        """Return the seats that lose something because they cannot connect, and for which this match waits no more."""
        position = self._decision.position
        if not self._is_in_setup():
            return [seat for seat in self._clock.list_shut_out(now) if not self._has_called(seat)]
        is_last_moment = now >= self._setup_end_ms() - LAST_MOMENT_MS
        if not is_last_moment or self._lacked_room_ms < self.setup.time_control.setup_ms:
            return []
        return [Seat(seat) for seat, own in enumerate(position.seats) if not own.has_sat]

    # Commands of the shell

    def tick(self, now: int) -> list[Effect]:
        """Time has passed: the set-up may be over, or seats may be late.

        As long as entries are not confirmed nothing happens: `confirm_entries` says when to call this again.
        """
        position = self._decision.position
        if position.end is not None or not self._is_open():
            return []
        if position.state is not None:
            decided_ms = (self._race or self._turn).decide_due(now)
            if decided_ms is not None:
                self._advance_match(decided_ms)
        elif max(now, position.at_ms) >= self._setup_end_ms():
            self._deal_cards(now)
        return self._decision.take_effects() + self._wake_effects()

    def note_standstill(self, ms: int, why: str, now: int) -> list[Effect]:
        """The process, or its store, stood still for the `ms` before `now`: no seat is charged for it.

        `why` goes into the entry. A set-up only lasts longer, and no entry says so, because no seat is charged
        for a set-up.
        """
        self._require_open()
        decision, position = self._decision, self._decision.position
        now = max(now, position.at_ms)
        if self._is_in_setup():
            self._stood_still_ms += max(0, min(ms, now - position.setup_began_ms))
            return self._wake_effects()
        if position.end is not None or not self._clock.has_run_in(ms, now):
            return []
        decision.record_entry(Frozen(ms=ms, why=why, **decision.next_stamp(now)))
        self._clock.add_standstill(ms, now)
        return decision.take_effects()

    def note_lag(self, lag_ms: int) -> None:
        """The event loop lagged by at most `lag_ms` in the last second: no tie window is smaller than that."""
        self._lag_ms = lag_ms
        if self._race is not None:
            self._race.note_lag(lag_ms)

    def take_over(self, epoch: int, now: int, away: Iterable[Seat] = ()) -> list[Effect]:
        """Another referee owns the match from here on. Seats that are asked are asked again, with their full time.

        It is not the fault of the `away` seats that their links are gone: their bots have a set-up time to
        return, see `note_return`.
        """
        decision = self._decision
        if decision.position.end is not None:
            return []
        self._require_open()
        decision.record_entry(TakenOver(epoch=epoch, **decision.next_stamp(now)))
        for seat in away:
            self.await_return(seat, decision.position.at_ms)
        return decision.take_effects()

    def void_match(self, reason: VoidReason, now: int) -> list[Effect]:
        """End the match without a result. Nothing happens if it is over."""
        decision = self._decision
        if decision.position.end is None:
            self._require_open()
            self._record_void(reason, now)
            decision.show_prompt()
        return decision.take_effects()

    def confirm_entries(self, now: int) -> list[Effect]:
        """All entries given out are in the journal: now seats may see them, and the next prompt opens."""
        self._confirmed = position = self._decision.position
        if position.prompt is None:
            self._clock.keep_only(())
            self._race = None
        elif self._is_open():
            self._clock.keep_only(position.prompt.seats)
        else:
            self._open_prompt(position.prompt, max(now, position.at_ms))
        if self._race is not None:
            self._race.show_confirmed()
        return self._wake_effects()

    # How the match moves on

    def _deal_cards(self, now: int) -> None:
        decision = self._decision
        for seat, own in enumerate(decision.position.seats):
            if not own.has_sat and own.left is None:
                decision.forfeit_seat(Seat(seat), Ending.NEVER_SAT, now)
        fewest = len(self.setup.bots) if self.setup.competition.startswith(ALL_SIT) else FEWEST_SEATS
        if sum(own.has_sat for own in decision.position.seats) < fewest:
            self._record_void(VoidReason.TOO_FEW_SAT, now)
            decision.show_prompt()
            return
        decision.record_entry(Dealt(**decision.next_stamp(now)))
        self._advance_match(now)

    def _advance_match(self, now: int) -> None:
        """Play for seats that have left, until a seat is asked that has not, or the match is over."""
        decision = self._decision
        while decision.position.state is not None and decision.position.end is None:
            prompt = decision.position.prompt
            exits = [own.left for own in decision.position.seats if own.left]  # mostly none
            if len(exits) == len(decision.position.seats):
                self._record_void(VoidReason.ABANDONED, now)
            elif prompt is None:
                decision.record_finish(now)
            elif not (exits and self._play_for_absent(prompt, now)) and not (
                self._race and self._race.decide_next(now)
            ):
                break
        if not self._is_still_asked():
            decision.show_prompt()

    def _is_still_asked(self) -> bool:
        """Whether the prompt is the one that its seats were shown, and only others have answered it: they learn nothing of that."""
        prompt, shown = self._decision.position.prompt, self._confirmed.prompt
        if self._race is not None or prompt is None or shown is None:
            return False
        return prompt.number == shown.number and prompt.seats < shown.seats

    def _play_for_absent(self, prompt: Prompt, now: int) -> bool:
        """Play for seats that have left and are asked, first for those that resigned. False if there is none."""
        seats = self._decision.position.seats
        exits = [(seat, left) for seat in sorted(prompt.seats) if (left := seats[seat].left)]
        if not exits:
            return False
        resigned = [seat for seat, left in exits if left.ending is Ending.RESIGNED]
        reason = DefaultReason.RESIGNED if resigned else DefaultReason.FORFEITED
        absent = [AbsentSeat(seat, self._unrecorded_lay(seat)) for seat in resigned or dict(exits)]
        self._decision.play_defaults(reason, absent, now)
        if self._race is not None:
            self._race.follow_position()
        return True

    def _unrecorded_lay(self, seat: Seat) -> Any | None:
        return self._race.unrecorded_lay(seat) if self._race else None

    def _record_void(self, reason: VoidReason, now: int) -> None:
        self._decision.record_entry(Voided(reason=reason, **self._decision.next_stamp(now)))

    # The open prompt

    def _open_prompt(self, prompt: Prompt, now: int) -> None:
        position = self._confirmed
        self._clock.open_prompt(position.epoch, prompt, now, position.race_ms)
        self._race = None
        if prompt.race:
            game = cast("RaceGame[Any, Any, Any]", self.game)  # only such a game has races
            self._race = RacePrompt(self._decision, self._clock, game, self._lag_ms)

    def _is_open(self) -> bool:
        """Whether there is no prompt, or the prompt has been opened since it came up and since the last takeover."""
        position = self._decision.position
        return self._clock.is_opened(position.epoch, position.prompt)

    def _require_open(self) -> None:
        """Raise `Unconfirmed` if the next prompt has not been opened yet."""
        if not self._is_open():
            seq = self._decision.position.seq
            raise Unconfirmed(f"{self.setup.match}: confirm entry {seq} before the next command")

    # Time

    def _is_in_setup(self) -> bool:
        return self._decision.position.state is None and self._decision.position.end is None

    def _setup_end_ms(self) -> int:
        return (
            self._decision.position.setup_began_ms + self.setup.time_control.setup_ms + self._stood_still_ms
        )

    def _wake_effects(self) -> list[Effect]:
        """When to call `tick`. As long as entries are not confirmed, `confirm_entries` will say it instead."""
        position = self._decision.position
        if self._confirmed is not position:
            return []
        if position.state is None and position.end is None:
            return [WakeAt(self._setup_end_ms())]
        return [WakeAt((self._race or self._turn).wake_ms())]


def _refusal_of(position: Position, seat: Seat, prompt: int) -> tuple[RejectReason, str] | None:
    """Return why an answer of this seat is refused before its move is looked at; `None` if the seat is asked."""
    own, current = position.seats[seat], position.prompt
    if position.end is not None:
        return RejectReason.MATCH_OVER, "the match is over"
    if own.left:
        return RejectReason.NOT_ASKED, HAS_LEFT
    if not own.has_sat:
        return RejectReason.NOT_SEATED, "sit down first"
    if current is None:
        return RejectReason.NOT_ASKED, "nobody is asked before the deal"
    if prompt != current.number:
        if prompt == own.late_prompt:
            return RejectReason.TOO_LATE, TIME_IS_OVER
        return RejectReason.STALE, f"prompt {prompt} is not open; open is {current.number}"
    if seat not in current.seats:
        return RejectReason.NOT_ASKED, "this seat is not asked"
    return None


def replay_match(setup: Setup, entries: Iterable[Entry], game: AnyGame | None = None) -> Match:
    """Return the match after these entries.

    `game` are the rules to replay it by, if not those of the registry. Raises `IllegalMove` if an entry holds a
    move that the rules forbid.
    """
    rules = game or GAMES[setup.game]
    position = first_position(setup)
    for entry in entries:
        position = position_after(position, entry, setup, rules)
    return Match(setup, position, rules)


def _reply_effect(seat: Seat, answer: RequestReply) -> Effect:
    if answer.reason:
        return RejectRequest(seat, answer.request_id, RejectReason(answer.reason), answer.message)
    return AcceptMove(seat, answer.request_id, answer.charged_ms)
