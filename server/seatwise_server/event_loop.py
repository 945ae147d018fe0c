"""Runs the coroutine of a process in an event loop: that of Python, or uvloop, which is an extra."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

Result = TypeVar("Result")


def has_uvloop() -> bool:
    """Return whether uvloop is installed."""
    return find_spec("uvloop") is not None


def run_in_loop(work: Coroutine[Any, Any, Result], *, with_uvloop: bool) -> Result:
    """Run a coroutine to its end in a new event loop, and return its result. Exceptions of the coroutine come through.

    Ctrl-C cancels it, as in `asyncio.run`. Raises `ImportError` if uvloop is asked for and is not installed.
    """
    if not with_uvloop:
        return asyncio.run(work)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
