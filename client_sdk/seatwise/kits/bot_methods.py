"""The methods of all games, which `seatwise.Bot` inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatwise.kits.ubongo.methods import UbongoMethods
from seatwise.kits.ugo.methods import UgoMethods

if TYPE_CHECKING:
    from seatwise_referee.hosted.payload import HostedView


class HostedMethods:
    """The method for games from outside, which every bot inherits."""

    def decide(self, view: HostedView) -> Any:
        """Choose a move in a game from outside. Every bot for such a game must have this method.

        Args:
            view: Everything that the seat may know. `view.data` is the object that the game shows, and
                `view.legal_moves` are the moves that may be made.

        Returns:
            One of `view.legal_moves`. If `view.has_more_moves` is set, another move that the rules allow will do, too.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method decide(self, view)")


class GameMethods(UgoMethods, UbongoMethods, HostedMethods):
    """The methods that answer the questions of the games. A bot writes those of its game."""
