"""Writes the tables of a season for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatwise.output import writing_file
from seatwise_server.competition.standings.scoring import build_crosstable
from seatwise_server.league.season_log import Season

CSV_FILES = ("standings.csv", "results.csv", "crosstable.csv")
"""The files beside the page of a season."""
RESULT = ("table", "seq", "match", "deal", "seat", "bot", "points", "rank", "ending")
CROSSTABLE = ("bot", "other", "matches", "ahead", "level", "behind", "difference")


def write_csv(folder: Path, standings: Mapping[str, Any], season: Season) -> None:
    """Write standings.csv, results.csv (a line for each seat) and crosstable.csv."""
    rows = standings["rows"]
    _write_table(folder / "standings.csv", tuple(rows[0]), (list(row.values()) for row in rows))
    _write_table(folder / "results.csv", RESULT, _result_rows(season))
    _write_table(folder / "crosstable.csv", CROSSTABLE, _crosstable_rows(season))


def _result_rows(season: Season) -> Iterable[Sequence[Any]]:
    for table, result in season.results.items():
        for seat, bot in enumerate(result.bots):
            own = (seat, bot, result.points[seat], result.ranks[seat], result.endings[seat])
            yield (table, result.seq, result.match, result.deal, *own)


def _crosstable_rows(season: Season) -> Iterable[Sequence[Any]]:
    for (bot, other), cell in sorted(build_crosstable(season.results.values()).items()):
        yield bot, other, cell.matches, cell.ahead, cell.level, cell.behind, f"{cell.difference:.6f}"


def _write_table(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with writing_file(path) as out, io.TextIOWrapper(out, newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows)
