"""The methods of a bot that answer the questions of UGO!."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatwise_referee.games.ugo import default_order

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView


class UgoMethods:
    """The methods for UGO!, which every bot inherits."""

    def choose(self, view: UgoView) -> Any:
        """Choose the card to play. Every bot for UGO! must have this method.

        Args:
            view: Everything that the seat may know. `view.legal_cards` are the cards that may be played.

        Returns:
            One of `view.legal_cards`, or its name, as in `"R3"`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method choose(self, view)")

    def arrange(self, view: UgoView) -> Any:
        """Arrange the won cards. The SDK calls it only where two orders give different kingdoms.

        Each card goes on top of its colour's stack, or opens the next free section from the left. Without this
        method the highest card of each colour goes on top, and the colour with the highest top is laid first.

        Args:
            view: Everything that the seat may know. `view.won_cards` are the cards to lay.

        Returns:
            Each card of `view.won_cards` once, in the order in which the cards are laid.
        """
        return default_order(view.won_cards)
