"""What a seat sees of Ubongo, and no more."""

from __future__ import annotations

import re
from dataclasses import astuple
from random import Random

from leaks.resample import cards_hidden, cards_told, resampled
from matches.random_matches import TESTED, match, viewers
from matches.ubongo_positions import PLAIN, SEED, UBONGO, cards_of, column, dealt, laid, wrong

from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    CARDS,
    HOUSE_DECK,
    Lay,
    OfferEnd,
    Side,
    UbongoState,
    UbongoView,
    call_together,
    end_round,
)

A, B, C = map(Seat, range(3))


def test_a_view_shows_a_seat_its_own_cards_and_how_many_others_have_laid() -> None:
    state = laid(dealt(3), 4, -7, 1)
    view = UBONGO.view(state, A)
    assert view == UbongoView(
        seat=A,
        round=1,
        rounds=6,
        hand=tuple(Side(card, "AAAAAA") for card in cards_of(state, A)),
        layout=column(cards_of(state, A)[:4]),
        laid=(4, 7, 1),
        building=(A, B, C),
        offers=(),
        out=(),
        points=(),
        last_round=(),
    )


def test_a_spectator_sees_what_lies_open() -> None:
    view = UBONGO.view(laid(dealt(2), 4, -7), None)
    assert (view.seat, view.hand, view.layout, view.laid) == (None, (), (), (4, 7))


def test_only_the_side_that_is_up_is_shown() -> None:
    state = UBONGO.deal(2, SEED, UBONGO.complete_options({}))
    for number in (1, 2):
        hand = UBONGO.view(state, A).hand
        assert all(side.symbols == HOUSE_DECK.sides[side.card][number - 1] for side in hand)
        state = end_round(state)


def test_offers_and_false_calls_are_known_to_all() -> None:
    state = UBONGO.play(laid(dealt(3), -7, 4, 1), C, OfferEnd(on=True))
    for viewer in viewers(3):
        view = UBONGO.view(call_together(state, frozenset({A})), viewer)
        assert (view.building, view.offers, view.out) == ((B, C), (C,), (A,))


def test_all_layouts_are_shown_when_the_round_is_over() -> None:
    state = call_together(laid(dealt(3), 7, -3, 0), frozenset({A}))
    for viewer in viewers(3):
        view = UBONGO.view(state, viewer)
        first, second, third = view.last_round
        assert view.points == ((10, 0, 0),)
        assert first.layout == column(cards_of(state, A)[:7])
        assert second.layout == wrong(cards_of(state, B)[:3])
        assert first.sides == tuple(Side(placed.card, PLAIN.sides[placed.card][0]) for placed in first.layout)
        assert (first.has_called, second.has_called, third) == (True, False, ((), (), False))
        assert view.layout == ()


def test_cards_that_were_not_laid_stay_hidden_when_the_round_is_over() -> None:
    state = call_together(laid(dealt(3), 7, -3, 0), frozenset({A}))
    held, shown = cards_of(state, B), set(re.findall(r"\d-\d\d", repr(astuple(UBONGO.view(state, A)))))
    assert {str(card) for card in held} & shown == {str(card) for card in held[:3]}


def test_only_the_round_before_is_shown_with_its_layouts() -> None:
    state = end_round(end_round(laid(dealt(2), 7, 5)))
    assert [built.layout for built in UBONGO.view(state, A).last_round] == [(), ()]
    assert UBONGO.view(state, A).points == ((7, 5), (0, 0))


def test_the_last_layouts_stay_in_view_when_the_match_is_over() -> None:
    over = end_round(laid(dealt(2, rounds=1), 7, 5))
    view = UBONGO.view(over, B)
    assert [len(built.layout) for built in view.last_round] == [7, 5]
    assert (view.round, view.hand, view.layout, view.building) == (1, (), (), ())


def test_a_layout_is_told_to_nobody_else_while_it_can_be_changed() -> None:
    state = laid(dealt(2), 5, 0)
    cards = cards_of(state, A)
    for layout in (column(cards[4:9]), wrong(cards[:5])):
        other = UBONGO.play(state, A, Lay(layout))
        for viewer in (B, None):
            assert UBONGO.view(other, viewer) == UBONGO.view(state, viewer)


# --- The twins that stand for what a seat cannot know --------------------------------------------------


def twins(seats: int) -> list[tuple[UbongoState, Seat | None, UbongoState]]:
    chance = Random(7)
    states = [step.state for step in match(TESTED["ubongo"], seats, chance)]
    return [
        (state, viewer, resampled("ubongo", state, viewer, chance))
        for state in states
        for viewer in viewers(seats)
    ]


def test_a_twin_deals_every_hidden_card_at_most_once_and_keeps_what_is_known() -> None:
    for state, viewer, twin in twins(3):
        held = [cards_of(twin, seat) for seat in range(3)]
        assert len({card for hand in held for card in hand}) == 27
        for seat in range(3):
            assert cards_told(state, seat) <= set(held[seat])
            assert {placed.card for placed in twin.layouts[seat]} <= set(held[seat])
            assert len(twin.layouts[seat]) == len(state.layouts[seat])
        assert viewer is None or twin.layouts[viewer] == state.layouts[viewer]
        assert cards_hidden(twin, viewer) == cards_hidden(state, viewer)


def test_the_layouts_of_twins_can_lie_so() -> None:
    for state, _, twin in twins(2):
        for seat in state.building:
            UBONGO.play(twin, seat, Lay(twin.layouts[seat]))


def test_hands_layouts_and_future_cards_of_others_are_drawn_anew() -> None:
    state = laid(UBONGO.deal(2, SEED, UBONGO.complete_options({})), 3, 4)
    drawn = [resampled("ubongo", state, A, Random(seed)) for seed in range(200)]
    assert {card for twin in drawn for card in cards_of(twin, B)} == set(CARDS[:36]) - set(cards_of(state, A))
    assert len({tuple(placed[1:] for placed in twin.layouts[B]) for twin in drawn}) > 100
    assert len({twin.round.settings.seed for twin in drawn}) == 200


def test_the_cards_of_a_twin_are_turned_over_like_any() -> None:
    twin = resampled("ubongo", UBONGO.deal(2, SEED, UBONGO.complete_options({})), A, Random(1))
    assert cards_of(end_round(twin), B) == cards_of(twin, B)
