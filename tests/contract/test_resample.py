"""The twins that stand for what a seat cannot know are possible ones, and would show a leak."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from hypothesis import given
from leaks.resample import ASIDE, cards_hidden, cards_told, hidden_cards, resampled, voids
from matches.random_matches import Chances, bounded, match, viewers

from seatwise_referee.game import Seat
from seatwise_referee.games import ubongo
from seatwise_referee.games.ugo import CARDS, Ugo, UgoCard, UgoState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UGO = Ugo()
UBONGO = ubongo.Ubongo()


def states(chance: Random) -> Iterator[UgoState]:
    return (step.state for step in match(UGO, 4, chance))


def held(state: UgoState, seat: int) -> set[UgoCard]:
    return {card for card in CARDS if state.hands[seat] >> card & 1}


@given(chance=Chances)
@bounded(5)
def test_a_twin_keeps_what_the_seat_knows(chance: Random) -> None:
    for state in states(chance):
        for viewer in viewers(4):
            twin = resampled("ugo", state, viewer, chance)
            assert (twin.table, twin.trick, twin.asked, twin.prompt) == (
                state.table,
                state.trick,
                state.asked,
                state.prompt,
            )
            assert [hand.bit_count() for hand in twin.hands] == [hand.bit_count() for hand in state.hands]
            assert viewer is None or twin.hands[viewer] == state.hands[viewer]
            assert {card for card, _ in hidden_cards(twin, viewer)} == {
                card for card, _ in hidden_cards(state, viewer)
            }


@given(chance=Chances)
@bounded(5)
def test_a_twin_deals_no_card_twice_and_none_that_was_played(chance: Random) -> None:
    for state in states(chance):
        twin = resampled("ugo", state, chance.choice(viewers(4)), chance)
        played = {card for trick in state.table.tricks for card in trick.cards} | {*state.trick}
        hands = [held(twin, seat) for seat in range(4)]
        assert len(set().union(*hands, played)) == sum(map(len, hands)) + len(played)


@given(chance=Chances)
@bounded(5)
def test_a_seat_that_did_not_follow_a_colour_is_dealt_none_of_it(chance: Random) -> None:
    for state in states(chance):
        twin = resampled("ugo", state, chance.choice(viewers(4)), chance)
        for seat in range(4):
            assert not {card.colour for card in held(twin, seat)} & voids(state)[seat]


def test_any_hidden_card_may_come_to_lie_wherever_hidden_cards_lie() -> None:
    chance = Random(1)
    state = UGO.deal(4, bytes(32), {"rounds": 1})
    twins = [resampled("ugo", state, Seat(2), chance) for _ in range(400)]
    places = {pair for twin in twins for pair in hidden_cards(twin, Seat(2))}
    assert places == {(card, owner) for card, _ in hidden_cards(state, Seat(2)) for owner in (0, 1, 3, ASIDE)}


def test_a_twin_has_another_seed_so_that_later_rounds_are_hidden_too() -> None:
    chance, state = Random(1), UGO.deal(2, bytes(32), {"rounds": 2})
    twin = resampled("ugo", state, Seat(0), chance)
    assert twin.round.seed != state.round.seed


LEAKS: dict[str, Callable[[UgoState, int], object]] = {
    "how many moves another seat has": lambda state, _: len(
        list(UGO.legal_moves(state, state.asked or Seat(0)))
    ),
    "the sum of another hand": lambda state, seat: sum(held(state, (seat + 1) % 4)),
    "whether a card lies aside": lambda state, _: any(hand & 1 for hand in state.hands),
    "the seed": lambda state, _: state.round.seed[0] & 1,
    "the default move of the seat that is asked": lambda state, _: UGO.default_move(
        state, state.asked or Seat(0)
    ),
}


def test_each_of_some_leaks_would_be_seen() -> None:
    for name, leak in LEAKS.items():
        chance = Random(1)
        seen = sum(
            leak(state, 0) != leak(resampled("ugo", state, Seat(0), chance), 0)
            for state in asks_others(chance)
        )
        assert seen > 5, name


def asks_others(chance: Random) -> Iterator[UgoState]:
    return (state for state in states(chance) if state.asked not in (None, 0))


# --- Ubongo ---------------------------------------------------------------------------------------------


def builders(chance: Random) -> Iterator[ubongo.UbongoState]:
    return (step.state for step in match(UBONGO, 3, chance))


def cards_in(state: ubongo.UbongoState, seat: int) -> set[ubongo.UbongoCard]:
    return {side.card for side in state.round.hands[seat]}


@given(chance=Chances)
@bounded(5)
def test_a_twin_of_builders_keeps_what_the_seat_knows(chance: Random) -> None:
    for state in builders(chance):
        for viewer in viewers(3):
            twin = resampled("ubongo", state, viewer, chance)
            assert twin._replace(layouts=state.layouts, round=state.round) == state
            assert list(map(len, twin.layouts)) == list(map(len, state.layouts))
            for seat in range(3):
                assert cards_told(state, seat) <= cards_in(twin, seat)
            if viewer is not None:
                assert twin.layouts[viewer] == state.layouts[viewer]
                assert twin.round.hands[viewer] == state.round.hands[viewer]


@given(chance=Chances)
@bounded(5)
def test_a_twin_of_builders_deals_nine_cards_of_the_deck_to_each_and_lays_no_others(chance: Random) -> None:
    for state in builders(chance):
        twin = resampled("ubongo", state, chance.choice(viewers(3)), chance)
        hands = [cards_in(twin, seat) for seat in range(3)]
        deck = ubongo.deck_of_round(state.round.number)
        assert [len(hand) for hand in hands] == [9, 9, 9]
        assert len(set().union(*hands)) == 27
        assert all(str(card).startswith(f"{deck}-") for hand in hands for card in hand)
        assert ubongo.with_layouts(twin, twin.layouts) == twin  # which refuses what could not lie


def test_any_hidden_card_may_come_into_any_other_hand_or_none() -> None:
    chance = Random(1)
    state = UBONGO.deal(3, bytes(32), {"rounds": 1})
    twins = [resampled("ubongo", state, Seat(2), chance) for _ in range(200)]
    hidden = cards_hidden(state, Seat(2))
    for seat in (0, 1):
        assert set().union(*(cards_in(twin, seat) for twin in twins)) == hidden
    dealt = [cards_in(twin, 0) | cards_in(twin, 1) for twin in twins]
    assert set().union(*(hidden - cards for cards in dealt)) == hidden
