"""How many examples a test draws: some of them in `make test`, all of them in `make nightly`."""

from __future__ import annotations

import os

FULL = os.environ.get("SEATWISE_TESTS") == "full"
"""`make nightly` sets it, and runs every test with the mark `sampled` again."""


def examples(most: int, in_make_test: int) -> int:
    """As many as this run draws. The test that asks has the mark `sampled`; tests of hypothesis have it by themselves."""
    return most if FULL else in_make_test
