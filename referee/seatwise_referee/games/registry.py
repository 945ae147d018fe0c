"""The only list of the games that the house hosts."""

from __future__ import annotations

from typing import Any

from seatwise_referee.game import Game
from seatwise_referee.games.ubongo import Ubongo
from seatwise_referee.games.ugo import Ugo

GAMES: dict[str, Game[Any, Any, Any]] = {game.name: game for game in (Ugo(), Ubongo())}
"""By name."""
