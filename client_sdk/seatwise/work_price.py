"""The virtual time that a bot spends in functions of the SDK at a local table.

A function with a price adds it to the work of its thread. A local race reads the sum before and after it asks a bot, and
charges the difference. Elsewhere nobody reads it.
"""

from __future__ import annotations

from threading import local
from typing import Final


class WorkMeter(local):
    """Adds up the prices of one thread."""

    spent_us: int = 0
    """Virtual time so far, in microseconds."""


WORK: Final = WorkMeter()
"""The work of this thread."""
