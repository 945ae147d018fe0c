"""Writes the files of a season: the bundle, from which anyone can recompute the table, and tables for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seatwise import season as bundles
from seatwise.output import writing_file
from seatwise_referee.journal import canonical_json
from seatwise_server.competition.standings.scoring import build_crosstable
from seatwise_server.league.season_log import Season
from seatwise_server.league.settings import League

BUNDLE = "season.bundle"


def write_season_bundle(folder: Path, league: League, season: Season, standings: Mapping[str, Any]) -> str:
    """Write the bundle into the folder, and return its digest."""
    with TemporaryDirectory(dir=folder, prefix=".bundle-") as drafts:
        files = {name: Path(drafts) / name for name in bundles.FILES}
        files["settings.json"].write_bytes(canonical_json(league.to_published_json()) + b"\n")
        results = ({"table": table, **result.to_json()} for table, result in season.results.items())
        _write_lines(files["results.jsonl"], results)
        _write_lines(files["voids.jsonl"], (void.to_json() for void in season.voids))
        _write_lines(files["entrants.jsonl"], (change.to_json() for change in season.entrant_changes))
        with files["records.jsonl"].open("w", encoding="ascii") as out:
            out.writelines(f"{season.records[result.match]}\n" for result in season.results.values())
        if season.draws:
            files[bundles.DRAWS] = Path(drafts) / bundles.DRAWS
            _write_lines(files[bundles.DRAWS], (draw.to_json() for draw in season.draws.values()))
        files["standings.json"].write_text(format_json(standings))
        return bundles.write_bundle(folder / BUNDLE, files)


def format_json(value: Mapping[str, Any]) -> str:
    """Return the value as indented JSON, always the same text for the same value."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="ascii") as out:
        out.writelines(json.dumps(line, sort_keys=True) + "\n" for line in lines)


# Tables for spreadsheets

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
