"""The only list of the games that the referee knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatwise_referee.game import Game
from seatwise_referee.games.ubongo import DEFAULT_DIFFICULTY, Deck, Ubongo
from seatwise_referee.games.ugo import Ugo
from seatwise_referee.time_control import TimeControl

GAMES: dict[str, Game[Any, Any, Any]] = {game.name: game for game in (Ugo(), Ubongo())}
"""The rules of each game, by its name."""


def default_time_control(game: str, **changes: int) -> TimeControl:
    """Return the time control that a match of the game has by default; `changes` replace some of its limits."""
    return TimeControl(free_ms=dict(GAMES[game].paces), **changes)


def use_decks(decks: Iterable[Deck], default_deck: str = DEFAULT_DIFFICULTY) -> None:
    """From now on, let Ubongo be played with these decks besides the house's, and with this one where none is named.

    Raises `BadDeck` if two decks share a name, or no deck has the default's.
    """
    GAMES[Ubongo.name] = Ubongo(decks, default_deck)
