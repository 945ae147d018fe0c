"""The rules alone: random legal play, every move checked, by the time that a core really had; OpenSpiel's trick games beside it."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, TypeVar

from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo import Arrange

T = TypeVar("T")

OPEN_SPIEL = ("spades", "hearts")
ORDERS = [list(permutations(range(count))) for count in range(5)]
"""The ways to order so many things."""


def ugo(seconds: float) -> float:
    """Moves a second in UGO! with four seats."""
    game: Any = GAMES["ugo"]
    options, chance = game.complete_options({}), random.Random(1).random
    moves, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        state = game.deal(4, secrets.token_bytes(32), options)
        while prompt := game.prompt(state):
            [seat] = prompt.seats
            legal = game.legal_moves(state, seat)
            move = _any(tuple(legal), chance) if prompt.pace == "card" else _reordered(next(legal), chance)
            state = game.play(state, seat, move)
            moves += 1
    return moves / (time.process_time() - began)


def _any(things: Sequence[T], chance: Callable[[], float]) -> T:
    """In a third of the time that `random.choice` takes, for it is the rules that are measured."""
    return things[int(chance() * len(things))]


def _reordered(default: Arrange, chance: Callable[[], float]) -> Arrange:
    """The cards that were won, in any order."""
    return Arrange(tuple(map(default.cards.__getitem__, _any(ORDERS[len(default.cards)], chance))))


def open_spiel(name: str) -> Callable[[float], float]:
    """The same for a game of OpenSpiel; `ImportError` where it is not installed. Deals are not counted."""
    import pyspiel

    game = pyspiel.load_game(name)

    def moves_a_second(seconds: float) -> float:
        chance = random.Random(1).random
        moves, began = 0, time.process_time()
        while time.process_time() - began < seconds:
            state = game.new_initial_state()
            while not state.is_terminal():
                moves += not state.is_chance_node()
                state.apply_action(_any(state.legal_actions(), chance))
        return moves / (time.process_time() - began)

    return moves_a_second
