"""Published figures are the same on every Python, although the built-in `sum` of Python 3.12 and newer rounds otherwise than that of 3.11."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seasons.simulated_points import season

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric import linalg
from seatwise_server.competition.ratings.strengths import fit_strengths
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import Duplicate
from seatwise_server.competition.statistics.fairness import check_fairness
from seatwise_server.competition.statistics.luck_correction import (
    correct_by_measures,
    correct_by_other_tables,
    remaining_variance,
)
from seatwise_server.competition.statistics.season_statistics import (
    bootstrap_orders,
    compare_pairs,
    estimate_differences,
    estimate_entrant_means,
    follow_differences,
)

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS | st.integers(-(2**53), 2**53), max_size=20))
def test_values_are_added_from_the_first_to_the_last(values: list[float]) -> None:
    total: float = 0
    for value in values:
        total = total + value
    for add_up in (linalg.add_up, linalg._add_from_first_to_last):
        found = add_up(iter(values))
        assert (type(found), repr(found)) == (type(total), repr(total))


def corrected_sum(values: Iterable[Any], start: Any = 0) -> Any:
    """Rounds once, at the end, where values are floats: even less like Python 3.11 than Python 3.12 is."""
    found = [*values]
    return start + math.fsum(found) if any(isinstance(each, float) for each in found) else _SUM(found, start)


_SUM = sum


def figures_of(log: list[LoggedResult]) -> dict[str, str]:
    """Estimates of a season with all their digits."""
    measures = [[result.par for result in log], [tuple(map(float, result.points)) for result in log]]
    par = correct_by_measures(log, measures[:1], [0.5])
    running = follow_differences({f"1-{each.seq}": each for each in log}, ())
    found: Mapping[str, Any] = {
        "means": estimate_entrant_means(log, par),
        "differences": estimate_differences(log),
        "pairs": compare_pairs(log),
        "other tables": correct_by_other_tables(log, par, 0.5),
        "measures": correct_by_measures(log, measures, [0.3, 0.1]),
        "variance": remaining_variance(log, par),
        "orders": bootstrap_orders(log),
        "fairness": check_fairness(log),
        "running": {pair: each.interval() for pair, each in running.items()},
        "strengths": fit_strengths(log),
    }
    return {name: repr(value) for name, value in found.items()}


def test_no_figure_depends_on_how_the_built_in_sum_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = RoundRobin(tuple("abcdef"), 3, 8, Duplicate.ROTATION).all_matches()
    log = season(matches, {bot: number / 3 for number, bot in enumerate("abcdef")}, Random(7))
    before = figures_of(log)
    monkeypatch.setattr(builtins, "sum", corrected_sum)
    assert figures_of(log) == before


ADDS_WHOLE_NUMBERS = {"linalg.py", "played_season.py", "comparisons.py", "sandwich_covariance.py"}
"""These may use the built-in `sum` for counts; and one is the exception itself."""


@pytest.mark.parametrize("part", ["numeric", "ratings", "standings", "statistics"])
def test_the_built_in_sum_adds_only_whole_numbers(part: str) -> None:
    found = []
    for path in sorted((Path(linalg.__file__).parents[1] / part).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_sum = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum"
            if is_sum and path.name not in ADDS_WHOLE_NUMBERS and "map(len, " not in ast.unparse(node):
                found.append(f"{path.name}: {ast.unparse(node)}: use add_up, because floats may come")
    assert not found, "\n".join(found)
