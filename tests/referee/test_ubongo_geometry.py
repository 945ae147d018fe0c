"""Ubongo layouts: what fits by the leaflet's pictures, and by looking at every cell."""

from __future__ import annotations

import timeit
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matches.effort import examples

from seatwise_referee.games.ubongo import (
    BOUND,
    CARDS,
    HAND_SIZE,
    Layout,
    Placement,
    Symbols,
    Touch,
    UbongoCard,
    cells,
    fitting_beside,
    fitting_places,
    is_fitting,
    touch,
)
from seatwise_referee.games.ubongo.geometry import overlapping

X, Y = CARDS[0], CARDS[1]
MIDDLE = Placement(X, 0, 0, 0)

# --- The pictures --------------------------------------------------------------------------------------

PICTURES = [
    ("V1 long sides, one lower", "49 69 87", 0, (2, 1), Touch.FITTING),
    ("V1b long sides, one higher", "99 28 47", 0, (2, -1), Touch.FITTING),
    ("V2 short sides", "56 98 77", 0, (0, 3), Touch.FITTING),
    ("V3 quarter turn, upper cells", "98 77 24", 1, (2, 0), Touch.FITTING),
    ("V3b quarter turn, lower cells", "98 77 46", 1, (2, 1), Touch.FITTING),
    ("V4 half turn", "77 86 94", 2, (2, 1), Touch.FITTING),
    ("F1 one pair only", "69 89 77", 0, (2, 2), Touch.WRONG),
    ("F1b one pair matches, one does not", "49 89 77", 0, (2, 1), Touch.WRONG),
    ("F1c three symbols long, one pair matches", "29 89 77", 0, (2, 0), Touch.WRONG),
    ("F2 two pairs match, and one does not", "29 49 77", 0, (2, 0), Touch.WRONG),
    ("F3 crosswise", "69 49 77", 0, (2, 1), Touch.WRONG),
    ("F4 three pairs match", "29 49 67", 0, (2, 0), Touch.WRONG),
    ("N1 corner only", "62 99 77", 0, (2, 3), Touch.APART),
    ("O1 overlap", "49 69 87", 0, (1, 2), Touch.OVERLAPPING),
]


@pytest.mark.parametrize(
    ("rows", "turn", "position", "how"), [picture[1:] for picture in PICTURES], ids=[p[0] for p in PICTURES]
)
def test_two_cards_lie_to_each_other_as_in_the_picture(
    rows: str, turn: int, position: tuple[int, int], how: Touch
) -> None:
    symbols = {X: "123456", Y: rows.replace(" ", "")}
    other = Placement(Y, *position, turn)
    assert touch(MIDDLE, symbols[X], other, symbols[Y]) is how
    assert touch(other, symbols[Y], MIDDLE, symbols[X]) is how
    assert is_fitting((MIDDLE, other), symbols) == (how is Touch.FITTING)
    assert (overlapping((MIDDLE, other)) == (MIDDLE, other)) == (how is Touch.OVERLAPPING)


def test_a_card_is_given_quarter_turns_clockwise_and_named_by_its_top_left_cell() -> None:
    #  0 1        4 2 0        5 4        1 3 5
    #  2 3        5 3 1        3 2        0 2 4
    #  4 5                     1 0
    assert cells(7, -4, 0) == [(7, -4), (8, -4), (7, -3), (8, -3), (7, -2), (8, -2)]
    assert cells(0, 0, 1) == [(2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1)]
    assert cells(0, 0, 2) == [(1, 2), (0, 2), (1, 1), (0, 1), (1, 0), (0, 0)]
    assert cells(0, 0, 3) == [(0, 1), (0, 0), (1, 1), (1, 0), (2, 1), (2, 0)]


@pytest.mark.parametrize("turn", range(4))
def test_another_card_can_touch_along_two_symbols_in_28_ways(turn: int) -> None:
    ways = set(fitting_beside(Placement(X, 0, 0, turn), "AAAAAA", Y, "AAAAAA"))
    assert len(ways) == 28
    assert len({(way.x, way.y, way.turn % 2) for way in ways}) == 14


def test_long_sides_lie_offset_and_short_ones_flush() -> None:
    """Two upright cards: [W15] says offset of long sides only, [002:75] allows short ones flush."""
    ways = fitting_beside(MIDDLE, "AAAAAA", Y, "AAAAAA")
    upright = {(way.x, way.y) for way in ways if way.turn == 0}
    assert upright == {(2, 1), (2, -1), (-2, 1), (-2, -1), (0, 3), (0, -3)}


# --- More than two cards -------------------------------------------------------------------------------


