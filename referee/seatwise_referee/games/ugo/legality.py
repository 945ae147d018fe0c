"""The check of an answer. The text of a refusal names nothing that the seat does not see."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NoReturn

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ugo.cards import UgoCard, cards_of
from seatwise_referee.games.ugo.moves import Arrange, Play
from seatwise_referee.games.ugo.tricks import legal_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

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
