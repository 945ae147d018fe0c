"""Writes the bundle of a season, from which anyone can recompute the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seatwise import season as bundles
from seatwise_referee.journal import canonical_json
from seatwise_server.league.season_log import EntrantChange, Season
from seatwise_server.league.settings import League

BUNDLE = "season.bundle"


def write_season_bundle(folder: Path, league: League, season: Season, standings: Mapping[str, Any]) -> str:
    """Write the bundle into the folder, and return its digest."""
    with TemporaryDirectory(dir=folder, prefix=".bundle-") as drafts:
        files = {name: Path(drafts) / name for name in bundles.FILES}
        files["settings.json"].write_bytes(canonical_json(league.to_published_json()) + b"\n")
        _write_lines(files["results.jsonl"], (_result_line(table, season) for table in season.results))
        _write_lines(files["voids.jsonl"], (void.to_json() for void in season.voids))
        _write_lines(files["entrants.jsonl"], map(entrant_change_line, season.entrant_changes))
        with files["records.jsonl"].open("w", encoding="ascii") as out:
            out.writelines(f"{season.records[result.match]}\n" for result in season.results.values())
        if season.draws:
            files[bundles.DRAWS] = Path(drafts) / bundles.DRAWS
            _write_lines(
                files[bundles.DRAWS], (season.draws[number].to_json() for number in sorted(season.draws))
            )
        files["standings.json"].write_text(format_json(standings))
        return bundles.write_bundle(folder / BUNDLE, files)


def format_json(value: Mapping[str, Any]) -> str:
    """Return the value as indented JSON, always the same text for the same value."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def entrant_change_line(change: EntrantChange) -> dict[str, Any]:
    """Return a change of the entrants in its published form."""
    kind = "let_back" if change.is_back else "given_up"
    return {"player": change.player, "kind": kind, "why": change.why, "results": change.results}


def _result_line(table: str, season: Season) -> dict[str, Any]:
    return {"table": table, **season.results[table].to_json()}


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="ascii") as out:
        out.writelines(json.dumps(line, sort_keys=True) + "\n" for line in lines)
