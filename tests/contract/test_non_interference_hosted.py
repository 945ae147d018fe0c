"""A spectator of a game from outside learns nothing of a hidden hand: in two worlds that look the same to it, all bytes are the same."""

# ruff: noqa: ARG002  # games have the arguments of `HostedGame`

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doubles.hosted_games import Bids, Goofspiel, Highest, load_leduc, use_game

import seatwise
from seatwise.hosting import Chance, HostedGame
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_referee.journal import Dealt, Entry, Moved, entry_from_json
from seatwise_referee.setup import Setup
from seatwise_referee.verify.header import setup_of
from seatwise_server.pages.match_page import PositionWriter
from seatwise_server.play import game_views
from seatwise_server.play.game_views import ViewMaker, _encode_step

Leduc: Any = load_leduc()


def play_one(game: str, tmp_path: Path) -> tuple[Setup, list[Entry]]:
    """A match of two random bots: how it was created, and its journal."""
    out = tmp_path / "records.jsonl"
    seatwise.play(["random", "random"], game=game, matches=1, seed=4, records=str(out))
    record = json.loads(out.read_bytes())
    return setup_of(record), list(map(entry_from_json, record["entries"]))


def told_bytes(setup: Setup, entries: list[Entry]) -> bytes:
    """All that a spectator and a page are told of this part of a match."""
    asked = {"game": setup.game, "has_hooks": True, "setup": setup.to_json(), "after": 0}
    texts = [json.dumps(each.to_json()) for each in entries]
    answer, _ = ViewMaker().answer_request(0, {"wanted": "steps", "with": {**asked, "entries": texts}})
    responses = [_encode_step(setup.game, step) for step in answer["steps"]]
    writer = PositionWriter(match_pb2.Match(game=f"games/{setup.game}", bots=setup.bots))
    before: match_service_pb2.WatchMatchResponse | None = None
    frames: list[Any] = []
    for response in responses:
        frames += [frame.to_json() for frame in writer.frames_between(before, response)]
        before = response
    return b"".join(each.SerializeToString() for each in responses) + json.dumps(frames).encode()


def in_another_world(game: type[HostedGame[Any]], number: int) -> type[HostedGame[Any]]:
    """The game with other hidden cards, which a spectator cannot tell from these."""

    class Twin(game):  # type: ignore[misc,valid-type]
        def start_match(self, seats: int, options: Any, chance: Any) -> Any:
            dealt = super().start_match(seats, options, chance)
            return self.resample_state(dealt, None, Chance(bytes([number]) * 32))

    return Twin


def beginning_of(entries: list[Entry], moves: int) -> list[Entry]:
    """The entries up to the deal and so many moves."""
    places = [place for place, each in enumerate(entries) if isinstance(each, (Dealt, Moved))]
    return entries[: places[moves] + 1]


class LeaksByDrawing(Leduc):
    """Draws a hand that only `show_state` has had: a hook that remembers."""

    seen = ""

    def show_state(self, state: Any, seat: int | None) -> Any:
        self.seen = state.hands[0] if seat == 0 else self.seen
        return super().show_state(state, seat)

    def draw(self, view: Any, seat: int | None) -> Any:
        return [{"text": self.seen}]


@pytest.mark.parametrize(("game", "moves"), [(Leduc, 1), (Highest, 0), (Bids, 0), (LeaksByDrawing, 1)])
def test_other_hidden_cards_change_no_byte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, game: Any, moves: int
) -> None:
    use_game(monkeypatch, game)
    setup, entries = play_one(game.name, tmp_path)
    start = beginning_of(entries, moves)
    told = {told_bytes(setup, start)}
    for number in range(6):
        use_game(monkeypatch, in_another_world(game, number))
        told.add(told_bytes(setup, start))
    assert (len(told) > 1) == (game is LeaksByDrawing)  # which shows that a leak is noticed here


@pytest.mark.parametrize("game", [Bids, Goofspiel])
def test_a_choice_among_several_changes_no_byte_before_all_have_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, game: Any
) -> None:
    use_game(monkeypatch, game)
    setup, entries = play_one(game.name, tmp_path)
    assert told_bytes(setup, beginning_of(entries, 1)) == told_bytes(setup, beginning_of(entries, 0))
    assert told_bytes(setup, beginning_of(entries, 2)) != told_bytes(setup, beginning_of(entries, 1))


class LeaksToSpectators(Highest):
    def show_state(self, state: Any, seat: int | None) -> Any:
        shown = super().show_state(state, seat)
        return {**shown, "hand": list(state.hands[0])} if seat is None else shown


class ShowsWhatAllMayNot(Highest):
    """Shows spectators cards that no seat may see, and says that nothing is hidden."""

    def show_state(self, state: Any, seat: int | None) -> Any:
        return {
            "played": list(state.played),
            **({"hands": [*map(list, state.hands)]} if seat is None else {}),
        }

    def resample_state(self, state: Any, seat: int | None, chance: Any) -> Any:
        return state


class Unchecked(Highest):
    resample_state = HostedGame.resample_state


class Open(Highest):
    """Hides nothing."""

    def show_state(self, state: Any, seat: int | None) -> Any:
        return {"hands": [*map(list, state.hands)], "played": list(state.played)}

    def resample_state(self, state: Any, seat: int | None, chance: Any) -> Any:
        return state


@pytest.mark.parametrize(
    ("game", "passes"),
    [
        (Leduc, True), (Highest, True), (Bids, True), (Goofspiel, True), (Open, True),
        (LeaksToSpectators, False), (ShowsWhatAllMayNot, False), (LeaksByDrawing, False), (Unchecked, False),
    ],
)  # fmt: skip
def test_the_server_s_own_check_passes_only_games_that_are_known_to_tell_no_secret(
    monkeypatch: pytest.MonkeyPatch, game: Any, passes: bool
) -> None:
    monkeypatch.setattr(game_views, "CHECK_S", 0.5)
    kit = use_game(monkeypatch, game)
    answer, _ = ViewMaker().answer_request(
        0, {"wanted": "check", "with": {"game": kit.name, "has_hooks": True}}
    )
    assert answer["passed"] is passes, answer
