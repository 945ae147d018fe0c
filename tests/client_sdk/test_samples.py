"""The samples are of rising strength, and what they count is right."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Any

import pytest

import seatwise
from seatwise.samples import SAMPLES

MATCHES = 60
"""Enough for the difference to be seen through the luck of the cards, with room to spare."""


def played(bots: list[str]) -> dict[str, list[Any]]:
    """The standings by sample: a sample may have several seats."""
    by_sample = defaultdict(list)
    for standing in seatwise.play(bots, matches=MATCHES, seed="samples").standings:
        by_sample[standing.bot.split()[0]].append(standing)
    return by_sample


@pytest.mark.parametrize(
    "bots",
    [["counting", "greedy"], ["counting", "greedy", "greedy"], ["counting", "greedy", "greedy", "greedy"]],
    ids=["2 seats", "3 seats", "4 seats"],
)
def test_counting_is_stronger_than_greedy(bots: list[str]) -> None:
    found = played(bots)
    (counting,) = found["counting"]
    assert counting.interval[0] > fmean(greedy.mean_points for greedy in found["greedy"])


def test_greedy_is_stronger_than_random() -> None:
    found = played(["greedy", "random", "random"])
    (greedy,) = found["greedy"]
    assert greedy.interval[0] > fmean(random.mean_points for random in found["random"])


@pytest.mark.parametrize("sample", SAMPLES["ugo"])
def test_a_sample_never_fails(sample: str) -> None:
    results = seatwise.play([sample, "random"], matches=2, seed="fails")
    assert [standing.failures for standing in results.standings] == [0, 0]
