"""Par and playouts: what published house bots and simulations score at every seat of a record's deals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatwise
from seatwise_server.league.par import par_of, playouts_of


def records(tmp_path: Path, *bots: str, matches: int = 2) -> list[dict[str, Any]]:
    file = tmp_path / "records.jsonl"
    seatwise.play(list(bots), matches=matches, seed=7, records=file)
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_par_of_a_match_of_par_bots_is_its_points(tmp_path: Path) -> None:
    for record in records(tmp_path, "greedy", "greedy", "greedy"):
        assert par_of(record) == tuple(map(float, record["outcome"]["points"]))


def test_par_does_not_depend_on_who_played(tmp_path: Path) -> None:
    [record] = records(tmp_path, "random", "greedy", matches=1)
    [other] = records(tmp_path, "greedy", "random", matches=1)
    assert record["deals"] == other["deals"]
    assert par_of(record) == par_of(other) is not None
    assert playouts_of(record) == playouts_of(other) is not None


@pytest.mark.parametrize(
    ("par", "playouts"),
    [
        ((31, 32), (59.84375, 67.0)),
        ((75, 54, 34), (36.4375, 45.1875, 44.40625)),
        ((61, 53, 39, 42), (40.71875, 16.5, 31.65625, 14.59375)),
    ],
)
def test_the_par_of_a_deal_is_the_same_for_ever(par: tuple[int, ...], playouts: tuple[float, ...]) -> None:
    """A season keeps its records and no pars: whoever works its page out again plays them again. A par bot that
    plays otherwise, be it better, would belie every page that was published: it must be another bot.
    """
    record = {
        "game": "ugo",
        "rules_version": "1",
        "options": {"rounds": 4},
        "seats": [{}] * len(par),
        "seed": bytes(range(32)).hex(),
        "nonces": [None] * len(par),
    }
    assert par_of(record) == par
    assert playouts_of(record) == playouts


def test_another_deal_has_another_par(tmp_path: Path) -> None:
    one, other = records(tmp_path, "random", "random")
    assert par_of(one) != par_of(other)
    assert playouts_of(one) != playouts_of(other)


def test_all_matches_of_a_set_have_one_par(tmp_path: Path) -> None:
    one, other = records(tmp_path, "random", "random")
    for number, record in enumerate((one, other), 1):
        record["deal_set"] = {"name": "sets/x", "number": number, "size": 2, "seed": "ab" * 32}
    assert par_of(one) == par_of(other)
    assert playouts_of(one) == playouts_of(other)


def test_a_game_without_a_par_bot_has_no_par() -> None:
    assert par_of({"game": "ubongo"}) is playouts_of({"game": "ubongo"}) is None


def test_playouts_of_a_deal_are_near_the_points_of_players_who_choose_as_they_do(tmp_path: Path) -> None:
    """Over eight deals, the seat for which playouts show most makes more points than the one for which they show least."""
    file = tmp_path / "records.jsonl"
    seatwise.play(["random"] * 4, matches=8, seed=3, records=file)
    ahead = 0
    for record in map(json.loads, file.read_text().splitlines()):
        found = playouts_of(record) or ()
        points = record["outcome"]["points"]
        ahead += points[found.index(max(found))] - points[found.index(min(found))]
    assert ahead > 0
