"""Write a bot, test it at a local table, and connect it to a server.

A bot is a class with one method for each kind of question:

    >>> import seatwise
    >>> class Highest(seatwise.Bot):
    ...     def choose(self, view):
    ...         return max(view.legal_cards, key=lambda card: card.value)

`play` runs matches here, without a server. The same seed gives the same matches:

    >>> results = seatwise.play([Highest, "random"], matches=20, seed=7)
    >>> results.bots
    ('Highest', 'random')
    >>> results.standing("Highest").mean_points > results.standing("random").mean_points
    True

`run` connects the bot to a server, where it plays against other bots:

    seatwise.run(Highest, address="localhost:7433", token="...")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatwise import async_client as async_client
    from seatwise import client as client
    from seatwise import errors as errors
    from seatwise import hosting as hosting
    from seatwise import kits as kits
    from seatwise import local as local
    from seatwise import replay as replay
    from seatwise import season as season
    from seatwise import standings as standings
    from seatwise import testing as testing
    from seatwise import ubongo as ubongo
    from seatwise import ugo as ugo
    from seatwise.bot import Bot
    from seatwise.errors import BadAnswerError, ResignMatch, SeatwiseError, UsageError
    from seatwise.local import play
    from seatwise.offer import Offer
    from seatwise.remote import run, run_async
    from seatwise.result import Result
    from seatwise.standings import Results
    from seatwise.ugo import Card, Colour, View
    from seatwise_referee.mixed_move import MixedMove

__all__ = [
    "BadAnswerError",
    "Bot",
    "Card",
    "Colour",
    "MixedMove",
    "Offer",
    "ResignMatch",
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
    "BadAnswerError": "seatwise.errors",
    "Bot": "seatwise.bot",
    "Card": "seatwise.ugo",
    "Colour": "seatwise.ugo",
    "MixedMove": "seatwise_referee.mixed_move",
    "Offer": "seatwise.offer",
    "ResignMatch": "seatwise.errors",
    "Result": "seatwise.result",
    "Results": "seatwise.standings",
    "SeatwiseError": "seatwise.errors",
    "UsageError": "seatwise.errors",
    "View": "seatwise.ugo",
    "play": "seatwise.local",
    "run": "seatwise.remote",
    "run_async": "seatwise.remote",
}
"""The module of each name. A name is imported at its first use, so that a program that plays offline never loads grpc."""


_MODULES = (
    "async_client", "client", "errors", "hosting", "kits", "local", "replay", "season", "standings",
    "testing", "ubongo", "ugo",
)  # fmt: skip
"""The modules that `import seatwise` offers, as in `seatwise.ugo.View`."""

if not TYPE_CHECKING:  # or a type checker would take any name

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"seatwise.{name}")
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'seatwise' has no attribute {name!r}")
        found = getattr(import_module(home), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
