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

if TYPE_CHECKING:
    from seatwise.bot import Bot
    from seatwise.bot_errors import BadAnswerError, UsageError
    from seatwise.errors import SeatwiseError
    from seatwise.local import play
    from seatwise.offer import Offer
    from seatwise.remote import run, run_async
    from seatwise.result import Result
    from seatwise.standings import Results
    from seatwise_referee.games.ugo import Card, Colour, View

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

_HOMES = {
    "BadAnswerError": "seatwise.bot_errors",
    "Bot": "seatwise.bot",
    "Card": "seatwise_referee.games.ugo",
    "Colour": "seatwise_referee.games.ugo",
    "Offer": "seatwise.offer",
    "Result": "seatwise.result",
    "Results": "seatwise.standings",
    "SeatwiseError": "seatwise.errors",
    "UsageError": "seatwise.bot_errors",
    "View": "seatwise_referee.games.ugo",
    "play": "seatwise.local",
    "run": "seatwise.remote",
    "run_async": "seatwise.remote",
}
"""Where the names live. Each is imported at its first use: who plays offline never waits for grpc."""


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'seatwise' has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
