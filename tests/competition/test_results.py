"""Results as they are kept and read again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatwise_server.competition.logged_result import LoggedResult

BOTS = ("bots/greedy/versions/1", "bots/random/versions/1", "bots/greedy/versions/2")
RESULT = LoggedResult(
    seq=7,
    match="matches/7f3k",
    bots=BOTS,
    points=(11, 3, 11),
    ranks=(1, 3, 1),
    endings=("COMPLETED", "TIMED_OUT", "COMPLETED"),
    chain="ab" * 32,
    deal="leagues/summer/deals/3",
    par=(9.0, 4.5, 10.0),
)


def test_a_result_comes_back_from_its_json_as_it_was() -> None:
    assert LoggedResult.from_json(json.loads(json.dumps(RESULT.to_json()))) == RESULT


def test_rare_fields_may_be_left_out() -> None:
    line = RESULT.to_json()
    for name in ("chain", "deal", "par"):
        del line[name]
    assert LoggedResult.from_json(line) == LoggedResult(
        7, "matches/7f3k", BOTS, (11, 3, 11), (1, 3, 1), RESULT.endings
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seq", True),
        ("seq", 0),
        ("match", 3),
        ("bots", "bots/greedy/versions/1"),
        ("points", [1.5, 2, 3]),
        ("points", [1, 2]),
        ("ranks", [0, 1, 2]),
        ("ranks", [1, 2, 4]),
        ("endings", ["COMPLETED", "COMPLETED", "BORED"]),
        ("par", [1.0]),
        ("par", ["1", 2, 3]),
    ],
)
def test_the_fault_of_a_line_is_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        LoggedResult.from_json(RESULT.to_json() | {name: value})


def test_a_missing_key_is_named() -> None:
    line = RESULT.to_json()
    del line["ranks"]
    with pytest.raises(ValueError, match="ranks: is missing"):
        LoggedResult.from_json(line)
