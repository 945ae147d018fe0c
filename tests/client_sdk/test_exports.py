"""The public names are a promise: who changes this list changes other people's bots."""

from __future__ import annotations

import subprocess
import sys

import pytest

import seatwise
import seatwise.ugo

NAMES = [
    "BadAnswerError",
    "Bot",
    "Card",
    "Colour",
    "MixedMove",
    "Offer",
    "ResignMatch",
    "Result",
    "Results",
    "SeatwiseError",
    "UsageError",
    "View",
    "play",
    "run",
    "run_async",
]

UGO_NAMES = [
    "CARDS",
    "Card",
    "Colour",
    "Kingdom",
    "MOST_FARMERS",
    "Trick",
    "View",
    "default_order",
    "farmers_by_section",
    "farmers_gained",
    "has_choice",
    "lay",
    "score_kingdom",
    "score_section",
    "winner_of",
]


def test_the_public_names_are_these() -> None:
    assert sorted(seatwise.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(seatwise, name) is not None
    assert name in dir(seatwise)


def test_the_names_for_ugo_are_these() -> None:
    assert sorted(seatwise.ugo.__all__) == UGO_NAMES
    assert all(hasattr(seatwise.ugo, name) for name in UGO_NAMES)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'seatwise' has no attribute 'nonsense'"):
        seatwise.nonsense  # noqa: B018


def test_to_write_a_bot_and_to_play_offline_needs_neither_grpc_nor_protobuf() -> None:
    code = """
import sys, seatwise

class First(seatwise.Bot):
    def choose(self, view):
        return view.legal_cards[0]

seatwise.play([First, "counting"], options={"rounds": 1})
print([name for name in sys.modules if name.partition(".")[0] in ("grpc", "google")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
