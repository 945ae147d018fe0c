"""Plays the card that does best in the trick on the table, as if no other trick would follow.

It draws no lots, and leagues measure the luck of a deal by it: how it plays must not change.
"""

from __future__ import annotations

from seatwise import Bot, Card
from seatwise.ugo import Kingdom, View, default_order, farmers_gained, lay, score_kingdom, winner_of

FULL = 9
"""Nobody has more farmers."""


class Greedy(Bot):
    """Looks at what its kingdom would be worth if the round ended with this trick."""

    def choose(self, view: View) -> Card:
        """The legal card after which its kingdom is worth most; of equals the lowest."""
        return max(view.legal_cards, key=lambda card: (worth(view, card), -card.value))


def worth(view: View, card: Card) -> int:
    """The points of its kingdom if the trick ended with this card."""
    trick = (*view.trick, card)
    own, winner = len(view.trick), winner_of(trick)  # places in the order played
    sections, farmers = view.kingdoms[view.seat or 0]
    gained = min(farmers_gained(trick, winner)[own], view.supply)
    kingdom = Kingdom(sections, min(FULL, farmers + gained))
    if winner == own:
        kingdom = lay(kingdom, default_order(trick))
    return score_kingdom(kingdom)
