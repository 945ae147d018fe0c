"""Games from outside in which several seats choose at once, and games that cannot list all legal moves."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.hosted_games import Bids, Guesses, use_game

import seatwise
from seatwise.kits.hosted import codec as hosted
from seatwise.v1.json_payload_pb2 import JsonView
from seatwise_referee.decision import AcceptMove, RejectRequest, ShowView, WakeAt
from seatwise_referee.ending import RejectReason
from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.registry import default_time_control
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.hosted.hosted_rules import UNREADABLE_MOVE, HostedRules
from seatwise_referee.hosted.payload import HostedMove
from seatwise_referee.match import Match
from seatwise_referee.setup import Setup
from seatwise_referee.verify import verify_lines

SEED = bytes(range(32))
FIRST, SECOND = Seat(0), Seat(1)


def move_of(rules: HostedRules, state: Any, seat: Seat) -> HostedMove:
    return next(rules.legal_moves(state, seat))


# Several seats at once


def test_a_choice_is_shown_to_nobody_before_all_have_chosen() -> None:
    rules = HostedRules(Bids())
    state = rules.deal(2, SEED, rules.complete_options({}))
    after = rules.play(state, SECOND, move_of(rules, state, SECOND))
    assert (state.asked_seats, after.asked_seats) == ((0, 1), (0,))
    assert rules.view(after, FIRST) == rules.view(state, FIRST)
    assert rules.view(after, None) == rules.view(state, None)
    assert rules.view(after, SECOND).text == rules.view(state, SECOND).text
    assert rules.view(after, SECOND).legal == ()
    with pytest.raises(IllegalMove, match="not asked"):
        rules.play(after, SECOND, move_of(rules, state, SECOND))
    end = rules.play(after, FIRST, move_of(rules, after, FIRST))
    assert len(end.views[0].data["played"]) == 2


def test_the_order_of_choices_changes_nothing() -> None:
    rules = HostedRules(Bids())
    state = rules.deal(3, SEED, rules.complete_options({}))
    ends = []
    for order in ((0, 1, 2), (2, 0, 1)):
        after = state
        for seat in map(Seat, order):
            after = rules.play(after, seat, rules.default_move(after, seat))
        ends.append(after)
    assert ends[0] == ends[1]


def match_of(monkeypatch: pytest.MonkeyPatch, game: Any) -> Match:
    """A match whose two bots have sat down and been shown the first question."""
    kit = use_game(monkeypatch, game)
    setup = Setup(
        match="matches/m1", game=kit.name, rules_version=kit.game.rules_version,
        options=kit.game.complete_options({}), bots=("bots/a/versions/1", "bots/b/versions/1"),
        time_control=default_time_control(kit.name), seed=SEED,
    )  # fmt: skip
    match = Match(setup)
    for seat in (FIRST, SECOND):
        match.sit(seat, None, 0)
        match.confirm_entries(0)
    for seat in (FIRST, SECOND):
        match.note_delivery(seat, 1, 0)
    return match


def test_a_seat_is_not_told_that_another_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    match = match_of(monkeypatch, Bids)
    before = match.update_for(FIRST, 100)
    effects = match.submit_move(SECOND, 1, "a", move_of(match.game, match.position.state, SECOND), 100)
    effects += match.confirm_entries(100)
    assert any(isinstance(effect, AcceptMove) and effect.seat == SECOND for effect in effects)
    assert not [effect for effect in effects if isinstance(effect, ShowView)]
    assert match.update_for(FIRST, 100)._replace(seen_seq=0) == before._replace(seen_seq=0)
    effects = match.submit_move(FIRST, 1, "b", move_of(match.game, match.position.state, FIRST), 200)
    assert {effect.seat for effect in effects if isinstance(effect, ShowView)} == {FIRST, SECOND}


def test_the_referee_plays_for_the_seat_that_does_not_choose_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    match = match_of(monkeypatch, Bids)
    match.submit_move(SECOND, 1, "a", move_of(match.game, match.position.state, SECOND), 100)
    [wake] = [effect for effect in match.confirm_entries(100) if isinstance(effect, WakeAt)]
    assert wake.at_ms is not None
    match.tick(wake.at_ms)
    match.confirm_entries(wake.at_ms)
    assert [own.strikes for own in match.position.seats] == [1, 0]
    assert match.position.prompt is not None
    assert match.position.prompt.number == 2


@pytest.mark.parametrize("seats", [2, 3])
def test_joint_matches_are_played_and_verified(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, seats: int
) -> None:
    class Fails(seatwise.Bot):
        def decide(self, view: Any) -> Any:
            raise RuntimeError("my mistake")

    use_game(monkeypatch, Bids)
    bots = ["random"] * (seats - 1) + [Fails]
    results = seatwise.play(bots, game="bids", matches=4, seed=1, records=tmp_path / "out")
    assert all(each.void_reason == "" for each in results)
    assert [sorted(each.failures) for each in results] == [[0] * (seats - 1) + [3]] * 4
    verdicts = list(verify_lines((tmp_path / "out").read_bytes().splitlines()))
    assert [verdict.fault for verdict in verdicts] == [None] * 4


# Moves that are not listed


def guesses() -> tuple[HostedRules, Any]:
    rules = HostedRules(Guesses())
    return rules, rules.deal(2, SEED, rules.complete_options({}))


def test_a_move_that_is_not_listed_is_played_if_the_game_allows_it() -> None:
    rules, state = guesses()
    assert (state.views[0].has_more_moves, state.views[1].has_more_moves) == (True, False)
    after = rules.play(state, FIRST, HostedMove('{"guess":77}'))
    assert after.views[1].data["played"] == [77]
    assert rules.default_move(state, FIRST).value == {"guess": 0}


@pytest.mark.parametrize(
    ("move", "why"),
    [('{"guess":-1}', "guess a whole number from 0 to 999999999"), ('{"gess":1}', UNREADABLE_MOVE), ("null", UNREADABLE_MOVE)],
)  # fmt: skip
def test_a_bot_is_told_why_the_game_refuses_its_move_and_voids_no_match_by_it(move: str, why: str) -> None:
    rules, state = guesses()
    with pytest.raises(IllegalMove, match=why):
        rules.play(state, FIRST, HostedMove(move))


def test_a_refusal_that_tells_a_secret_is_a_fault_of_the_game() -> None:
    class Tells(Guesses):
        def check_move(self, state: Any, seat: int, move: Any) -> str:
            return f"the other seat has {state.hands[1 - seat]}"

    rules = HostedRules(Tells())
    state = rules.deal(2, SEED, rules.complete_options({}))
    with pytest.raises(GameFault, match="check_move tells seat 0 a secret"):
        rules.play(state, FIRST, HostedMove("[]"))


def test_a_refused_move_counts_as_any_illegal_move(monkeypatch: pytest.MonkeyPatch) -> None:
    match = match_of(monkeypatch, Guesses)
    effects = match.submit_move(FIRST, 1, "a", HostedMove("null"), 100)
    assert [each for each in effects if isinstance(each, RejectRequest)] == [
        RejectRequest(FIRST, "a", RejectReason.ILLEGAL, UNREADABLE_MOVE)
    ]


def test_a_bot_is_asked_again_at_a_local_table_until_it_has_no_more_tries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    class Learns(seatwise.Bot):
        tries = 0

        def decide(self, view: Any) -> Any:
            assert view.has_more_moves
            self.tries += 1
            return None if self.tries == 1 else {"guess": view.data["hand"][0]}

    class Stubborn(seatwise.Bot):
        def decide(self, view: Any) -> Any:
            return {"guess": -1}

    use_game(monkeypatch, Guesses)
    [played] = seatwise.play([Learns, Stubborn], game="guesses", seed=5, records=tmp_path / "out")
    assert played.points[0] > 0
    assert played.failures[0] == 1
    assert [str(ending) for ending in played.endings] == ["COMPLETED", "ILLEGAL_MOVES"]
    [verdict] = verify_lines((tmp_path / "out").read_bytes().splitlines())
    assert verdict.fault is None


def test_the_wire_says_that_other_moves_may_be_legal_too() -> None:
    _, state = guesses()
    for view in state.views:
        message = JsonView.FromString(hosted.encode_view(view))
        assert message.has_more_moves is view.has_more_moves
        assert hosted.decode_view(message) == view
