"""The house's decks by difficulty: made by a published rule, even, and never changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from harness.ubongo import deck_file, deck_maker

from seatwise_referee.games.registry import GAMES, use_decks
from seatwise_referee.games.ubongo import (
    CARDS,
    HOUSE_DECK,
    HOUSE_DECKS,
    BadDeck,
    Ubongo,
    parse_deck,
)

LABELS = {
    "easy": "house-1:79139726b1a7e026b692e87e3d8de662e5eebf1858ea289e1f78e1ecf89d7003",
    "club": "club-1:f6734b7bc1131c2d7b1deee9060d4bf38683c8f02703dd166d1bbddb3fd8862c",
    "master": "master-1:8ee39cdcf4f662609f5075946c0ae8a6ed18e636533b4398ff5370b70a5f39a3",
}
every_recipe = pytest.mark.parametrize("recipe", deck_maker.RECIPES, ids=lambda recipe: recipe.name)
every_round = pytest.mark.parametrize("round_number", range(1, 7))


def sides_of(recipe: Any, round_number: int) -> list[str]:
    """The sides that are in the deck itself."""
    deck = next(each for each in HOUSE_DECKS.values() if each.name == recipe.name)
    first = 36 * ((round_number - 1) // 2)
    return [deck.side(card, round_number).symbols for card in CARDS[first : first + 36]]


def test_no_deck_of_the_house_ever_changes() -> None:
    """Records name these digests."""
    assert {difficulty: deck.label for difficulty, deck in HOUSE_DECKS.items()} == LABELS


@every_recipe
@every_round
def test_each_side_has_six_symbols_and_each_symbol_is_there_equally_often(
    recipe: Any, round_number: int
) -> None:
    sides = sides_of(recipe, round_number)
    uses = Counter("".join(sides)).values()
    assert len(uses) == recipe.kinds[round_number - 1]
    assert max(uses) - min(uses) <= 1
    assert all(len(set(side)) == 6 for side in sides)
    assert len({min(side, side[::-1]) for side in sides}) == 36


@every_recipe
@every_round
def test_no_card_fits_much_more_often_than_another(recipe: Any, round_number: int) -> None:
    """Of the first candidates alone, some have cards that fit in four times as many ways as others."""
    fits = deck_maker.count_fits(sides_of(recipe, round_number))
    assert max(fits) <= 3.5 * min(fits)


def test_the_other_candidates_are_less_even() -> None:
    recipe = deck_maker.RECIPES[0]
    widest = max(
        max(fits) / max(1, min(fits))
        for fits in (
            deck_maker.count_fits(deck_maker.make_candidate(recipe, 6, candidate))
            for candidate in range(1, 9)
        )
    )
    assert widest > 4


@pytest.mark.slow
@every_recipe
@every_round
def test_the_candidate_is_the_most_even_of_all(recipe: Any, round_number: int) -> None:
    assert deck_maker.choose_candidate(recipe, round_number) == recipe.chosen[round_number - 1]


# --- Which deck is played ------------------------------------------------------------------------------


@pytest.mark.parametrize("difficulty", LABELS)
def test_a_deck_is_known_by_its_difficulty_and_complete_by_its_name(difficulty: str) -> None:
    label = LABELS[difficulty]
    for wanted in (difficulty, *label.split(":"), label):
        assert Ubongo().complete_options({"deck": wanted})["deck"] == label


def test_the_deck_is_the_clubs_where_none_is_named_unless_the_operator_says_otherwise() -> None:
    assert Ubongo().complete_options({})["deck"] == LABELS["club"]
    assert Ubongo(default_deck="master").complete_options({})["deck"] == LABELS["master"]
    mine = parse_deck(deck_file("mine"))
    assert Ubongo([mine], "mine").complete_options({})["deck"] == mine.label


def test_a_deck_of_the_operator_that_is_called_like_a_difficulty_is_played_under_that_name() -> None:
    """It was so before there were difficulties, and its records name it."""
    own = parse_deck(deck_file("easy"))
    ubongo = Ubongo([own])
    assert ubongo.complete_options({"deck": "easy"})["deck"] == own.label
    assert ubongo.complete_options({"deck": "house-1"})["deck"] == HOUSE_DECK.label


def test_an_unknown_default_is_refused_with_those_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, "ubongo", GAMES["ubongo"])
    why = r"default deck: must be the name or the digest of a deck here \(easy, club, master, house-1, .*\), not 'hard'"
    with pytest.raises(BadDeck, match=why):
        use_decks([], "hard")
    use_decks([], "easy")
    assert GAMES["ubongo"].complete_options({})["deck"] == LABELS["easy"]
