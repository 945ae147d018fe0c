"""How a match moves on: from a legal answer to a card, from card to trick, from trick to round, from round to the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ugo.cards import UgoCard, cards_of
from seatwise_referee.games.ugo.kingdoms import (
    MOST_FARMERS,
    Kingdom,
    default_order,
    has_choice,
    lay,
    score_kingdom,
)
from seatwise_referee.games.ugo.moves import Arrange, Play
from seatwise_referee.games.ugo.state import UgoRound, UgoState, UgoTable, deal_round
from seatwise_referee.games.ugo.tricks import Trick, farmers_gained, legal_mask, winner_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatwise_referee.games.ugo.cards import UgoCard
    from seatwise_referee.games.ugo.state import UgoState


_CARDS_ONLY: Final = frozenset({UgoCard})


def refuse_unasked(state: UgoState, seat: Seat) -> NoReturn:
    """Raise `IllegalMove`: another seat is asked, or none."""
    if state.asked is None:
        raise IllegalMove("the match is over")
    raise IllegalMove(f"seat {state.asked} is asked now, not seat {seat}")


def card_to_play(state: UgoState, seat: Seat, move: object) -> UgoCard:
    """Return the card of a legal answer to "card" (U9, U10). Raises `IllegalMove`."""
    if not (isinstance(move, Play) and isinstance(move.card, UgoCard)):
        raise IllegalMove("a card is asked for: the move is Play(card)")
    hand = state.hands[seat]
    if not legal_mask(hand, state.trick) >> move.card & 1:
        _refuse_card(move.card, hand, state.trick)
    return move.card


def _refuse_card(card: UgoCard, hand: int, trick: tuple[UgoCard, ...]) -> NoReturn:
    if not hand >> card & 1:
        raise IllegalMove(f"you do not hold {card}; you hold {_list_cards(cards_of(hand))}")
    led = trick[0].colour
    following = cards_of(legal_mask(hand, trick))
    raise IllegalMove(
        f"{card} does not follow {trick[0]}: you must play {led.name.lower()}, and hold {_list_cards(following)}"
    )


def cards_to_lay(state: UgoState, move: object) -> tuple[UgoCard, ...]:
    """Return the order of a legal answer to "arrange": the won cards, each once (U15, U19). Raises `IllegalMove`."""
    won = state.table.won
    if not (isinstance(move, Arrange) and isinstance(move.cards, tuple)):
        raise IllegalMove(
            f"the cards you won are to be laid: the move is Arrange(cards) with {_list_cards(won)}"
        )
    if not {*map(type, move.cards)} <= _CARDS_ONLY:
        raise IllegalMove(f"Arrange holds something that is no card; lay {_list_cards(won)}")
    if sorted(move.cards) != sorted(won):
        _refuse_cards(move.cards, won)
    return move.cards


def _refuse_cards(cards: tuple[UgoCard, ...], won: tuple[UgoCard, ...]) -> NoReturn:
    missing = Counter(won) - Counter(cards)
    surplus = Counter(cards) - Counter(won)
    faults = []
    if missing:
        faults.append(f"{_list_cards(missing)} missing")
    if surplus:
        faults.append(f"{_list_cards(surplus)} too many")
    raise IllegalMove(f"lay each of {_list_cards(won)} once: {' and '.join(faults)}")


def _list_cards(cards: Iterable[UgoCard]) -> str:
    return ", ".join(map(str, cards))


T = TypeVar("T")

_new_tuple: Final = tuple.__new__
"""The function behind a named tuple's constructor. Every card comes here, and this takes half the time (measured)."""

_NEXT: Final = tuple(tuple(Seat((seat + 1) % seats) for seat in range(seats)) for seats in range(5))
"""The left neighbour of each seat, by the number of seats and by seat."""

_CLOCKWISE: Final = tuple(
    tuple((*range(first, seats), *range(first)) for first in range(seats)) for seats in range(5)
)
"""All seats clockwise, by the number of seats and by the first of them."""


def first_state(seats: int, seed: bytes, rounds: int, supply: int = 0) -> UgoState:
    """Return the first round, dealt, with its first card asked for; with a `supply` of 0 as many farmers as are printed."""
    round_ = UgoRound(seed, rounds, number=1, points=(), last_round=(), supply=supply)
    return deal_round(round_, seats, prompt=1)


