"""The samples are of rising strength, and what they count is right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

import pytest

import seatwise
from seatwise.kits.ugo import samples as counting
from seatwise.samples import SAMPLES, sample
from seatwise.ugo import CARDS, Card, View
from seatwise_referee.games.ugo import Ugo

GAME = Ugo()

MATCHES = 60
"""Enough for the difference to be seen through the luck of the cards, with room to spare."""


def played(bots: list[str]) -> dict[str, list[Any]]:
    """The standings by sample: a sample may have several seats."""
    by_sample = defaultdict(list)
    for standing in seatwise.play(bots, matches=MATCHES, seed="samples").standings:
        by_sample[standing.bot.split()[0]].append(standing)
    return by_sample


@pytest.mark.parametrize(
    "others", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(3, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_counting_is_stronger_than_greedy(others: int) -> None:
    found = played(["counting", *["greedy"] * others])
    (counted,) = found["counting"]
    assert counted.interval[0] > fmean(greedy.mean_points for greedy in found["greedy"])


def test_greedy_is_stronger_than_random() -> None:
    found = played(["greedy", "random", "random"])
    (greedy,) = found["greedy"]
    assert greedy.interval[0] > fmean(random.mean_points for random in found["random"])


@pytest.mark.parametrize("sample", SAMPLES["ugo"])
def test_a_sample_never_fails(sample: str) -> None:
    rounds, matches = (1, 1) if sample.startswith("search") else (8, 2)  # it takes its time for each card
    results = seatwise.play([sample, "random"], matches=matches, seed="fails", options={"rounds": rounds})
    assert [standing.failures for standing in results.standings] == [0, 0]


# Compiled deals


def counted_views(deals: int) -> Iterator[View]:
    """Views of seats that are asked for a card in random rounds, each with more than one legal card."""
    for number in range(deals):
        chance = Random(number)
        state = GAME.deal(2 + number % 3, chance.randbytes(32), {"rounds": 1})
        while state.asked is not None:
            view = GAME.view(state, state.asked)
            if len(view.legal_cards) > 1 and chance.random() < 0.3:
                yield view
            state = GAME.play(state, state.asked, chance.choice([*GAME.legal_moves(state, state.asked)]))


def choose_all(name: str, views: list[View]) -> tuple[list[Card], object]:
    """What a sample chooses, and its random numbers afterwards."""
    bot = sample(name)()
    bot.chance = Random(7)
    return [bot.choose(view) for view in views], bot.chance.getstate()


@pytest.mark.parametrize("words", [3, 0], ids=["words drawn at once", "words drawn again"])
@pytest.mark.parametrize("name", ["counting", "counting-ahead"])
def test_the_compiled_deals_are_those_of_python(
    name: str, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All moves are the same, and so are the random numbers that are left: at tables of 2, 3 and 4, with missing colours."""
    compiled = pytest.importorskip(
        "seatwise_fast.counted_deals", reason="seatwise_fast is not compiled: no C compiler is here"
    )
    monkeypatch.setattr(compiled, "WORDS_OF_CARD", words)
    monkeypatch.setattr(compiled, "WORDS_OF_WISHES", 30 * words or 1)
    views = list(counted_views(24))
    assert counting.find_compiled_deals() is compiled.CountedDeals
    fast = choose_all(name, views)
    monkeypatch.setattr(counting, "find_compiled_deals", lambda: None)
    assert choose_all(name, views) == fast


def test_compiled_deals_take_no_view_whose_hands_do_not_fit_together() -> None:
    """The compiled part checks nothing. A wrong server must not make it read what is not there."""
    view = next(counted_views(1))
    assert counting.is_sound(view)
    for change in (
        {"hand": view.hand[1:]},
        {"hand_sizes": (0,) * len(view.hand_sizes)},
        {"legal_cards": CARDS},
        {"leader": (view.leader + 1) % 2},
        {"hand": CARDS[:11], "hand_sizes": (11, 11), "legal_cards": CARDS[:2], "trick": ()},
    ):
        assert not counting.is_sound(replace(view, **change)), change
