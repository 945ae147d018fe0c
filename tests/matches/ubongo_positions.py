"""Ubongo positions made by hand, on a deck with one symbol, where two touching symbols always match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    CARDS,
    Lay,
    Layout,
    Placement,
    Ubongo,
    UbongoCard,
    UbongoState,
    parse_deck,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SEED = bytes(range(32))

PLAIN = parse_deck("seatwise.ubongo-deck/1 plain\n" + "".join(f"{card} AAAAAA AAAAAA\n" for card in CARDS))
UBONGO = Ubongo([PLAIN], "easy")


def dealt(seats: int, **options: Any) -> UbongoState:
    """The first round on the plain deck."""
    return UBONGO.deal(seats, SEED, UBONGO.complete_options({"deck": "plain", **options}))


def cards_of(state: UbongoState, seat: int) -> list[UbongoCard]:
    return [side.card for side in state.round.hands[seat]]


def column(cards: Iterable[UbongoCard]) -> Layout:
    """One below the other, short side on short side: on the plain deck that fits."""
    return tuple(Placement(card, 0, 3 * number, 0) for number, card in enumerate(cards))


def wrong(cards: Iterable[UbongoCard]) -> Layout:
    """Side by side, so that three symbols touch: that never fits."""
    return tuple(Placement(card, 2 * number, 0, 0) for number, card in enumerate(cards))


def laid(state: UbongoState, *counts: int) -> UbongoState:
    """Each seat lays so many fitting cards, or if the number is negative, so many of which none fit."""
    for seat, count in enumerate(counts):
        form = column if count >= 0 else wrong
        state = UBONGO.play(state, Seat(seat), Lay(form(cards_of(state, seat)[: abs(count)])))
    return state


def everybody(state: UbongoState) -> frozenset[Seat]:
    return frozenset(map(Seat, range(len(state.layouts))))
