"""Tables and progress bars: rich on a terminal that has it, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # a bot's author who looks at a ladder need not have it
    from rich.table import Table

Advance: TypeAlias = Callable[[int], None]
"""So many more are done."""

WIDEST = 10_000
"""Wider than any terminal: how much room a frame needs, not how much it would be given."""


@contextmanager
def show_progress(what: str, total: int) -> Iterator[Advance]:
    """Show a progress bar on a terminal; elsewhere print a line at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        print(f"{what}: {total} of {total}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column left, numbers right; plain lines if a frame has no room."""
    drawn = _draw_table(title, columns, rows) if sys.stdout.isatty() else None
    if drawn is None:
        _print_plain(columns, rows)
        return
    from rich.console import Console

    console = Console()
    if console.measure(drawn, options=console.options.update(max_width=WIDEST)).minimum > console.width:
        _print_plain(columns, rows)
    else:
        console.print(drawn)


def _draw_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """In a frame; nothing is cut short, above all not the names, for they are typed again. `None` without rich."""
    try:
        from rich.table import Table
    except ModuleNotFoundError:
        return None
    drawn = Table(title=title)
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="right" if number else "left", overflow="fold", no_wrap=not number)
    for row in rows:
        drawn.add_row(*row)
    return drawn


def _print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        first, *rest = (cell.ljust(width) if not number else cell.rjust(width)
                        for number, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        print("  ".join((first, *rest)).rstrip())
