"""Tells a person how far the bench is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]
"""To be told what is done next."""


@contextmanager
def progress(steps: int) -> Iterator[Step]:
    """A bar on a terminal where rich is installed, lines elsewhere; on standard error."""
    if not sys.stderr.isatty():
        yield _print_line
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield _print_line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps, completed=-1)

        def step(name: str) -> None:
            bar.update(task, description=name, advance=1)

        yield step


def _print_line(name: str) -> None:
    print(f"  {name}", file=sys.stderr, flush=True)
