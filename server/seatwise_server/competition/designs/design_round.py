"""The parts of designs: rounds of tables of entrant numbers."""

from __future__ import annotations

NumberedTable = tuple[int, ...]
"""The numbers of the entrants at one table, by seat."""
DesignRound = tuple[NumberedTable, ...]
"""The tables of one round. An entrant whose number is at no table sits out."""


def least_sum_of_squares(total: int, cells: int) -> int:
    """Return the least sum of squares of `cells` whole numbers whose sum is `total`: the most even way to share it out."""
    each, more = divmod(total, max(cells, 1))
    return more * (each + 1) ** 2 + (cells - more) * each**2
