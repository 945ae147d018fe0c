"""Thousands of matches at compiled tables, in NumPy arrays. `seatwise.rl.numpy_batch` has the same without a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from seatwise.rl.actions import ACTION_COUNT
from seatwise.rl.batch import check_batch_deals, first_illegal, refuse_illegal
from seatwise.rl.observation import observation_size
from seatwise_fast.compiled import ffi, lib
from seatwise_fast.table_views import set_table_from_view

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


class FastBatch:
    """Matches of UGO! side by side, compiled. See `seatwise.rl.batch.UgoBatch` for what each method does."""

    def __init__(self, deals: NDArray[np.uint8], seats: int) -> None:
        self._deals = check_batch_deals(deals, seats)
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
        return self._read("asked")

    @property
    def is_over(self) -> NDArray[np.bool_]:
        return self._read("is_over").astype(np.bool_)

    @property
    def is_laying(self) -> NDArray[np.bool_]:
        return self._read("is_laying").astype(np.bool_)

    @property
    def points(self) -> NDArray[np.int32]:
        return self._read("points")[:, : self.seats]

    def read_field(self, name: str) -> NDArray[Any]:
        return self._read(name)

    def _read(self, name: str) -> NDArray[Any]:
        return self._arrays[name].copy()

    def mask(self) -> NDArray[np.bool_]:
        out = np.empty((self.count, ACTION_COUNT), np.uint8)
        lib.ugo_mask(self._tables, self.count, ffi.from_buffer("uint8_t[]", out))
        return out.view(np.bool_)

    def step(self, actions: NDArray[np.int64]) -> None:
        given = np.ascontiguousarray(actions, np.int64)
        if given.shape != (self.count,):
            raise ValueError(
                f"actions: one for each of {self.count} tables, not an array of shape {given.shape}"
            )
        wrong = lib.ugo_step(
            self._tables, self.count, ffi.from_buffer("int64_t[]", given), self._deals_memory
        )
        if wrong >= 0:
            refuse_illegal(first_illegal(self.mask(), given, self.is_over), given)

    def observe(self, viewer: int | None = None) -> NDArray[np.int8]:
        out = np.empty((self.count, self._size), np.int8)
        seat = -1 if viewer is None else range(self.seats)[viewer]
        lib.ugo_observe(self._tables, self.count, seat, self._size, ffi.from_buffer("int8_t[]", out))
        return out

    def random_actions(self) -> NDArray[np.int64]:
        out = np.empty(self.count, np.int64)
        lib.ugo_random_actions(self._tables, self.count, ffi.from_buffer("int64_t[]", out), self._random)
        return out

    def seed(self, seed: int) -> None:
        self._random[0] = seed % (1 << 64)

    def copy(self) -> FastBatch:
        other = FastBatch.__new__(FastBatch)
        other.count, other.rounds, other.seats, other._size = self.count, self.rounds, self.seats, self._size
        other._deals = self._deals.copy()
        other._make_tables()
        ffi.buffer(other._tables)[:] = ffi.buffer(self._tables)[:]
        other._random[0] = self._random[0]
        return other

    def deal_again(self, numbers: NDArray[np.int64], deals: NDArray[np.uint8]) -> None:
        fresh = check_batch_deals(deals, self.seats)
        self._deals[numbers] = fresh
        for number in map(int, numbers):
            memory = self._deals_memory + number * 45 * self.rounds
            lib.ugo_deal(self._tables + number, 1, self.seats, self.rounds, memory)

    def set_view(self, number: int, view: UgoView, hands: Sequence[int] | None = None) -> None:
        if (len(view.hand_sizes), view.rounds) != (self.seats, self.rounds):
            raise ValueError(
                f"the view is of a match with other seats or rounds than {self.seats} and {self.rounds}"
            )
        table = ffi.new("ugo_table *")
        set_table_from_view(table, view)
        for seat, hand in enumerate(hands or ()):
            table.hand[seat] = hand
        self._tables[range(self.count)[number]] = table[0]
