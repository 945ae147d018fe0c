"""Tells a person what is being done: a bar on a terminal, lines elsewhere; on standard error."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_S = 0.25


class Screen:
    """Where a run says what it does."""

    def __init__(self, say: Callable[[str], None], move: Callable[[float], None]) -> None:
        self.say = say
        self._move = move
        """To so many seconds."""
        self._began: float | None = None

    async def wait(self, until: float) -> None:
        """Returns then, on the clock of the loop; the bar moves meanwhile."""
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        while (left := until - loop.time()) > 0:
            self._move(loop.time() - self._began)
            await asyncio.sleep(min(left, STEP_S))


@contextmanager
def screen(seconds: float) -> Iterator[Screen]:
    """For a run of so many seconds."""
    if not sys.stderr.isatty():
        began = time.monotonic()
        yield Screen(
            lambda text: print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr), _ignore
        )
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=seconds)
        yield Screen(
            lambda text: bar.update(task, description=text), lambda at_s: bar.update(task, completed=at_s)
        )


def _ignore(_: float) -> None:
    """Nobody sees a bar."""
