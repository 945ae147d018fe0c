"""Tables and progress bars: rich on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

Advance: TypeAlias = Callable[[int], None]
"""So many more are done."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """A bar on a terminal; elsewhere a line at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        print(f"{what}: {total} of {total}", file=sys.stderr)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column left, numbers right."""
    if not sys.stdout.isatty():
        _plain(columns, rows)
        return
    drawn = Table(title=title)
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="right" if number else "left")
    for row in rows:
        drawn.add_row(*row)
    Console().print(drawn)


def _plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        first, *rest = (cell.ljust(width) if not number else cell.rjust(width)
                        for number, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        print("  ".join((first, *rest)).rstrip())
