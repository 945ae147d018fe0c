"""Random tests are the same in every run, and a slow machine is no fault."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

LONGEST_FILES = (
    "test_failpoints.py",
    "test_previous_release.py",
    "test_simulation.py",
    "test_chaos.py",
    "test_crash.py",
    "test_run.py",
    "test_memory.py",
    "test_storms.py",
)
"""Files that take longest. They are run first, so that no process waits at the end for one of them."""

settings.register_profile(
    "seatwise", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("seatwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest files first; the order within a file stays. It needs `--no-loadscope-reorder` of pytest-xdist."""
    items.sort(key=lambda item: item.path.name not in LONGEST_FILES)
