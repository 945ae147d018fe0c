"""Random tests are the same in every run, and a slow machine is no fault."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test, settings
from matches.effort import examples

import seatwise_referee.match

LONGEST_FILES = (
    "test_simulation.py",
    "test_doctor.py",
    "test_run.py",
    "test_crash.py",
    "test_chaos.py",
    "test_read_process.py",
    "test_store_nodes.py",
    "test_failpoints.py",
    "test_storms.py",
    "test_serve_cli.py",
    "test_no_shows.py",
    "test_backup.py",
    "test_takeover.py",
)
"""Files that take longest. They are run first, so that no process waits at the end for one of them."""

# A shell starts what is in the background with SIGINT ignored, and children would take that over: no Ctrl+C would end them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test may find the tokens of a server that the user of this machine runs.
os.environ["SEATWISE_DATA"] = str(Path(tempfile.gettempdir()) / f"no-data-of-a-user-{os.getpid()}")

settings.register_profile(
    "seatwise",
    max_examples=examples(100, 30),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seatwise")


@pytest.fixture(autouse=True)
def log_stays_captured() -> Iterator[None]:
    """Fails the test that leaves the product's log configured: no later test of the process would see a log line."""
    yield
    if structlog.get_config()["cache_logger_on_first_use"]:
        structlog.reset_defaults()
        pytest.fail("the test left the log of the product configured")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests that need the sources where the core is compiled."""
    is_compiled = not str(seatwise_referee.match.__file__).endswith(".py")
    if is_compiled and item.get_closest_marker("needs_sources"):
        pytest.skip("the compiled core has no sources or docstrings to read, and no methods to replace")


def pytest_collection_finish() -> None:
    """Lets no collection of garbage look at the tests again: they stay to the end."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest files first; the order within a file stays. It needs `--no-loadscope-reorder` of pytest-xdist.

    Tests of hypothesis get the mark `sampled`, for they draw fewer examples in `make test`.
    """
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("sampled")
    items.sort(key=lambda item: item.path.name not in LONGEST_FILES)
