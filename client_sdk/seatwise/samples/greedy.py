"""Plays the card that is best in the current trick, as if no other trick followed.

It uses no random numbers. Leagues measure the luck of a deal with this bot, so its play must never change.
"""

from __future__ import annotations

from seatwise import Bot, Card
from seatwise.ugo import (
    MOST_FARMERS,
    Kingdom,
    View,
    default_order,
    farmers_gained,
    lay,
    score_kingdom,
    winner_of,
)


class Greedy(Bot):
    """Computes the value of its kingdom as if the round ended with this trick."""

    def choose(self, view: View) -> Card:
        """Choose the legal card after which the kingdom scores most; of equal cards the lowest."""
        return max(view.legal_cards, key=lambda card: (worth_of_card(view, card), -card.value))


def worth_of_card(view: View, card: Card) -> int:
    """Return the points of the own kingdom if the trick ended with this card."""
    trick = (*view.trick, card)
    own, winner = len(view.trick), winner_of(trick)  # indexes in the order played
    sections, farmers = view.kingdoms[view.seat or 0]
    gained = min(farmers_gained(trick, winner)[own], view.supply)
    kingdom = Kingdom(sections, min(MOST_FARMERS, farmers + gained))
    if winner == own:
        kingdom = lay(kingdom, default_order(trick))
    return score_kingdom(kingdom)
