"""The rules of a game from outside: what is worked out in a step, and each wrong value that a game may give."""

from __future__ import annotations

import hmac
import json
from collections import Counter
from typing import Any

import pytest
from doubles.hosted_games import Highest, load_leduc, use_game

import seatwise
from seatwise.kits.hosted.installed_games import make_kit
from seatwise_referee.game import BadOptions, IllegalMove, Seat
from seatwise_referee.hosted.chance import Chance
from seatwise_referee.hosted.hosted_game import GameFault, HostedGame, HostedOption
from seatwise_referee.hosted.hosted_rules import HostedRules
from seatwise_referee.hosted.payload import HostedMove, encode_payload
from seatwise_referee.mixed_move import draw_index
from seatwise_referee.verify import verify_line, verify_lines

SEED = bytes(range(32))


def rules_of(game: HostedGame[Any]) -> HostedRules:
    return HostedRules(game, "a-package")


def dealt(game: HostedGame[Any], **options: int | str) -> tuple[HostedRules, Any]:
    rules = rules_of(game)
    return rules, rules.deal(2, SEED, rules.complete_options(options))


# Chance


def test_a_draw_is_what_the_page_says() -> None:
    drawn = int.from_bytes(hmac.digest(SEED, b"draw/7/0", "sha256"))
    assert draw_index(SEED, 7, (5, 0, 6)) == (0 if drawn % 11 < 5 else 2)


def test_outcomes_come_as_often_as_their_weights_say() -> None:
    counted = Counter(draw_index(SEED, number, (1, 0, 3)) for number in range(4000))
    assert counted[1] == 0
    assert 900 < counted[0] < 1100


def test_every_order_of_a_shuffle_comes_equally_often() -> None:
    chance = Chance(SEED)
    counted = Counter("".join(chance.shuffle_items("abc")) for _ in range(3000))
    assert len(counted) == 6
    assert all(400 < each < 600 for each in counted.values())
    assert chance.draws == 6000


@pytest.mark.parametrize("weights", [(), (0, 0), (1, -1), (1.5,), (True,), (2**64, 1)])
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="weight"):
        draw_index(SEED, 0, weights)


# A step


def test_a_step_works_out_turn_moves_views_and_points() -> None:
    rules, state = dealt(Highest(), cards=1)
    assert (state.asked, state.number) == (0, 1)
    own, other, spectator = state.views
    assert own.legal_moves == [{"card": own.data["hand"][0]}]
    assert (other.legal, spectator.data) == ((), {"hand": [], "played": []})
    for seat in (Seat(0), Seat(1)):
        state = rules.play(state, seat, next(rules.legal_moves(state, seat)))
    outcome = rules.outcome(state)
    assert outcome is not None
    assert outcome.points == tuple(state.views[2].data["played"])
    assert rules.prompt(state) is None


def test_the_author_s_code_never_sees_an_illegal_move() -> None:
    class Fragile(Highest):
        def play_move(self, state: Any, move: Any, chance: Chance) -> Any:
            assert move in self.list_moves(state)
            return super().play_move(state, move, chance)

    rules, state = dealt(Fragile())
    for move in (HostedMove('{"card":99}'), HostedMove("not json"), None, {"card": 1}):
        with pytest.raises(IllegalMove, match="legal moves"):
            rules.play(state, Seat(0), move)  # type: ignore[arg-type]
    with pytest.raises(IllegalMove, match="not asked"):
        rules.play(state, Seat(1), rules.default_move(state, Seat(0)))


def test_options_are_read_without_the_author_s_code() -> None:
    rules = rules_of(Highest())
    assert rules.complete_options({"cards": "5"}) == {"cards": 5, "deck": "short"}
    for given, why in (
        ({"cards": 9}, "cards: must be 1 to 5"), ({"cards": "x"}, "cards: must be"), ({"cards": True}, "cards: must be"),
        ({"deck": "huge"}, "deck: must be one of short, long"), ({"dick": 1}, "no such option; there is cards, deck"),
    ):  # fmt: skip
        with pytest.raises(BadOptions, match=why):
            rules.complete_options(given)


