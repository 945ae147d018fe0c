"""Write a bot, try it at a local table, connect it to a referee.

A whole bot, and both ways to let it play:

    import seatwise

    class Lowest(seatwise.Bot):
        def choose(self, view):
            return min(view.legal_cards, key=lambda card: card.value)

    print(seatwise.play([Lowest, "greedy"], matches=100))                    # here, without a server
    seatwise.run(Lowest, game="ugo", address="localhost:7433", token="...")  # against other people's bots
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from seatwise.bot import Bot
from seatwise.bot_errors import BadAnswerError, UsageError
from seatwise.errors import SeatwiseError
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise_referee.games.ugo import Card, Colour, View

if TYPE_CHECKING:
    from seatwise.local import Results, play
    from seatwise.remote import run, run_async

_LAZY = {
    "Results": "seatwise.local",
    "play": "seatwise.local",
    "run": "seatwise.remote",
    "run_async": "seatwise.remote",
}
"""What costs time to import, for it brings a table or grpc with it, is imported at its first use."""

__all__ = [
    "BadAnswerError",
    "Bot",
    "Card",
    "Colour",
    "Offer",
    "Result",
    "Results",
    "SeatwiseError",
    "UsageError",
    "View",
    "play",
    "run",
    "run_async",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'seatwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
