"""Whatever bots, clocks and referees do in whatever order, a race stays a race."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from matches.effort import examples
from matches.one_match import nonce
from matches.one_race import ROUND_MS, RaceDesk, open_race

from seatwise_referee.decision import AcceptMove, Effect, RejectRequest, ShowChange, ShowView
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import CALL, Lay, OfferEnd, Stop
from seatwise_referee.journal import Called, Finished, JournalEntry, Voided, decode_entry, encode_entry
from seatwise_referee.match import replay_match
from seatwise_referee.race_prompt import MOST_LAYS_A_SECOND
from seatwise_referee.verify import verify_line

SEATS = st.integers(0, 3)
LENGTHS = st.sampled_from([0, 1, 4, 6, 7, 7, 7, -2, -7, -9])
MOST_STEPS = 200
KEPT_S = 2
"""Nobody is behind by more: the hand-over, the allowance and the waits of this test."""


class AnyRace(RuleBasedStateMachine):
    """Commands in any order, with time moving on between them."""

    race: RaceDesk

    @initialize(
        seats=st.integers(2, 4),
        rounds=st.integers(1, 3),
        false_call=st.sampled_from(["out", "ends"]),
        window_ms=st.sampled_from([0, 5, 40]),
        strikes=st.integers(1, 3),
        rejections=st.integers(1, 4),
        are_seated=st.booleans(),
    )
    def open(
        self, seats: int, rounds: int, false_call: str, window_ms: int, strikes: int, rejections: int,
        are_seated: bool,
    ) -> None:  # fmt: skip
        limits = {"tie_window_ms": window_ms, "max_strikes": strikes, "max_rejections": rejections}
        self.race = RaceDesk(seats, rounds, false_call, are_seated=False, setup_ms=500, **limits)
        self.requests = 0
        self.held: dict[int, str] = {}
        if are_seated:
            self.race.sit_all()

    # What the match does is looked at before the journal has it, and after

    def do(self, effects: list[Effect], slow_ms: int = 0) -> None:
        """The store may be slow to answer."""
        told = [self.race.update(seat) for seat in range(self.seats)]
        self.race.now += slow_ms
        if any(isinstance(effect, JournalEntry) for effect in effects):
            assert told == [
                self.race.match.update_for(Seat(seat), self.race.now - slow_ms) for seat in range(self.seats)
            ]
        self.race.do(effects)
        for effect in effects:
            if isinstance(effect, AcceptMove | RejectRequest):
                self.held.pop(effect.seat, None)

    @property
    def seats(self) -> int:
        return len(self.race.setup.bots)

    def seat(self, number: int) -> Seat:
        return Seat(number % self.seats)

    def is_building(self) -> bool:
        return self.race.prompt > 0

    def move(self, seat: Seat, move: object, ago_ms: int = 0, slow_ms: int = 0) -> None:
        self.requests += 1
        at = max(0, self.race.now - ago_ms)
        effects = self.race.match.submit_move(seat, self.race.prompt, f"m{self.requests}", move, at)
        self.do(effects, slow_ms)

    # Time, and who sits

    @rule(ms=st.sampled_from([1, 3, 6, 40, 300, 3000]))
    def wait(self, ms: int) -> None:
        self.race.now += ms

    @rule(ms=st.sampled_from([1, 6, 300, 3000]))
    def wait_and_wake(self, ms: int) -> None:
        self.race.until(self.race.now + ms)
        race = open_race(self.race.match)
        self.held = {seat: call for seat, call in self.held.items() if race and seat in race.callers}

    @rule(number=SEATS, with_nonce=st.booleans())
    def sit(self, number: int, with_nonce: bool) -> None:
        seat = self.seat(number)
        self.do(self.race.match.sit(seat, nonce(seat) if with_nonce else None, self.race.now))

    @precondition(is_building)
    @rule(number=SEATS, allowance_ms=st.none() | st.integers(0, 150))
    def hand(self, number: int, allowance_ms: int | None) -> None:
        self.race.hand_to(self.seat(number), allowance_ms)

    @rule(number=SEATS, allowance_ms=st.integers(0, 150))
    def measure(self, number: int, allowance_ms: int) -> None:
        self.do(self.race.match.note_allowance(self.seat(number), allowance_ms))

    # Moves

    @precondition(is_building)
    @rule(number=SEATS, length=LENGTHS, ago_ms=st.sampled_from([0, 0, 3, 60]))
    def lay(self, number: int, length: int, ago_ms: int) -> None:
        seat = self.seat(number)
        self.move(seat, Lay(self.race.layout(seat, length)), ago_ms)

    @precondition(is_building)
    @rule(number=SEATS, ago_ms=st.sampled_from([0, 0, 3, 60]), slow_ms=st.sampled_from([0, 5, 400]))
    def call(self, number: int, ago_ms: int, slow_ms: int) -> None:
        """Nobody else is told anything by a call as such."""
        seat = self.seat(number)
        self.requests += 1
        at = max(0, self.race.now - ago_ms)
        effects = self.race.match.submit_move(seat, self.race.prompt, f"c{self.requests}", CALL, at)
        if not any(isinstance(effect, JournalEntry) for effect in effects):
            assert not any(isinstance(effect, ShowView | ShowChange | AcceptMove) for effect in effects)
            if not any(isinstance(effect, RejectRequest) for effect in effects):
                self.held[seat] = f"c{self.requests}"
        self.do(effects, slow_ms)

    @precondition(is_building)
    @rule(number=SEATS, length=st.sampled_from([7, -7]))
    def lay_and_call(self, number: int, length: int) -> None:
        self.lay(number, length, 0)
        if self.is_building():
            self.call(number, 0, 0)

    @precondition(is_building)
    @rule(number=SEATS, on=st.booleans())
    def offer(self, number: int, on: bool) -> None:
        self.move(self.seat(number), OfferEnd(on))

    @precondition(is_building)
    @rule(on=st.booleans())
    def all_offer(self, on: bool) -> None:
        prompt = self.race.prompt
        for seat in range(self.seats):
            if self.race.prompt == prompt:
                self.move(Seat(seat), OfferEnd(on))

    @precondition(is_building)
    @rule(number=SEATS, move=st.sampled_from([None, Stop(), Lay(((), ()))]))  # type: ignore[arg-type]
    def move_illegally(self, number: int, move: object) -> None:
        self.move(self.seat(number), move)

    @precondition(is_building)
    @rule(number=SEATS)
    def flood(self, number: int) -> None:
        seat = self.seat(number)
        moves = [Lay(self.race.layout(seat, length)) for length in range(7)]
        for step in range(MOST_LAYS_A_SECOND + 5):
            self.move(seat, moves[step % len(moves)])

    @rule(number=SEATS, prompt=st.integers(0, 4))
    def guess(self, number: int, prompt: int) -> None:
        self.do(self.race.match.submit_move(self.seat(number), prompt, "guess", Lay(()), self.race.now))

    # The house

    @rule(number=SEATS)
    def resign(self, number: int) -> None:
        self.do(self.race.match.resign(self.seat(number), self.race.now))

    @rule()
    def tick(self) -> None:
        self.do(self.race.match.tick(self.race.now))

    @rule(ms=st.sampled_from([0, 2, 30, 49]))
    def lag(self, ms: int) -> None:
        self.race.match.note_lag(ms)

    @rule(ms=st.integers(1, 900))
    def freeze(self, ms: int) -> None:
        self.do(self.race.match.note_standstill(min(ms, self.race.now), "STALL", self.race.now))

    @precondition(is_building)
    @rule(number=SEATS, ms=st.integers(1, 900))
    def freeze_before_a_call(self, number: int, ms: int) -> None:
        effects = self.race.match.note_standstill(min(ms, self.race.now), "STORE", self.race.now)
        at, prompt = max(0, self.race.now - ms), self.race.prompt
        self.do([*effects, *self.race.match.submit_move(self.seat(number), prompt, "thawed", CALL, at)])

    @rule(from_the_journal=st.booleans())
    def take_over(self, from_the_journal: bool) -> None:
        if from_the_journal:
            self.race.match = replay_match(
                self.race.setup, [decode_entry(encode_entry(entry)) for entry in self.race.journal]
            )
        self.do(self.race.match.take_over(self.race.match.position.epoch + 1, self.race.now))
        self.held.clear()

    # What is so at any time

    @invariant()
    def the_journal_has_no_gap_and_its_time_never_falls(self) -> None:
        journal = self.race.journal
        assert [entry.seq for entry in journal] == list(range(1, len(journal) + 1))
        times = [entry.at_ms for entry in journal]
        assert times == sorted(times)

    @invariant()
    def a_replay_stands_where_the_live_match_stands(self) -> None:
        assert replay_match(self.race.setup, self.race.journal).position == self.race.match.position

    @invariant()
    def calls_that_tie_are_within_the_window_of_the_first(self) -> None:
        for entry in self.race.journal:
            if isinstance(entry, Called):
                charged = [call.charge.charged_ms for call in entry.calls]
                assert charged == sorted(charged)
                assert charged[-1] <= charged[0] + entry.window_ms

    @invariant()
    def every_call_that_is_not_answered_is_held(self) -> None:
        race = open_race(self.race.match)
        assert set(self.held) <= (race.callers if race else set())

    @invariant()
    def whoever_is_asked_has_not_left_and_is_told_no_negative_time(self) -> None:
        prompt = self.race.match.position.prompt
        assert prompt is None or not any(self.race.seat(seat).left for seat in prompt.seats)
        for seat in range(self.seats):
            told = self.race.update(seat)
            assert min(told.move_ms, told.bank_ms, told.charged_ms, told.allowance_ms) >= 0

    @invariant()
    def a_race_keeps_no_more_than_it_may_need(self) -> None:
        race = open_race(self.race.match)
        if race is not None:
            assert all(len(lays) <= KEPT_S * MOST_LAYS_A_SECOND for lays in race._lays.values())
            assert all(len(recent) <= MOST_LAYS_A_SECOND for recent in race._recent.values())

    def teardown(self) -> None:
        """It ends, and if it was played to the end, its record verifies."""
        for _ in range(MOST_STEPS):
            if self.race.match.is_over:
                break
            self.one_more()
        end = self.race.match.position.end
        if isinstance(end, Finished):
            verdict = verify_line(self.race.line())
            assert verdict.fault is None, str(verdict.fault)
        else:
            assert isinstance(end, Voided)

    def one_more(self) -> None:
        """Somebody always builds on, and the timer rings."""
        steady = next(seat for seat in range(self.seats) if not self.race.seat(seat).left)
        if self.is_building():
            self.move(Seat(steady), Lay(()))
        self.race.tick()
        self.race.until(self.race.now + ROUND_MS // 2)


AnyRace.TestCase.settings = settings(
    max_examples=examples(150, 30), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestAnyRace = AnyRace.TestCase