def test_the_rules_version_names_the_package() -> None:
    assert rules_of(Highest()).rules_version == "a-package/1"


# Games that do wrong


def game_with(**methods: Any) -> HostedGame[Any]:
    return type("Wrong", (Highest,), methods)()  # type: ignore[no-any-return]


def fail(*_: Any) -> Any:
    raise KeyError("oops")


def leave(*_: Any) -> Any:
    raise SystemExit(3)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


def unprintable(*_: Any) -> Any:
    raise Unprintable


WRONG = {
    "an exception at the deal": ({"start_match": fail}, "start_match raised KeyError"),
    "an exit": ({"find_turn": leave}, "find_turn raised SystemExit"),
    "an exception without a text": ({"find_turn": unprintable}, "find_turn raised Unprintable"),
    "endless recursion": ({"find_turn": lambda self, state: self.find_turn(state)}, "raised RecursionError"),
    "a method that is not written": ({"count_points": HostedGame.count_points, "find_turn": lambda *_: None}, "count_points raised NotImplementedError"),
    "a seat that is none": ({"find_turn": lambda *_: 2}, "find_turn returned 2; a seat is 0 to 1, or None"),
    "a truth value as a seat": ({"find_turn": lambda *_: True}, "find_turn returned True"),
    "no legal move": ({"list_moves": lambda *_: []}, "list_moves must return a list of 1 to"),
    "endless legal moves": ({"list_moves": lambda *_: range(10**9)}, "list_moves must return a list of 1 to"),
    "a move twice": ({"list_moves": lambda *_: [1, 1]}, "list_moves returned a move twice"),
    "a fraction as a move": ({"list_moves": lambda *_: [0.5]}, "list_moves returned a value that is no JSON here: it has the type float"),
    "a view that is no object": ({"show_state": lambda *_: [1]}, "show_state must return a dict, not list"),
    "a view with a set": ({"show_state": lambda *_: {"a": [{1}]}}, r"a\[0\] has the type set"),
    "a view with a number as key": ({"show_state": lambda *_: {1: 2}}, "keys are texts"),
    "a huge number": ({"show_state": lambda *_: {"a": 2**60}}, "whole numbers end at 2"),
    "a huge view": ({"show_state": lambda *_: {"a": "x" * 70_000}}, "at most 65536 are allowed"),
    "points of a missing seat": ({"find_turn": lambda *_: None, "count_points": lambda *_: [1]}, "count_points must return 2 whole numbers"),
    "points with fractions": ({"find_turn": lambda *_: None, "count_points": lambda *_: [1, 0.5]}, "count_points must return 2 whole numbers"),
    "a leak": ({"show_state": lambda self, state, seat: {"hands": [list(hand) for hand in state.hands]}}, "show_state shows seat 0 a secret"),
    "a leak to spectators": ({"show_state": lambda self, state, seat: {"hand": list(state.hands[seat or 0])}}, "show_state shows a spectator a secret"),
    "a leak by the legal moves": ({"list_moves": lambda self, state: [list(state.hands[1])]}, "list_moves tells seat 0 a secret"),
    "a wrong weight": ({"start_match": lambda self, seats, options, chance: chance.draw_outcome([(1, 0.5)])}, "start_match raised ValueError"),
}  # fmt: skip