def test_one_card_alone_fits_and_so_does_none() -> None:
    assert is_fitting((), {})
    assert is_fitting((MIDDLE,), {X: "123456"})


def test_two_groups_that_do_not_touch_do_not_fit() -> None:
    cards = CARDS[:4]
    symbols = dict.fromkeys(cards, "AAAAAA")
    ends = (Placement(cards[0], 0, 0, 0), Placement(cards[1], 0, 3, 0))
    others = (Placement(cards[2], 5, 0, 0), Placement(cards[3], 5, 3, 0))
    assert is_fitting(ends, symbols)
    assert is_fitting(others, symbols)
    assert not is_fitting(ends + others, symbols)


def test_branches_are_allowed_and_the_order_in_which_cards_are_named_means_nothing() -> None:
    cards = CARDS[:4]
    symbols = dict.fromkeys(cards, "AAAAAA")
    middle, *around = (
        Placement(card, x, y, 0)
        for card, (x, y) in zip(cards, [(0, 0), (2, -1), (-2, -1), (0, 3)], strict=True)
    )
    assert is_fitting((middle, *around), symbols)
    assert is_fitting((*around, middle), symbols)


def test_a_touch_that_nobody_meant_counts_too() -> None:
    """The third card fits to the first, and by accident lies along one symbol of the second."""
    cards = CARDS[:3]
    symbols = dict.fromkeys(cards, "AAAAAA")
    first, second = Placement(cards[0], 0, 0, 0), Placement(cards[1], 0, 3, 0)
    beside = Placement(cards[2], 2, 1, 0)  # two symbols of the first, one of the second
    assert touch(first, "AAAAAA", beside, "AAAAAA") is Touch.FITTING
    assert touch(second, "AAAAAA", beside, "AAAAAA") is Touch.WRONG
    assert is_fitting((first, second), symbols)
    assert is_fitting((first, beside), symbols)
    assert not is_fitting((first, second, beside), symbols)


def test_overlapping_cards_never_fit() -> None:
    symbols = dict.fromkeys(CARDS[:3], "AAAAAA")
    laid = (MIDDLE, Placement(Y, 0, 3, 0), Placement(CARDS[2], 0, 2, 0))
    assert not is_fitting(laid, symbols)
    assert overlapping(laid) == (laid[0], laid[2])


# --- Against a look at every cell ----------------------------------------------------------------------


def naive(layout: Layout, symbols: dict[UbongoCard, Symbols]) -> bool:
    """K7 and K8 cell by cell: which symbols lie side by side, for every two cards."""
    grid: dict[tuple[int, int], tuple[UbongoCard, str]] = {}
    for card, x, y, turn in layout:
        rows = [symbols[card][row : row + 2] for row in (0, 2, 4)]
        for _ in range(turn):
            rows = ["".join(column) for column in zip(*rows[::-1], strict=True)]
        for down, row in enumerate(rows):
            for right, symbol in enumerate(row):
                if (x + right, y + down) in grid:
                    return False
                grid[x + right, y + down] = card, symbol
    pairs: dict[frozenset[UbongoCard], list[bool]] = {}
    for (x, y), (card, symbol) in grid.items():
        for beside in ((x + 1, y), (x, y + 1)):
            other, others = grid.get(beside, (card, symbol))
            if other != card:
                pairs.setdefault(frozenset((card, other)), []).append(symbol == others)
    if any(pair != [True, True] for pair in pairs.values()):
        return False
    groups = {card: {card} for card in symbols if card in {placement.card for placement in layout}}
    for one, other in map(tuple, pairs):
        joined = groups[one] | groups[other]
        groups.update(dict.fromkeys(joined, joined))
    return len({frozenset(group) for group in groups.values()}) <= 1


Faces = st.lists(st.text("AB", min_size=6, max_size=6), min_size=HAND_SIZE, max_size=HAND_SIZE).map(
    lambda faces: dict(zip(CARDS, faces, strict=False))
)
Near = st.integers(-4, 4)


@st.composite
def layouts(draw: st.DrawFn, symbols: dict[UbongoCard, Symbols]) -> Layout:
    """Grown where cards fit, and then perhaps with one that lies anywhere."""
    layout: Layout = ()
    for card in draw(st.permutations(list(symbols)))[: draw(st.integers(1, HAND_SIZE))]:
        places = list(fitting_places(layout, card, symbols))
        if places and draw(st.integers(0, 9)):
            layout += (draw(st.sampled_from(places)),)
        elif draw(st.booleans()):
            layout += (Placement(card, draw(Near), draw(Near), draw(st.integers(0, 3))),)
    return tuple(draw(st.permutations(layout)))


