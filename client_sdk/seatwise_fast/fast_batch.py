"""Thousands of matches at compiled tables, in NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from seatwise.rl.actions import ACTION_COUNT
from seatwise.rl.observation import observation_size
from seatwise_fast.compiled import ffi, lib, new_table

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView

_SHAPES: Final[dict[str, tuple[type[Any], tuple[int, ...]]]] = {
    "hand": (np.uint64, (4,)), "played": (np.uint64, (4,)), "points": (np.int32, (4,)),
    "top": (np.int8, (4, 5)), "section": (np.int8, (4, 5)), "farmers": (np.int8, (4,)), "missing": (np.uint8, (4,)),
    "asked": (np.int8, ()), "is_laying": (np.int8, ()), "supply": (np.int8, ()), "round": (np.int8, ()),
    "is_over": (np.int8, ()),
}  # fmt: skip
_TABLE_FIELDS: Final = np.dtype(
    {
        "names": list(_SHAPES),
        "formats": list(_SHAPES.values()),
        "offsets": [ffi.offsetof("ugo_table", name) for name in _SHAPES],
        "itemsize": ffi.sizeof("ugo_table"),
    }
)


class UgoBatch:
    """Matches of UGO! side by side, with all hands; a trainer must not show its bot the other seats' hands.

    Attributes:
        count: Number of tables.
        seats: Number of seats at each table.
        rounds: Rounds of each match.
    """

    def __init__(self, deals: NDArray[np.uint8], seats: int) -> None:
        self._deals = _check_deals(deals, seats)
        self.count, self.rounds = self._deals.shape[:2]
        self.seats = seats
        self._size = observation_size(seats)
        self._make_tables()
        lib.ugo_deal(self._tables, self.count, seats, self.rounds, self._deals_memory)

    def _make_tables(self) -> None:
        self._tables = ffi.new("ugo_table[]", self.count)
        self._deals_memory = ffi.from_buffer("uint8_t[]", self._deals)
        self._arrays = np.frombuffer(ffi.buffer(self._tables), dtype=_TABLE_FIELDS)
        self._random = ffi.new("uint64_t *", 1)

    @property
    def asked(self) -> NDArray[np.int8]:
        """The seat that moves, by table. It means nothing at a table that is over."""
        return self.read_field("asked")

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Whether the match is over, by table."""
        return self.read_field("is_over").astype(np.bool_)

    @property
    def is_laying(self) -> NDArray[np.bool_]:
        """Whether the seat that moves lays the cards that it won, by table."""
        return self.read_field("is_laying").astype(np.bool_)

    @property
    def points(self) -> NDArray[np.int32]:
        """The points of all finished rounds: (tables, seats)."""
        return self.read_field("points")[:, : self.seats]

    def read_field(self, name: str) -> NDArray[Any]:
        """Return a copy of one array of the state. Its name is one of hand, played, top, section, farmers, missing, supply, round."""
        return self._arrays[name].copy()

    def mask(self) -> NDArray[np.bool_]:
        """Return which actions are legal: (tables, 69). At a table that is over none is."""
        out = np.empty((self.count, ACTION_COUNT), np.uint8)
        lib.ugo_mask(self._tables, self.count, ffi.from_buffer("uint8_t[]", out))
        return out.view(np.bool_)

    def step(self, actions: NDArray[np.int64]) -> None:
        """Take one of the actions at each table that goes on; the other numbers are ignored.

        Raises:
            ValueError: An action is not legal. Then no table has changed.
        """
        given = np.ascontiguousarray(actions, np.int64)
        if given.shape != (self.count,):
            raise ValueError(f"actions: one for each of {self.count} tables, not of shape {given.shape}")
        memory = ffi.from_buffer("int64_t[]", given)
        wrong = lib.ugo_step(self._tables, self.count, memory, self._deals_memory)
        if wrong >= 0:
            raise ValueError(
                f"table {wrong}: action {given[wrong]} is not legal; see mask(). No table has changed"
            )

    def observe(self, viewer: int | None = None) -> NDArray[np.int8]:
        """Return what a seat sees at each table: (tables, size), as `encode_view` writes it.

        Args:
            viewer: The seat; without it the one that is asked at that table.
        """
        out = np.empty((self.count, self._size), np.int8)
        seat = -1 if viewer is None else range(self.seats)[viewer]
        lib.ugo_observe(self._tables, self.count, seat, self._size, ffi.from_buffer("int8_t[]", out))
        return out

    def random_actions(self) -> NDArray[np.int64]:
        """Return a random legal action for each table, 0 where the match is over."""
        out = np.empty(self.count, np.int64)
        lib.ugo_random_actions(self._tables, self.count, ffi.from_buffer("int64_t[]", out), self._random)
        return out

    def seed(self, seed: int) -> None:
        """Begin the random numbers of `random_actions` again, from this seed."""
        self._random[0] = seed % (1 << 64)

    def copy(self) -> UgoBatch:
        """Return other tables in the same positions."""
        other = UgoBatch.__new__(UgoBatch)
        other.count, other.rounds, other.seats, other._size = self.count, self.rounds, self.seats, self._size
        other._deals = self._deals.copy()
        other._make_tables()
        ffi.buffer(other._tables)[:] = ffi.buffer(self._tables)[:]
        other._random[0] = self._random[0]
        return other

    def deal_again(self, numbers: NDArray[np.int64], deals: NDArray[np.uint8]) -> None:
        """Begin new matches at the tables of these numbers, with the deals (tables, rounds, 45)."""
        self._deals[numbers] = _check_deals(deals, self.seats)
        for number in map(int, numbers):
            memory = self._deals_memory + number * 45 * self.rounds
            lib.ugo_deal(self._tables + number, 1, self.seats, self.rounds, memory)

    def set_view(self, number: int, view: UgoView, hands: Sequence[int] | None = None) -> None:
        """Set the table of this number to the position that a seat sees, as `FastTable.set_view` does."""
        self._tables[range(self.count)[number]] = new_table(view, (self.seats, self.rounds), hands)[0]


def _check_deals(deals: NDArray[np.uint8], seats: int) -> NDArray[np.uint8]:
    """Return a copy of the deals of a batch. Raises `ValueError` where they or the seats cannot be."""
    if seats not in (2, 3, 4):
        raise ValueError(f"seats: UGO! is played by 2 to 4, not by {seats}")
    given = np.array(deals, np.uint8, order="C")
    if given.ndim != 3 or given.shape[2] != 45 or not 1 <= given.shape[1] <= 8 or not given.shape[0]:
        raise ValueError(f"deals: (tables, 1 to 8 rounds, 45), not {given.shape}")
    if (np.sort(given, axis=2) != np.arange(45)).any():
        raise ValueError("deals: a round does not have each card from 0 to 44 once")
    return given
