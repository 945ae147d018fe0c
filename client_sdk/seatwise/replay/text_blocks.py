"""Lays out a drawn position on a screen of so many columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

BLOCK_GAP = "   "


def arrange_blocks(text: str, columns: int) -> str:
    """Return the text with its blocks side by side, as many as there is room for.

    Blocks are separated by empty lines. The first block stays alone.

    >>> print(arrange_blocks("head\\n\\nann\\n  R1\\n\\nbob\\n  B2 B3", 20))
    head
    <BLANKLINE>
    ann    bob
      R1     B2 B3
    """
    head, *blocks = text.split("\n\n")
    lined = [block.splitlines() for block in blocks]
    rows = ["\n".join(_join_row(row)) for row in _fill_rows(lined, columns)]
    return "\n\n".join([head, *rows])


def _fill_rows(blocks: Sequence[list[str]], columns: int) -> Iterator[list[list[str]]]:
    row: list[list[str]] = []
    used = 0
    for block in blocks:
        width = max(map(len, block), default=0) + len(BLOCK_GAP)
        if row and used + width - len(BLOCK_GAP) > columns:
            yield row
            row, used = [], 0
        row.append(block)
        used += width
    if row:
        yield row


def _join_row(row: Sequence[list[str]]) -> Iterator[str]:
    widths = [max(map(len, block), default=0) for block in row]
    for lines in zip_longest(*row, fillvalue=""):
        yield BLOCK_GAP.join(map(str.ljust, lines, widths)).rstrip()