@given(st.data())
@settings(max_examples=examples(300, 60), deadline=None)
def test_a_layout_fits_as_a_look_at_every_cell_says(data: st.DataObject) -> None:
    symbols = data.draw(Faces)
    layout = data.draw(layouts(symbols))
    assert is_fitting(layout, symbols) == naive(layout, symbols)


def test_both_answers_are_met_often_in_the_comparison_above() -> None:
    """Pairs by all their positions and turns, with symbols of which about half match."""
    symbols = {X: "AABABB", Y: "ABBAAB"}
    said = [
        is_fitting(pair, symbols)
        for x, y, one, other in product(range(-4, 5), range(-4, 5), range(4), range(4))
        for pair in [(Placement(X, 0, 0, one), Placement(Y, x, y, other))]
        if is_fitting(pair, symbols) == naive(pair, symbols)
    ]
    assert len(said) == 9 * 9 * 16
    assert 10 < sum(said) < len(said) - 10


def moved(layout: Layout, right: int, down: int) -> Layout:
    return tuple(placement._replace(x=placement.x + right, y=placement.y + down) for placement in layout)


def turned(layout: Layout) -> Layout:
    """The whole table turned clockwise by a quarter."""
    result = []
    for card, x, y, turn in layout:
        corner = min((-below, right) for right, below in cells(x, y, turn))
        result.append(
            Placement(card, corner[0], min(right for right, _ in cells(x, y, turn)), (turn + 1) % 4)
        )
    return tuple(result)


@given(st.data())
@settings(max_examples=examples(100, 30), deadline=None)
def test_neither_moving_nor_turning_the_table_changes_anything(data: st.DataObject) -> None:
    symbols = data.draw(Faces)
    layout = data.draw(layouts(symbols).filter(lambda layout: all(abs(p.x) + abs(p.y) < 20 for p in layout)))
    fits = is_fitting(layout, symbols)
    for _ in range(4):
        assert is_fitting(moved(layout, data.draw(Near), data.draw(Near)), symbols) == fits
        layout = turned(layout)
        assert is_fitting(layout, symbols) == fits


@given(st.data())
@settings(max_examples=examples(100, 30), deadline=None)
def test_touching_and_overlapping_are_symmetric(data: st.DataObject) -> None:
    symbols = data.draw(Faces)
    for one, other in combinations(data.draw(layouts(symbols)), 2):
        there = touch(one, symbols[one.card], other, symbols[other.card])
        assert there is touch(other, symbols[other.card], one, symbols[one.card])
        shared = set(cells(*one[1:])) & set(cells(*other[1:]))
        assert (there is Touch.OVERLAPPING) == bool(shared)


def test_cards_at_opposite_bounds_are_apart() -> None:
    """Steps are looked up as one number: a far one must not be taken for a near one."""
    ends = (-BOUND, -BOUND + 1, 0, BOUND - 1, BOUND)
    for (x1, y1), (x2, y2), one, other in product(product(ends, ends), product(ends, ends), (0, 1), (0, 1)):
        if max(abs(x1 - x2), abs(y1 - y2)) > 3:
            pair = Placement(X, x1, y1, one), Placement(Y, x2, y2, other)
            assert touch(pair[0], "AAAAAA", pair[1], "AAAAAA") is Touch.APART
            assert overlapping(pair) is None


def test_all_places_where_a_card_fits_are_named_once() -> None:
    symbols = dict.fromkeys(CARDS[:3], "AABBAB")
    layout = (MIDDLE, *list(fitting_places((MIDDLE,), Y, symbols))[:1])
    named = list(fitting_places(layout, CARDS[2], symbols))
    looked_for = {
        place
        for place in (Placement(CARDS[2], *at) for at in product(range(-9, 10), range(-9, 10), range(4)))
        if naive((*layout, place), symbols)
    }
    assert len(named) == len(set(named))
    assert set(named) == looked_for


def test_nine_cards_in_a_row_lie_within_bounds_either_way() -> None:
    assert 3 * (HAND_SIZE - 1) <= BOUND


def test_seven_cards_are_checked_in_20_microseconds() -> None:
    """The best of many, so that a busy machine proves nothing; some 5 were measured."""
    layout = tuple(Placement(card, 2 * n, n % 2, 0) for n, card in enumerate(CARDS[:7]))
    symbols = dict.fromkeys(CARDS[:7], "AAAAAA")
    assert is_fitting(layout, symbols)
    assert min(timeit.repeat(lambda: is_fitting(layout, symbols), number=50, repeat=40)) / 50 < 20e-6
