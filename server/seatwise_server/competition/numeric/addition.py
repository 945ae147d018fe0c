"""One way to add floats, for every Python.

From Python 3.12 on, the built-in `sum` corrects its rounding, so its last digits differ from those of Python 3.11. Published
figures must not depend on that. So all sums of competition/ that may have floats use `add_up`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add


def _add_from_first_to_last(values: Iterable[float]) -> float:
    return reduce(add, values, 0)


_rounds_each_time = sum([1.0, 1e100, 1.0, -1e100]) == 0.0
add_up = sum if _rounds_each_time else _add_from_first_to_last
"""Returns the sum, added from the first value to the last and rounded after each; 0 if there are none."""
