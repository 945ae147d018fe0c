"""The methods of all games, which `seatwise.Bot` inherits."""

from __future__ import annotations

from seatwise.kits.hosted_methods import HostedMethods
from seatwise.kits.ubongo_methods import UbongoMethods
from seatwise.kits.ugo_methods import UgoMethods


class GameMethods(UgoMethods, UbongoMethods, HostedMethods):
    """The methods that answer the questions of the games. A bot writes those of its game."""
