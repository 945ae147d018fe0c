"""Thousands of matches of UGO! at once: the interface, and the choice between compiled tables and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView


class UgoBatch(Protocol):
    """Matches of UGO! side by side, with all hands; a trainer must not show its bot the other seats' hands."""

    count: int
    """Number of tables."""
    seats: int
    rounds: int

    @property
    def asked(self) -> NDArray[np.int8]:
        """The seat that moves, by table. It means nothing at a table that is over."""

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Whether the match is over, by table."""

    @property
    def is_laying(self) -> NDArray[np.bool_]:
        """Whether the seat that moves lays the cards that it won, by table."""

    @property
    def points(self) -> NDArray[np.int32]:
        """The points of all finished rounds: (tables, seats)."""

    def read_field(self, name: str) -> NDArray[Any]:
        """Return a copy of one array of the state. Its name is one of hand, played, top, section, farmers, missing, supply, round."""

    def mask(self) -> NDArray[np.bool_]:
        """Return which actions are legal: (tables, 69). At a table that is over none is."""

    def step(self, actions: NDArray[np.int64]) -> None:
        """Take one of the actions at each table that goes on; the other numbers are ignored.

        Raises:
            ValueError: An action is not legal. Then no table has changed.
        """

    def observe(self, viewer: int | None = None) -> NDArray[np.int8]:
        """Return what a seat sees at each table: (tables, size), as `encode_view` writes it.

        Args:
            viewer: The seat; without it the one that is asked at that table.
        """

    def random_actions(self) -> NDArray[np.int64]:
        """Return a random legal action for each table, 0 where the match is over."""

    def seed(self, seed: int) -> None:
        """Begin the random numbers of `random_actions` again, from this seed."""

    def copy(self) -> UgoBatch:
        """Return other tables in the same positions."""

    def deal_again(self, numbers: NDArray[np.int64], deals: NDArray[np.uint8]) -> None:
        """Begin new matches at some tables.

        Args:
            numbers: The tables.
            deals: Their deals: (tables, rounds, 45).
        """

    def set_view(self, number: int, view: UgoView, hands: Sequence[int] | None = None) -> None:
        """Set a table to the position that a seat sees.

        Args:
            number: The table.
            view: The view of a seat, in a match with the seats and rounds of this batch.
            hands: The hand of each seat as 45 bits; without it only the viewer's hand is known, and the table
                cannot be played on beyond its turn.

        Raises:
            ValueError: The view is a spectator's, or has other seats or rounds.
        """


def open_batch(deals: NDArray[np.uint8], seats: int, *, is_compiled: bool | None = None) -> UgoBatch:
    """Begin a match of UGO! at each of many tables, and return the tables.

    Args:
        deals: The cards of each round at each table: (tables, rounds, 45). The first ten are the hand of seat 0.
        seats: The number of seats at each table, 2 to 4.
        is_compiled: Whether to take compiled tables; without it they are taken where `seatwise_fast` is installed.

    Raises:
        ValueError: The deals or the seats cannot be.
        ImportError: Compiled tables are wanted, and `seatwise_fast` is not installed.
    """
    if is_compiled is False:
        return _numpy_batch(deals, seats)
    try:
        from seatwise_fast.fast_batch import FastBatch
    except ImportError:
        if is_compiled:
            raise
        return _numpy_batch(deals, seats)
    return FastBatch(deals, seats)


def _numpy_batch(deals: NDArray[np.uint8], seats: int) -> UgoBatch:
    from seatwise.rl.numpy_batch import NumpyBatch

    return NumpyBatch(deals, seats)


def check_batch_deals(deals: NDArray[np.uint8], seats: int) -> NDArray[np.uint8]:
    """Return a copy of the deals of a batch. Raises `ValueError` where they or the seats cannot be."""
    if seats not in (2, 3, 4):
        raise ValueError(f"seats: UGO! is played by 2 to 4, not by {seats}")
    given = np.array(deals, np.uint8, order="C")
    if given.ndim != 3 or given.shape[2] != 45 or not 1 <= given.shape[1] <= 8 or not given.shape[0]:
        raise ValueError(f"deals: (tables, 1 to 8 rounds, 45), not {given.shape}")
    if not np.array_equal(
        np.sort(given, axis=2), np.broadcast_to(np.arange(45, dtype=np.uint8), given.shape)
    ):
        raise ValueError("deals: a round does not have each card from 0 to 44 once")
    return given


def first_illegal(mask: NDArray[np.bool_], actions: NDArray[np.int64], is_over: NDArray[np.bool_]) -> int:
    """Return the first table that goes on and whose action is not legal; -1 if there is none."""
    in_range = (actions >= 0) & (actions < mask.shape[1])
    is_legal = mask[np.arange(len(actions)), np.where(in_range, actions, 0)] & in_range
    wrong = np.flatnonzero(~is_legal & ~is_over)
    return int(wrong[0]) if len(wrong) else -1


def refuse_illegal(number: int, actions: NDArray[np.int64]) -> NoReturn:
    """Raise `ValueError` that names a table and its action."""
    raise ValueError(
        f"table {number}: action {actions[number]} is not legal; see mask(). No table has changed"
    )
