"""Whatever bots, clocks and referees do in whatever order, a match stays a match."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from matches.effort import examples
from matches.one_match import Desk, nonce

from seatwise_referee import record
from seatwise_referee.decision import Effect
from seatwise_referee.game import Seat
from seatwise_referee.journal import Finished, Voided, decode_entry, encode_entry
from seatwise_referee.match import replay_match
from seatwise_referee.verify import verify_line

SEATS = st.integers(0, 3)
MOST_STEPS = 1000


class AnyMatch(RuleBasedStateMachine):
    """Commands in any order, with time moving on between them."""

    desk: Desk

    @initialize(
        seats=st.integers(2, 4),
        strikes=st.integers(1, 3),
        rejections=st.integers(1, 4),
        increment_ms=st.sampled_from([0, 200]),
        are_seated=st.booleans(),
    )
    def open(self, seats: int, strikes: int, rejections: int, increment_ms: int, are_seated: bool) -> None:
        self.desk = Desk(
            seats, max_strikes=strikes, max_rejections=rejections, increment_ms=increment_ms, setup_ms=500
        )
        self.requests = 0
        if are_seated:
            self.desk.sit_all()

    def do(self, effects: list[Effect], slow_ms: int = 0) -> None:
        """The store may be slow to answer."""
        before = [self.desk.match.update_for(Seat(seat), self.desk.now) for seat in range(self.seats)]
        assert before == [self.desk.match.update_for(Seat(seat), self.desk.now) for seat in range(self.seats)]
        self.desk.now += slow_ms
        self.desk.do(effects)

    @property
    def seats(self) -> int:
        return len(self.desk.setup.bots)

    def seat(self, number: int) -> Seat:
        return Seat(number % self.seats)

    def is_asked(self) -> bool:
        return self.desk.prompt > 0

    @rule(ms=st.sampled_from([1, 40, 300, 900, 1600]))
    def wait(self, ms: int) -> None:
        self.desk.now += ms

    @rule(number=SEATS, with_nonce=st.booleans())
    def sit(self, number: int, with_nonce: bool) -> None:
        seat = self.seat(number)
        self.do(self.desk.match.sit(seat, nonce(seat) if with_nonce else None, self.desk.now))

    @precondition(is_asked)
    @rule(allowance_ms=st.integers(0, 150))
    def hand(self, allowance_ms: int) -> None:
        self.desk.hand(allowance_ms)

    @precondition(is_asked)
    @rule(
        choice=st.integers(0, 9),
        arrived_ms_ago=st.sampled_from([0, 0, 3, 60]),
        slow_ms=st.sampled_from([0, 5, 400]),
    )
    def move(self, choice: int, arrived_ms_ago: int, slow_ms: int) -> None:
        match, seat = self.desk.match, self.desk.asked
        moves = list(match.game.legal_moves(match.position.state, seat))
        self.requests += 1
        at = max(0, self.desk.now - arrived_ms_ago)
        effects = match.submit_move(
            seat, self.desk.prompt, f"m{self.requests}", moves[choice % len(moves)], at
        )
        self.do(effects, slow_ms)

    @precondition(is_asked)
    @rule()
    def move_illegally(self) -> None:
        self.desk.submit_illegal()

    @rule(number=SEATS, prompt=st.integers(0, 9))
    def guess(self, number: int, prompt: int) -> None:
        self.requests += 1
        move = self.desk.match.game.move_from_json({"play": "R3"})
        self.do(
            self.desk.match.submit_move(self.seat(number), prompt, f"g{self.requests}", move, self.desk.now)
        )

    @rule(number=SEATS)
    def resign(self, number: int) -> None:
        self.do(self.desk.match.resign(self.seat(number), self.desk.now))

    @rule()
    def tick(self) -> None:
        self.do(self.desk.match.tick(self.desk.now))

    @rule(ms=st.integers(1, 2000))
    def freeze(self, ms: int) -> None:
        self.do(self.desk.match.note_standstill(min(ms, self.desk.now), "STALL", self.desk.now))

    @precondition(is_asked)
    @rule(ms=st.integers(1, 900))
    def freeze_before_a_move(self, ms: int) -> None:
        effects = self.desk.match.note_standstill(min(ms, self.desk.now), "STORE", self.desk.now)
        at = max(0, self.desk.now - ms)
        move, prompt = self.desk.default_move(), self.desk.prompt
        self.do([*effects, *self.desk.match.submit_move(self.desk.asked, prompt, "thawed", move, at)])

    @rule(from_the_journal=st.booleans())
    def take_over(self, from_the_journal: bool) -> None:
        if from_the_journal:
            self.desk.match = replay_match(
                self.desk.setup, [decode_entry(encode_entry(entry)) for entry in self.desk.journal]
            )
        self.do(self.desk.match.take_over(self.desk.match.position.epoch + 1, self.desk.now))

    @invariant()
    def the_journal_has_no_gap_and_its_time_never_falls(self) -> None:
        journal = self.desk.journal
        assert [entry.seq for entry in journal] == list(range(1, len(journal) + 1))
        times = [entry.at_ms for entry in journal]
        assert times == sorted(times)

    @invariant()
    def a_replay_stands_where_the_live_match_stands(self) -> None:
        assert replay_match(self.desk.setup, self.desk.journal).position == self.desk.match.position

    @invariant()
    def nobody_is_told_a_negative_time(self) -> None:
        for seat in range(self.seats):
            told = self.desk.match.update_for(Seat(seat), self.desk.now)
            assert min(told.move_ms, told.bank_ms, told.charged_ms, told.allowance_ms) >= 0

    @invariant()
    def whoever_is_asked_has_not_left(self) -> None:
        prompt = self.desk.match.position.prompt
        assert prompt is None or not any(self.desk.seat(seat).left for seat in prompt.seats)

    def teardown(self) -> None:
        """It ends, and if it was played to the end, its record verifies."""
        if not self.is_asked():
            self.desk.now += 500 + 2000 * MOST_STEPS  # no set-up lasts longer, however often it stood still
            self.do(self.desk.match.tick(self.desk.now))
        for step in range(MOST_STEPS):
            if self.desk.match.is_over:
                break
            self.one_more(step)
        end = self.desk.match.position.end
        if isinstance(end, Finished):
            verdict = verify_line(self.desk.line())
            assert verdict.fault is None, str(verdict.fault)
            assert verdict.chain == record.build_record(self.desk.setup, self.desk.journal)["chain"]
        else:
            assert isinstance(end, Voided)

    def one_more(self, step: int) -> None:
        """Somebody always plays on, and the others lose time now and then."""
        steady = next(seat for seat in range(self.seats) if not self.desk.seat(seat).left)
        self.desk.now += 2500 if step % 5 == 0 and self.desk.asked != steady else 900
        self.do(self.desk.match.tick(self.desk.now))
        if not self.desk.match.is_over:
            self.desk.submit()


AnyMatch.TestCase.settings = settings(
    max_examples=examples(200, 40), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestAnyMatch = AnyMatch.TestCase
