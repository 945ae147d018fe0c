"""What duplicate deals are for: the same certainty from fewer matches."""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def bench() -> ModuleType:
    file = Path(__file__).parent.parent / "bench" / "matches_needed.py"
    spec = importlib.util.spec_from_file_location("matches_needed", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["matches_needed"] = module  # so that other processes can be told of its functions
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_rotation_needs_at_most_half_the_matches_for_greedy_and_a_careless_greedy(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(bench.__file__ or "").parent))
    with ProcessPoolExecutor(2) as pool:
        rows = bench.at_one_table(("greedy", "greedy-10"), 2, 60, pool)
    needed = {row.design: row.needed.matches for row in rows}
    assert needed["same table, rotation of 2"] <= needed["same table, plain"] / 2


def test_matches_needed_grow_with_the_variance(bench: ModuleType) -> None:
    units = [(float(number % 7), 0.0) for number in range(100)]
    found = bench.needed(units, bench._paired)
    assert found.matches == pytest.approx((1.960 + 0.842) ** 2 * 4.0 / 4, rel=0.05)
    assert found.low < found.matches < found.high
