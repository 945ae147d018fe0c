"""The sample that looks ahead knows only what lies open, lays its best layout, and lays early only with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import seatwise
from seatwise.kits import KITS
from seatwise.kits.ubongo.samples import (
    BRIEF_NODES,
    LookAhead,
    another_may_call,
    find_deck,
    turned_cards,
)
from seatwise.kits.ubongo.solver import Search, solve
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    CALL,
    GOAL,
    HOUSE_DECKS,
    Call,
    Lay,
    Layout,
    OfferEnd,
    Ubongo,
    end_round,
    is_fitting,
)
from seatwise_referee.games.ubongo import UbongoView as View

UBONGO = Ubongo(default_deck="club")
US, THEM = Seat(0), Seat(1)


def view_after(rounds: int, seed: int = 0, *, cards: int = GOAL, deck: str = "club") -> View:
    """The view of a seat after so many rounds, in which the other has laid at most so many cards of its best layout."""
    state = UBONGO.deal(2, seed.to_bytes(32, "big"), UBONGO.complete_options({"deck": deck}))
    for _ in range(rounds):
        layout = best_of(UBONGO.view(state, THEM))[:cards]
        state = UBONGO.play(state, THEM, Lay(layout))
        state = UBONGO.play(state, THEM, CALL) if len(layout) == GOAL else end_round(state)
    return UBONGO.view(state, US)


def best_of(view: View) -> Layout:
    return max(solve(view.hand), key=len)


def built(view: View) -> list[Any]:
    return list(LookAhead().build(view))


def is_hard(view: View) -> bool:
    brief = Search(view.hand, BRIEF_NODES)
    return all(len(layout) < GOAL for layout in brief.find_layouts()) and brief.nodes_left == 0


def hard_views(seeds: range) -> Iterator[View]:
    return filter(is_hard, (view_after(1, seed) for seed in seeds))


@pytest.mark.parametrize("deck", HOUSE_DECKS)
@pytest.mark.parametrize("rounds", [0, 1])
def test_its_last_layout_fits_and_is_the_best_there_is(rounds: int, deck: str) -> None:
    for view in (view_after(rounds, seed, deck=deck) for seed in range(15)):
        *layouts, end = built(view)
        assert all(is_fitting(layout, dict(view.hand)) for layout in layouts)
        assert len(layouts[-1]) == len(best_of(view))
        assert len(layouts) == 1 or is_hard(view)
        assert end == (Call() if len(layouts[-1]) == GOAL else OfferEnd(on=True))


def test_it_knows_the_cards_that_another_laid_on_the_sides_that_are_up_now() -> None:
    view = view_after(1, cards=3)
    theirs = view.last_round[THEM].sides
    assert len(theirs) == 3
    (turned,) = turned_cards(view)
    assert turned == tuple(HOUSE_DECKS["club"].side(side.card, 2) for side in theirs)
    assert not set(turned) & set(theirs)


@pytest.mark.parametrize("rounds", [0, 2])
def test_it_knows_no_card_of_another_when_new_cards_are_dealt(rounds: int) -> None:
    assert not list(turned_cards(view_after(rounds)))


def test_it_tells_the_decks_of_the_house_apart_and_knows_no_cards_of_any_other() -> None:
    for name, deck in HOUSE_DECKS.items():
        assert find_deck(view_after(1, deck=name)) is deck
    view = view_after(1)
    first, *others = view.hand
    strange = View(**{**fields_of(view), "hand": (first._replace(symbols=first.symbols[::-1]), *others)})
    assert find_deck(strange) is None
    assert not list(turned_cards(strange))
    assert not another_may_call(strange)


def fields_of(view: View) -> dict[str, Any]:
    return {name: getattr(view, name) for name in View.__slots__}


def test_it_lays_early_only_in_a_hard_hand_beside_open_cards_that_may_call() -> None:
    laid = {True: set[int](), False: set[int]()}
    for view in hard_views(range(120)):
        laid[another_may_call(view)].add(len(built(view)) - 1)
    assert laid == {True: {2}, False: {1}}


def test_few_open_cards_of_another_give_no_reason() -> None:
    assert not any(another_may_call(view_after(1, seed, cards=GOAL - 1)) for seed in range(10))


@pytest.mark.slow
def test_it_is_stronger_than_the_solver_and_plays_the_same_each_time() -> None:
    bots = ["look-ahead", "solver"]
    first, again = (
        seatwise.play(bots, game="ubongo", matches=40, seed=3, options={"deck": "master"}) for _ in range(2)
    )
    assert [match.points for match in first.matches] == [match.points for match in again.matches]
    best, other = first.standings
    assert (best.bot, best.failures) == ("look-ahead", 0)
    assert best.interval[0] > other.interval[1]


def test_hints_stay_those_of_the_solver() -> None:
    assert KITS["ubongo"].hint_sample == "solver"
