"""A player can hold the code against the leaflet: every rule is named where it is played."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatwise_referee import games

RULES = {"ugo": ("U", 33), "ubongo": ("K", 15)}
"""By game: the letter of its rules, and how many they are."""


def rules_named_in(source: str, letter: str) -> set[int]:
    """The numbers that stand alone and those of ranges, as in U11 to U13."""
    named = re.findall(rf"\b{letter}(\d+)(?: to {letter}(\d+))?", source)
    return {number for first, last in named for number in range(int(first), int(last or first) + 1)}


@pytest.mark.parametrize("game", RULES)
def test_every_rule_is_named_where_it_is_played(game: str) -> None:
    letter, last = RULES[game]
    folder = Path(games.__file__).parent / game
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    source = source.replace(f"{letter}1 to {letter}{last}", "")  # which says only how they are numbered
    assert rules_named_in(source, letter) == set(range(1, last + 1))
