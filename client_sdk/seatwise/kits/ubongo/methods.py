"""The method of a bot that answers the questions of Ubongo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatwise_referee.games import ubongo


class UbongoMethods:
    """The method for Ubongo, which every bot inherits."""

    def build(self, view: ubongo.UbongoView) -> Any:
        """Build in one round of Ubongo. Every bot for Ubongo must have this method.

        Write a generator, `async` or not. When the round is over, the SDK closes it. A generator that finishes
        without `Call()` agrees to end the round. An `async` generator must await something from time to time, so
        that the event loop can continue.

        Args:
            view: Everything that the seat may know when the round starts. `view.hand` are its nine sides.

        Yields:
            A layout, which replaces the layout before: placements `(card, x, y, turn)`, nine at most.
            `Call()` calls "Ubongo!" with the last layout. `OfferEnd(True)` agrees to end the round, and
            `OfferEnd(False)` takes that back. `Thought(ms)` declares thinking time at a local table.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method build(self, view)")
