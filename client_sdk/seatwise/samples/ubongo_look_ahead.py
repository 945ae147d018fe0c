"""Looks ahead over the cards that others lay open, and lays only its best layout.

Each layout costs time, and in most hands the whole search is over before anybody can call. So it lays nothing until then. Only a
hard hand takes longer. In the rounds 2, 4 and 6 it knows cards of the others: those that they laid in the round before, which
are turned over now. If another seat soon has seven of these that fit, it may call first. Then this bot lays the best layout
found so far, and searches on.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatwise import Bot
from seatwise.samples.ubongo_solver import NODES, Search
from seatwise.ubongo import GOAL, Call, Layout, OfferEnd, Side, View
from seatwise_referee.games.ubongo import HOUSE_DECKS, Deck

BRIEF_NODES = 30
"""The layouts that a brief search looks at, at most, in its own hand and in the open cards of another seat."""


class LookAhead(Bot):
    """Searches all layouts of its hand, and some of the cards that others lay open."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield the best layout, in hard hands an early one before it, then a call or an offer to end the round."""
        brief = Search(view.hand, BRIEF_NODES)
        *_, best = brief.find_layouts()
        if len(best) < GOAL and brief.nodes_left == 0:
            if another_may_call(view):
                yield best
            *_, best = Search(view.hand, NODES).find_layouts()
        yield best
        yield Call() if len(best) >= GOAL else OfferEnd(on=True)


def another_may_call(view: View) -> bool:
    """Return whether a brief search finds seven cards that fit among the known cards of another seat."""
    return any(
        len(layout) >= GOAL
        for cards in turned_cards(view)
        for layout in Search(cards, BRIEF_NODES).find_layouts()
    )


def turned_cards(view: View) -> Iterator[tuple[Side, ...]]:
    """Yield the cards of each other seat that lay open at the end of the round before, with the sides that are up now.

    It yields nothing in the rounds 1, 3 and 5, in which new cards are dealt, and for a deck that it does not know.
    """
    deck = find_deck(view)
    if deck is None or view.round % 2:
        return
    for seat, built in enumerate(view.last_round):
        if seat != view.seat:
            yield tuple(deck.side(side.card, view.round) for side in built.sides)


def find_deck(view: View) -> Deck | None:
    """Return the deck of the house that has all sides of the hand."""
    for deck in HOUSE_DECKS.values():
        if all(deck.side(side.card, view.round) == side for side in view.hand):
            return deck
    return None