@pytest.mark.parametrize(("methods", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_a_fault_of_the_game(methods: dict[str, Any], why: str) -> None:
    with pytest.raises(GameFault, match=why):
        dealt(game_with(**methods))


def test_a_match_without_end_is_a_fault() -> None:
    rules, state = dealt(game_with(most_moves=2))
    for _ in range(2):
        state = rules.play(state, state.asked, rules.default_move(state, state.asked))
    with pytest.raises(GameFault, match="no end after 2 moves"):
        rules.play(state, state.asked, rules.default_move(state, state.asked))


FACTS = {
    "no name": ({"name": ""}, "the name ''"),
    "a name with a capital": ({"name": "Highest"}, "lower-case letters"),
    "a path as name": ({"name": "../etc"}, "lower-case letters"),
    "one seat": ({"table_sizes": range(1, 3)}, "table_sizes is range"),
    "no seats": ({"table_sizes": range(3, 3)}, "table_sizes is range"),
    "a list of seats": ({"table_sizes": [2, 3]}, "table_sizes is"),
    "no time": ({"free_ms": 0}, "free_ms is 0"),
    "an option without its default": ({"options": {"a": HostedOption(7, range(3))}}, "contains the default"),
    "an option that is none": ({"options": {"a": 3}}, "is no HostedOption"),
    "an option's name": ({"options": {"A b": HostedOption(1, range(3))}}, "underscores"),
}


@pytest.mark.parametrize(("facts", "why"), FACTS.values(), ids=FACTS)
def test_wrong_facts_are_refused(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(GameFault, match=why):
        rules_of(game_with(**facts))


@pytest.mark.parametrize("found", [None, 7, "leduc", HostedGame, dict])
def test_a_value_that_is_no_game_is_refused(found: object) -> None:
    with pytest.raises(GameFault):
        make_kit(found)


def test_payloads_are_canonical() -> None:
    assert encode_payload({"b": (1, None), "a": "ü"}, 99) == r'{"a":"\u00fc","b":[1,null]}'
    with pytest.raises(ValueError, match="more than 16 levels"):
        encode_payload(json.loads("[" * 20 + "]" * 20), 99)


# A local table, and records


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_matches_are_played_at_a_local_table_and_verified(
    monkeypatch: Any, tmp_path: Any, seats: int
) -> None:
    use_game(monkeypatch, Highest, "a-package")
    told = [
        seatwise.play(["random"] * seats, game="highest", matches=6, seed=1, records=tmp_path / name)
        for name in "ab"
    ]
    assert [each.points for each in told[0]] == [each.points for each in told[1]]
    verdicts = list(verify_lines((tmp_path / "a").read_bytes().splitlines()))
    assert [verdict.fault for verdict in verdicts] == [None] * 6


def test_leduc_is_played_and_its_draws_between_moves_are_worked_out_again(
    monkeypatch: Any, tmp_path: Any
) -> None:
    use_game(monkeypatch, load_leduc())
    seatwise.play(["random", "random"], game="leduc", matches=40, seed=3, records=tmp_path / "out")
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert [verdict.fault for verdict in verify_lines(lines)] == [None] * 40
    assert json.loads(lines[0])["deals"] == []
    assert any("raise" in line.decode() for line in lines)


def written(record: Any) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def test_a_forged_move_and_a_forged_result_are_found(monkeypatch: Any, tmp_path: Any) -> None:
    use_game(monkeypatch, Highest)
    seatwise.play(["random", "random"], game="highest", seed=1, records=tmp_path / "out")
    record = json.loads((tmp_path / "out").read_text())
    move = next(entry for entry in record["entries"] if entry["kind"] == "move")
    right = move["move"]
    for change, why in (
        ({"card": 99}, "none of the legal moves"),
        ("x" * 5000, "at most 4096 are allowed"),
        ([[]], "none of the legal"),
    ):
        move["move"] = change
        fault = verify_line(written(record)).fault
        assert fault is not None
        assert why in fault.text
    move["move"] = right
    record["outcome"]["points"][0] += 1
    assert verify_line(written(record)).fault is not None


def test_a_record_of_another_package_or_version_is_not_checked(monkeypatch: Any, tmp_path: Any) -> None:
    use_game(monkeypatch, Highest, "a-package")
    seatwise.play(["random", "random"], game="highest", seed=1, records=tmp_path / "out")
    use_game(monkeypatch, Highest, "another-package")
    fault = verify_line((tmp_path / "out").read_text()).fault
    assert fault is not None
    assert fault.is_unchecked
    assert "'a-package/1'; here it is 'another-package/1'" in fault.text


def test_a_game_that_fails_voids_its_match_at_a_local_table(monkeypatch: Any, capfd: Any) -> None:
    use_game(monkeypatch, game_with(name="failing", play_move=fail))
    [played] = seatwise.play(["random", "random"], game="failing")
    assert played.void_reason == "GAME_FAULT"
    assert "KeyError" in capfd.readouterr().err
