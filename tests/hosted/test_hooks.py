"""What people see of a game from outside: drawings, sentences, rules and house bots, each checked; and the drawing of any view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from doubles.hosted_games import Bids, Highest, load_leduc, use_game

import seatwise
from seatwise.kits.hosted.frames import HostedFrameWriter
from seatwise.replay import ALL_OPEN, SPECTATOR, MatchReplay, read_replay
from seatwise.replay.page import render_page
from seatwise.replay.text import draw_step, list_steps
from seatwise.testing import check_game
from seatwise_referee.hosted.drawing import MOST_PIECES, describe_drawing, draw_any_view, encode_drawing
from seatwise_referee.hosted.hosted_rules import HostedRules

CARD: dict[str, Any] = {"text": "A♠", "colour": "black", "rank": 14, "marked": True}
PIECE: dict[str, Any] = {"row": 0, "column": 2, "text": "X", "colour": "red", "owner": 1}
BOARD: dict[str, Any] = {"board": "Board", "rows": 3, "columns": 3, "pieces": [PIECE]}
DRAWING: list[Any] = [
    {"zone": "Hand", "owner": 0, "cards": [CARD, {"face": "down"}], "layout": "stack"},
    {"counter": "Pot", "value": 300},
    BOARD,
    {"text": "Hearts are broken."},
]


class Drawn(Highest):
    """Draws its cards, and tells of them."""

    name = "drawn"

    def draw(self, view: Any, seat: int | None) -> Any:
        hand = [] if seat is None else [{"zone": "Hand", "owner": seat, "cards": [{"text": str(card)} for card in view["hand"]]}]  # fmt: skip
        return [{"zone": "Played", "cards": [{"text": str(card)} for card in view["played"]]}, *hand]

    def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> str:
        return f"{{{mover}}} lays {after['played'][-1]}{'.' if move is None else '!'}"


def play_one(game: str, tmp_path: Path) -> bytes:
    """Play a match of two random bots; its record."""
    out = tmp_path / "records.jsonl"
    seatwise.play(["random", "random"], game=game, matches=1, seed=1, records=str(out))
    return out.read_bytes()


def read_frames(record: bytes, viewpoint: Any = ALL_OPEN) -> MatchReplay:
    return read_replay(record, viewpoint)


# Drawings


def test_a_drawing_is_taken_as_it_is_and_described() -> None:
    assert json.loads(encode_drawing(DRAWING, 2)) == DRAWING
    assert describe_drawing(DRAWING) == [
        "Hand: A♠* (1 face down)", "Pot: 300", "Board:", "  . . X", "  . . .", "  . . .", "Hearts are broken.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("drawing", "why"),
    [
        ({}, "a drawing is a list of dicts"),
        ([{"box": 1}], "item 0 has none of the keys"),
        ([{"zone": "Hand"}], "item 0 has no 'cards'"),
        ([{"zone": "Hand", "cards": [{"colour": "red"}]}], "card 0 has no 'text'"),
        ([{"zone": "Hand", "cards": [{"text": "A", "colour": "pink"}]}], "wrong value of 'colour'"),
        ([{"zone": "Hand", "cards": [], "owner": 2}], "wrong value of 'owner'"),
        ([{"zone": "Hand", "cards": [], "onclick": "x"}], "the key 'onclick', which no drawing has"),
        ([{"counter": "Pot", "value": 1.5}], "wrong value of 'value'"),
        ([{"text": "x" * 301}], "wrong value of 'text'"),
        ([{"text": "a\nb"}], "wrong value of 'text'"),
        ([{**BOARD, "rows": 41}], "wrong value of 'rows'"),
        ([{**BOARD, "columns": 2}], "piece 0 is not on the board"),
        ([{"text": ""}] * 401, "it has 401 pieces; at most 400"),
        ([{"text": "\u4e00" * 300}] * 40, "at most 65536"),
    ],
)
def test_a_wrong_drawing_is_refused(drawing: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("[", r"\[")):
        encode_drawing(drawing, 2)


def test_any_view_is_drawn_as_cards_tables_and_text() -> None:
    view = {
        "hand": ["A", 7, {"rank": 3, "suit": "S"}], "pot_size": 12, "over": False, "nobody": None, "grid": [["x", None], ["", "o"]],
        "rounds": [["call"], ["raise", "fold"]], "deep": {"in": {"side": {"more": {"here": [1, [2]]}}}}, "many": list(range(500)),
    }  # fmt: skip
    drawn = draw_any_view(view)
    assert drawn[0] == {"zone": "Hand", "cards": [{"text": "A"}, {"text": "7"}, {"text": "3 S"}]}
    assert drawn[1:3] == [{"counter": "Pot size", "value": 12}, {"text": "Over: no"}]
    assert (drawn[3]["board"], len(drawn[3]["pieces"])) == ("Grid", 2)
    assert [item["zone"] for item in drawn[4:6]] == ["Rounds 1", "Rounds 2"]
    assert drawn[-1] == {"text": "The rest of the view is not shown."}
    encode_drawing(drawn, 2)
    assert "'" not in json.dumps(drawn)  # no repr
    assert encode_drawing(draw_any_view({f"{key}\n" * 60: key * 400 for key in "abc"}), 2)
    assert len(draw_any_view({str(number): number for number in range(900)})) <= MOST_PIECES


# Replays from records


def test_a_game_without_hooks_is_drawn_from_its_views(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_game(monkeypatch, Highest)
    replay = read_frames(play_one("highest", tmp_path))
    first = replay.frames[0]
    assert first.table["drawing"] == []
    assert [len(own["drawing"][0]["cards"]) for own in first.own] == [3, 3]  # type: ignore[index,call-overload]
    assert [own["drawing"][0]["owner"] for own in first.own] == [0, 1]  # type: ignore[index,call-overload]
    text = f"{list(list_steps(replay))} {draw_step(replay, 3, 80)}"
    assert "plays card " in text
    assert "HostedView" not in text


def test_hooks_draw_and_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_game(monkeypatch, Drawn)
    record = play_one("drawn", tmp_path)
    replay, seen = read_frames(record), read_frames(record, SPECTATOR)
    assert replay.frames[1].says == f"random lays {replay.frames[1].table['drawing'][0]['cards'][0]['text']}!"
    assert seen.frames[1].says == replay.frames[1].says.replace(
        "!", "."
    )  # a spectator's sentence has views alone
    assert all(own is None for frame in seen.frames for own in frame.own)
    hands = [own["drawing"] for own in replay.frames[0].own]  # type: ignore[index,call-overload]
    assert [item["zone"] for hand in hands for item in hand] == ["Hand", "Hand"]


def test_texts_of_a_game_stay_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Nasty(Drawn):
        def draw(self, view: Any, seat: int | None) -> Any:
            return [{"text": "</script><b>"}, {"zone": "<i>", "cards": [{"text": '"><s>'}]}]

        def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> str:
            return "<img src=x>"

    use_game(monkeypatch, Nasty)
    page = render_page(read_frames(play_one("drawn", tmp_path)))
    for text in ("</script><b>", "<i>", '"><s>', "<img"):
        assert text not in page


def test_choices_are_told_to_no_other_before_all_have_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_game(monkeypatch, Bids)
    record = play_one("bids", tmp_path)
    for viewpoint in (SPECTATOR, 0):
        frames = read_frames(record, viewpoint).frames
        assert [frame.says for frame in frames[1:-1]] == ["All have chosen."] * 3
    assert len(read_frames(record).frames) == 8  # all hands open: each choice is a step


@pytest.mark.parametrize("how", ["raise", "lie"])
def test_a_hook_that_fails_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    class Wrong(Drawn):
        def draw(self, view: Any, seat: int | None) -> Any:
            if how == "raise":
                raise SystemExit
            return [{"nonsense": 1}]

    outcomes = []
    for game in (Drawn, Wrong):
        use_game(monkeypatch, game)
        record = play_one("drawn", tmp_path)
        outcomes.append(json.loads(record)["outcome"])
    assert outcomes[0] == outcomes[1]
    replay = read_frames(record)
    assert replay.frames[-1].table["drawing"][0]["zone"] == "Played"  # from its views
    assert replay.frames[1].says.startswith("random plays card")


def test_points_that_are_drawn_are_a_curve() -> None:
    class Counts(Drawn):
        def draw(self, view: Any, seat: int | None) -> Any:
            return [{"counter": "Points", "owner": seat, "value": 3 + seat} for seat in (0, 1)]

    rules = HostedRules(Counts())
    state = rules.deal(2, bytes(32), rules.complete_options({}))
    assert HostedFrameWriter(rules).write_table(rules.view(state, None))["running"] == [3, 4]


# check-game


class Peeks(Drawn):
    """Remembers in `draw` what another view has shown."""

    def show_state(self, state: Any, seat: int | None) -> Any:
        self.seen = state.hands
        return super().show_state(state, seat)

    def draw(self, view: Any, seat: int | None) -> Any:
        return [{"text": str(self.seen)}]


class Gossips(Drawn):
    def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> Any:
        return ["?"]


class DrawsNonsense(Drawn):
    def draw(self, view: Any, seat: int | None) -> Any:
        return [{"zone": "Hand", "cards": 1}]


class Marks(Highest):
    rules = "# Rules\n<script>alert(1)</script>"


class Cheats(Highest):
    house_bots: ClassVar[Any] = {"easy": lambda view, moves, chance: {"card": 99}}


class Levels(Highest):
    house_bots: ClassVar[Any] = {"Very easy": lambda view, moves, chance: moves[0]}


@pytest.mark.parametrize(
    ("game", "why"),
    [
        (Peeks, "draw gives another result for the same view"),
        (Gossips, "narrate must return one line of text"),
        (DrawsNonsense, "draw returned no drawing: item 0 has a wrong value of 'cards'"),
        (Marks, "rules is Markdown without HTML"),
        (Cheats, 'the house bot easy chose {"card":99}, which is not legal'),
        (Levels, "house_bots is a dict of functions by level"),
    ],
)
def test_a_wrong_hook_is_found(game: Any, why: str) -> None:
    report = check_game(game, matches=4)
    assert any(why in fault for fault in report.faults), report


@pytest.mark.parametrize("game", [Drawn, load_leduc()])
def test_hooks_that_are_right_have_no_fault(game: Any) -> None:
    assert check_game(game, matches=6).faults == ()
