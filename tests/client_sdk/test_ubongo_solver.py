"""The solver finds what there is to find, and can be left at any time."""

from __future__ import annotations

from itertools import islice, product
from random import Random

import pytest

from seatwise.kits.ubongo.solver import NODES, Search, hand_of, solve
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    BOUND,
    CALL,
    CARDS,
    GOAL,
    Lay,
    Layout,
    Side,
    Ubongo,
    end_round,
    fitting_places,
    is_fitting,
)

UBONGO = Ubongo(default_deck="easy")


def hand_with(kinds: int, chance: Random, cards: int = 9) -> tuple[Side, ...]:
    return tuple(
        Side(card, "".join(chance.choice("ABCDEFGHIJKL"[:kinds]) for _ in range(6))) for card in CARDS[:cards]
    )


def most(hand: tuple[Side, ...]) -> int:
    """As many cards as can fit, up to the goal, found in the plainest way: all layouts, card after card."""
    symbols = dict(hand)
    grown: list[Layout] = [tuple(fitting_places((), card, symbols)) for card in symbols]
    for count in range(1, GOAL):
        larger = {
            frozenset((*layout, place)): (*layout, place)
            for layout, card in product(grown, symbols)
            if card not in {placement.card for placement in layout}
            for place in fitting_places(layout, card, symbols)
        }
        if not larger:
            return count
        grown = list(larger.values())
    return GOAL


@pytest.mark.parametrize("round_number", range(1, 7))
def test_each_layout_fits_and_has_more_cards_than_the_one_before(round_number: int) -> None:
    for seed in range(30):
        hand = hand_of(bytes([seed] * 32), round_number)
        sizes = [0]
        for layout in solve(hand):
            assert is_fitting(layout, dict(hand))
            assert len(layout) > sizes[-1]
            sizes.append(len(layout))
        assert 1 <= sizes[-1] <= GOAL


@pytest.mark.parametrize("seed", range(12))
def test_the_last_layout_is_the_best_there_is(seed: int) -> None:
    chance = Random(seed)
    hand = hand_with(chance.choice((9, 10, 12)), chance)
    search = Search(hand)
    *_, best = search.find_layouts()
    assert search.nodes_left > 0
    assert len(best) == most(hand)


def test_the_solver_stops_when_its_nodes_are_used_up() -> None:
    hands = [hand_of(bytes([seed] * 32), 6) for seed in range(50)]
    hand = max(hands, key=nodes_for)
    assert nodes_for(hand) > 100
    for nodes in (0, 1, 5, 100):
        search = Search(hand, nodes)
        found = list(search.find_layouts())
        assert search.nodes_left == 0
        assert len(found) <= nodes


def nodes_for(hand: tuple[Side, ...]) -> int:
    search = Search(hand)
    list(search.find_layouts())
    return NODES - search.nodes_left


def test_the_solver_may_be_left_after_any_layout_and_gives_the_same_each_time() -> None:
    hand = hand_of(bytes(32), 1)
    assert list(islice(solve(hand), 3)) == list(solve(hand))[:3]


def test_another_goal_may_be_set() -> None:
    hand = hand_with(2, Random(1))
    assert [max(map(len, solve(hand, goal=goal))) for goal in (1, 4, 9)] == [1, 4, 9]
    assert max(map(len, solve(hand[:3]))) == 3


def test_layouts_lie_within_the_bounds_of_the_game() -> None:
    hand = tuple(Side(card, "ABCDAB") for card in CARDS[:9])  # short sides match, and little else
    for layout in solve(hand, goal=9):
        assert all(max(abs(placed.x), abs(placed.y)) <= BOUND for placed in layout)


def test_two_solvers_play_a_match() -> None:
    state = UBONGO.deal(2, bytes(32), UBONGO.complete_options({}))
    while not state.is_over:
        seat = Seat(state.round.number % 2)
        for layout in solve(UBONGO.view(state, seat).hand):
            state = UBONGO.play(state, seat, Lay(layout))
        before = state.round.number
        state = UBONGO.play(state, seat, CALL) if len(layout) == GOAL else end_round(state)
        assert state.is_over or state.round.number == before + 1
    outcome = UBONGO.outcome(state)
    assert outcome is not None
    assert sum(points == 10 for scored in outcome.rounds for points in scored) >= 4


def test_a_search_that_is_cut_short_has_no_nodes_left() -> None:
    search = Search(hand_of(bytes(32), 1), 3)
    assert max(map(len, search.find_layouts())) < GOAL
    assert search.nodes_left == 0
