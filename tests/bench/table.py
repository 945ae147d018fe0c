"""The table: as lines for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MISSED = "MISSED"


@dataclass(frozen=True, slots=True)
class Row:
    """One measure."""

    measure: str
    value: float | None
    """`None` where it could not be measured."""
    unit: str = ""
    bar: str | None = None
    """As in docs/benchmarks.md: ">= 0.40"; `None` where the figure is information."""
    met: bool | None = None
    missing: str = ""
    """What it would need, where it could not be measured."""


def at_least(measure: str, value: float, bar: float, unit: str = "") -> Row:
    """A row whose value should not be lower."""
    return Row(measure, value, unit, f">= {bar:g}", value >= bar)


def at_most(measure: str, value: float, bar: float, unit: str = "") -> Row:
    """A row whose value should not be higher."""
    return Row(measure, value, unit, f"<= {bar:g}", value <= bar)


def not_measured(measure: str, needs: str) -> Row:
    """A row without a value, where this machine lacks something that nothing else needs."""
    return Row(measure, None, missing=f"not measured: needs {needs}")


def write(rows: Sequence[Row], file: Path) -> None:
    """For programs."""
    body = [{**asdict(row), "value": row.value and _rounded(row.value)} for row in rows]
    file.write_text(json.dumps(body, indent=1) + "\n")


def show(rows: Sequence[Row]) -> None:
    """For people; a bar that was missed stands out, and is named again at the end."""
    cells = [(row.measure, _figure(row), row.bar or "", _verdict(row)) for row in rows]
    _print_plain(("measure", "value", "bar", ""), cells)
    missed = [row.measure for row in rows if row.met is False]
    bars = sum(row.met is not None for row in rows)
    print(f"{bars - len(missed)} of {bars} bars are met." + "".join(f"\n{MISSED}: {name}" for name in missed))


def _figure(row: Row) -> str:
    if row.value is None:
        return row.missing
    value = _rounded(row.value)
    return f"{value:,.0f} {row.unit}".rstrip() if abs(value) >= 1000 else f"{value:g} {row.unit}".rstrip()


def _rounded(value: float) -> float:
    """To three digits: what is behind them is noise."""
    return float(f"{value:.3g}")


def _verdict(row: Row) -> str:
    if row.value is None:
        return ""
    if row.met is None:
        return "information"
    return "met" if row.met else MISSED


def _print_plain(head: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *cells)) for column in range(len(head))]
    for row in (head, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
