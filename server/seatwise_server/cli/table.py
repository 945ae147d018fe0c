"""Prints tables and progress bars: with rich on a terminal if it is installed, and as plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING, TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.errors import clean_text
from seatwise.output import uncleaned_output
from seatwise.v1 import bot_pb2

if TYPE_CHECKING:  # rich is optional: authors of bots need not install it
    from rich.table import Table

Advance: TypeAlias = Callable[[int], None]
"""Takes how many more have been done."""

WIDEST = 10_000
"""More characters than any terminal has: with it, rich measures the room that a table needs, not what it would get."""


@contextmanager
def show_progress(what: str, total: int) -> Iterator[Advance]:
    """Show a progress bar on a terminal. Elsewhere print one line at the end."""
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


def format_time(time: Timestamp) -> str:
    """Write a time to the second, in local time; empty for a time that is not known."""
    if not time.seconds:
        return ""
    return time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def describe_kind(kind: int) -> str:
    """Write how a bot finds its moves, as in "language-model"; empty where nobody has said it."""
    names = {number: name for name, number in bot_pb2.BotKind.items() if number}
    return names.get(kind, "").removeprefix("BOT_KIND_").lower().replace("_", "-")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, with the first column left and numbers right. Without room for a frame, print plain lines.

    Cells may hold the text of strangers, as bots' names in a file of records: their control characters are left out.
    """
    cells = [tuple(map(clean_text, row)) for row in rows]
    drawn = _draw_table(title, columns, cells) if sys.stdout.isatty() else None
    if drawn is None:
        _print_plain(columns, cells)
        return
    from rich.console import Console

    console = Console(file=uncleaned_output())
    if console.measure(drawn, options=console.options.update(max_width=WIDEST)).minimum > console.width:
        _print_plain(columns, cells)
    else:
        console.print(drawn)


def _draw_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table with a frame; `None` without rich.

    No cell is cut short, above all no name, because users type names again. Nor does rich look for its markup in a cell or
    the title: a name could be a link to anywhere, or end the command as markup that is wrong.
    """
    try:
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return None
    drawn = Table(title=Text(clean_text(title), style="table.title"))
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="right" if number else "left", overflow="fold", no_wrap=not number)
    for row in rows:
        drawn.add_row(*map(Text, row))
    return drawn


def _print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        first, *rest = (cell.ljust(width) if not number else cell.rjust(width)
                        for number, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        print("  ".join((first, *rest)).rstrip())