def after_card(state: UgoState, seat: Seat, card: UgoCard) -> UgoState:
    """Return the state after a card was played: the next seat clockwise is asked, or the trick is full (U9)."""
    _, prompt, before, trick, table, round_ = state
    held = list(before)
    held[seat] ^= 1 << card
    hands = tuple(held)
    trick = (*trick, card)
    if len(trick) == len(hands):
        return _after_trick(prompt, hands, trick, table, round_)
    return _new_tuple(UgoState, (_NEXT[len(hands)][seat], prompt + 1, hands, trick, table, round_))


def _after_trick(
    prompt: int, hands: tuple[int, ...], trick: tuple[UgoCard, ...], table: UgoTable, round_: UgoRound
) -> UgoState:
    """Return the state after a trick: the farmers come, and its winner lays the cards, if need be when asked how (U14, U15)."""
    place = winner_of(trick)
    winner = Seat((table.leader + place) % len(hands))
    kingdoms, supply = _with_farmers(table, winner, farmers_gained(trick, place))
    tricks = (*table.tricks, _new_tuple(Trick, (table.leader, trick, winner, ())))
    laying = _new_tuple(UgoTable, (winner, kingdoms, supply, tricks, trick))
    state = _new_tuple(UgoState, (winner, prompt + 1, hands, (), laying, round_))
    if has_choice(kingdoms[winner], trick):
        return state
    return after_laying(state, prompt, default_order(trick))


def _with_farmers(table: UgoTable, winner: Seat, gains: Sequence[int]) -> tuple[tuple[Kingdom, ...], int]:
    """Return the kingdoms with the farmers that the trick brings, and the rest of the supply (U23 to U25).

    No seat has more than nine. If two are due and one place is free, one comes. The winner takes first, then
    the others clockwise, while the supply lasts.
    """
    leader, kingdoms, supply, _, _ = table
    after = list(kingdoms)
    for seat in _CLOCKWISE[len(gains)][winner]:
        gain = gains[seat - leader]  # gains are in the order played, and a negative index counts from the end
        if gain:
            farmers = kingdoms[seat].farmers
            taken = min(gain, MOST_FARMERS - farmers, supply)
            after[seat] = _new_tuple(Kingdom, (kingdoms[seat].sections, farmers + taken))
            supply -= taken
    return tuple(after), supply


def after_laying(state: UgoState, prompt: int, cards: tuple[UgoCard, ...]) -> UgoState:
    """Return the state after the winner laid the cards it won: it leads, or the round is over (U14 to U20).

    `prompt` is the number of the last prompt that was really open.
    """
    _, _, hands, _, table, round_ = state
    winner, kingdoms, supply, tricks, _ = table
    kingdoms = _replace_at(kingdoms, winner, lay(kingdoms[winner], cards))
    last = tricks[-1]
    tricks = (*tricks[:-1], _new_tuple(Trick, (last.leader, last.cards, winner, cards)))
    table = _new_tuple(UgoTable, (winner, kingdoms, supply, tricks, ()))
    if not hands[winner]:
        return _after_round(prompt, hands, table, round_)
    return _new_tuple(UgoState, (winner, prompt + 1, hands, (), table, round_))


def _after_round(prompt: int, hands: tuple[int, ...], table: UgoTable, round_: UgoRound) -> UgoState:
    """Score the kingdoms and deal the next round; after the last round the kingdoms stay as they are (U27 to U33)."""
    seed, rounds, number, points, last_round, supply = round_
    points = (*points, tuple(map(score_kingdom, table.kingdoms)))
    if number == rounds:
        return UgoState(
            None, prompt, hands, (), table, UgoRound(seed, rounds, number, points, last_round, supply)
        )
    following = UgoRound(seed, rounds, number + 1, points, table.tricks, supply)
    return deal_round(following, len(hands), prompt + 1)


def _replace_at(by_seat: tuple[T, ...], seat: Seat, new: T) -> tuple[T, ...]:
    changed = list(by_seat)
    changed[seat] = new
    return tuple(changed)
