"""One hand of Ubongo as an environment of Gymnasium: choose one of the listed placements, call, or stop.

The environment plays at the referee itself, at a table whose other seat builds nothing. An action is the number of a
placement in the list of all that fit (0 to 63), 64 calls "Ubongo!", and 65 stops. The reward are the points of the round,
when it ends. An action that the mask does not allow ends the hand with `ILLEGAL_REWARD`, as in environments of PettingZoo. There is
no clock: to build a call faster is the task of a bot, not of this environment.
"""

from __future__ import annotations

from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from seatwise.kits.ubongo.text import draw
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import (
    CALL,
    GOAL,
    HAND_SIZE,
    Lay,
    Placement,
    Stop,
    Ubongo,
    UbongoMove,
    UbongoState,
    UbongoView,
    fitting_places,
)

UBONGO_RULES: Final = Ubongo()
BUILDER: Final = Seat(0)
MOST_CHOICES: Final = 64
"""The longest list that was seen in 100,000 random positions had 24 placements; more than 64 are cut."""

CALL_ACTION: Final = MOST_CHOICES
STOP_ACTION: Final = MOST_CHOICES + 1
UBONGO_ACTIONS: Final = MOST_CHOICES + 2
ILLEGAL_REWARD: Final = -1.0
"""The reward for an action that is not legal. The hand is over then, and worth no points."""

GRID: Final = 61
"""Columns and rows of the table, from -30 to 30."""

SYMBOL_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class UbongoEnv(gymnasium.Env):  # type: ignore[misc]
    """A hand of nine cards."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(self, deck: str | None = None, render_mode: str | None = None) -> None:
        """Prepare the environment; `reset` deals.

        Args:
            deck: The deck, as the option `deck` of a match; without it the default one.
            render_mode: "ansi" for text, or none.
        """
        given: dict[str, Any] = {"rounds": 1} | ({"deck": deck} if deck else {})
        self._options = UBONGO_RULES.complete_options(given)
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(UBONGO_ACTIONS)
        self.observation_space = spaces.Dict(
            {
                "hand": spaces.Box(0, len(SYMBOL_LETTERS), (HAND_SIZE, 7), np.int8),
                "choices": spaces.Box(-GRID, GRID, (MOST_CHOICES, 4), np.int8),
                "action_mask": spaces.Box(0, 1, (UBONGO_ACTIONS,), np.int8),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.int8]], dict[str, Any]]:
        """Deal a hand."""
        super().reset(seed=seed, options=options)
        state = UBONGO_RULES.deal(2, self.np_random.bytes(32), self._options)
        self._state: UbongoState = UBONGO_RULES.play(state, Seat(1), Stop())
        self._is_over, self._choices = False, list_choices(self.view)
        return self._observe(), {"action_mask": self._mask()}

    @property
    def view(self) -> UbongoView:
        """The view of the builder, as a bot of this product gets it."""
        return UBONGO_RULES.view(self._state, BUILDER)

    def step(self, action: int) -> tuple[dict[str, NDArray[np.int8]], float, bool, bool, dict[str, Any]]:
        """Take an action. Raises `ValueError` for one that is none of the space, and after the end."""
        if self._is_over or not 0 <= action < UBONGO_ACTIONS:
            raise ValueError(
                "the hand is over; call reset()" if self._is_over else f"there is no action {action}"
            )
        is_legal = bool(self._mask()[action])
        reward = self._play(self._move_of(int(action))) if is_legal else ILLEGAL_REWARD
        self._is_over |= not is_legal
        self._choices = [] if self._is_over else list_choices(self.view)
        return self._observe(), reward, self._is_over, False, {"action_mask": self._mask()}

    def _play(self, move: UbongoMove) -> float:
        """Play a move. Return the points of the round if it ends it."""
        self._state = UBONGO_RULES.play(self._state, BUILDER, move)
        points = self._state.round.points
        self._is_over = bool(points)
        return float(points[0][BUILDER]) if points else 0.0

    def _move_of(self, action: int) -> UbongoMove:
        if action == CALL_ACTION:
            return CALL
        return Stop() if action == STOP_ACTION else Lay((*self.view.layout, self._choices[action]))

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(UBONGO_ACTIONS, np.int8)
        if not self._is_over:
            mask[: len(self._choices)] = 1
            mask[CALL_ACTION] = len(self.view.layout) >= GOAL
            mask[STOP_ACTION] = 1
        return mask

    def _observe(self) -> dict[str, NDArray[np.int8]]:
        return encode_building(self.view, self._choices) | {"action_mask": self._mask()}

    def render(self) -> str | None:
        """Return the laid cards as text, for the mode "ansi"."""
        return draw(self.view.layout, dict(self.view.hand)) if self.render_mode == "ansi" else None


def list_choices(view: UbongoView) -> list[Placement]:
    """Return every placement that fits, in the view of a builder: of the cards not laid yet, in the order of the hand; at most 64."""
    symbols, laid = dict(view.hand), {placement.card for placement in view.layout}
    free = [side.card for side in view.hand if side.card not in laid]
    return [place for card in free for place in fitting_places(view.layout, card, symbols)][:MOST_CHOICES]


def encode_building(view: UbongoView, choices: list[Placement]) -> dict[str, NDArray[np.int8]]:
    """Return what a builder sees as numbers; after the end all are 0.

    Args:
        view: The view of the seat that builds.
        choices: Its placements, as `list_choices` returns them.

    Returns:
        `hand`: for each card its six symbols from 1, and whether it is laid. `choices`: for each placement the place of
        its card in the hand from 1, x, y and quarter turns.
    """
    hand, listed = np.zeros((HAND_SIZE, 7), np.int8), np.zeros((MOST_CHOICES, 4), np.int8)
    laid = {placement.card for placement in view.layout}
    places = {side.card: number for number, side in enumerate(view.hand, start=1)}
    for number, side in enumerate(view.hand):
        hand[number] = [*(SYMBOL_LETTERS.index(symbol) + 1 for symbol in side.symbols), side.card in laid]
    for number, (card, x, y, turn) in enumerate(choices):
        listed[number] = places[card], x, y, turn
    return {"hand": hand, "choices": listed}
