"""The log of a season on disk: a line is there as a whole or not at all, and is never lost.

The first line says which league it is, and each further one what has happened. A run that starts again reads
them all, and goes on from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from seatwise.bot_errors import UsageError
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league.settings import League

FORMAT = "seatwise.league/1"


@dataclass(slots=True)
class Season:
    """All that has happened."""

    league: str
    """`leagues/<id>`: ours on the server."""
    results: dict[str, LoggedResult] = field(default_factory=dict)
    """By table, in the order in which they came."""
    voids: list[Void] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)
    """By match: one line each."""
    entrant_changes: list[EntrantChange] = field(default_factory=list)
    """The entrants that were given up or let back, in the order of these changes."""

    @property
    def given_up(self) -> dict[str, str]:
        """The players for which a substitute resigns now, each with the reason."""
        last = {turn.player: turn for turn in self.entrant_changes}
        return {player: turn.why for player, turn in last.items() if not turn.is_back}


@dataclass(frozen=True, slots=True)
class Void:
    """A void match: it does not count."""

    table: str
    match: str
    reason: str


@dataclass(frozen=True, slots=True)
class EntrantChange:
    """An entrant was given up, or let back. What it has lost in between stays lost."""

    player: str
    is_back: bool
    why: str
    results: int
    """How many there were by then."""


class SeasonLog:
    """The file. One process at a time writes it."""

    def __init__(self, file: IO[bytes], season: Season) -> None:
        self._file = file
        self.season = season

    def append_result(self, table: str, result: LoggedResult) -> None:
        """Log a match that counts; once for each table."""
        assert table not in self.season.results, f"{table} has a result already"
        self._append_line({"kind": "result", "table": table, **result.to_json()})
        self.season.results[table] = result

    def append_void(self, void: Void) -> None:
        """Log a match that does not count."""
        self._append_line({"kind": "void", "table": void.table, "match": void.match, "reason": void.reason})
        self.season.voids.append(void)

    def append_record(self, match: str, record: str) -> None:
        """Log the record of a match that counts."""
        self._append_line({"kind": "record", "match": match, "record": record})
        self.season.records[match] = record

    def give_up_entrant(self, player: str, why: str) -> None:
        """Log that an entrant is not started again."""
        self._append_change("given_up", player, why)

    def let_entrant_back(self, player: str, why: str) -> None:
        """Log that an entrant which was given up is started again from now on."""
        self._append_change("let_back", player, why)

    def _append_change(self, kind: str, player: str, why: str) -> None:
        self._append_line({"kind": kind, "player": player, "why": why})
        self.season.entrant_changes.append(
            EntrantChange(player, kind == "let_back", why, len(self.season.results))
        )

    def close(self) -> None:
        """Close the file, so that another process can go on."""
        self._file.close()

    def _append_line(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def open_season_log(folder: Path, league: League, new_name: str) -> SeasonLog:
    """Open the league's season log in that folder; begin one if there is none.

    Raises `UsageError` if the folder holds another league's, or if another process writes it just now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "season.jsonl").open("a+b")
    try:
        _lock_file(file, folder)
        return SeasonLog(file, _read_or_begin(file, folder, league, new_name))
    except BaseException:
        file.close()
        raise


def read_season(folder: Path) -> tuple[dict[str, Any], Season]:
    """Read settings and season from the season log in that folder. Raises `UsageError` if there is none."""
    try:
        lines = list(_parse_lines((folder / "season.jsonl").read_bytes()))
    except OSError as error:
        raise UsageError(f"{folder} holds no league: season.jsonl: {error.strerror}") from None
    if not lines or lines[0].get("format") != FORMAT:
        raise UsageError(f"{folder}/season.jsonl: the first line is not of the format {FORMAT}")
    return lines[0]["settings"], _replay_lines(lines)


def _lock_file(file: IO[bytes], folder: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(
            f"another process runs the league in {folder}; wait for it, interrupt it, or choose another folder"
        ) from None


def _read_or_begin(file: IO[bytes], folder: Path, league: League, new_name: str) -> Season:
    file.seek(0)
    text = file.read()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):  # we died in the middle of a line: it was never acknowledged
        file.truncate(len(whole))
    lines = list(_parse_lines(whole))
    if not lines:
        return _begin_season(file, league, new_name)
    if lines[0].get("format") != FORMAT or lines[0]["settings"] != league.to_json():
        raise UsageError(_explain_other_league(folder, lines[0], league))
    return _replay_lines(lines)


def _begin_season(file: IO[bytes], league: League, new_name: str) -> Season:
    diary = SeasonLog(file, Season(new_name))
    diary._append_line({"format": FORMAT, "league": new_name, "settings": league.to_json()})
    return diary.season


def _replay_lines(lines: list[dict[str, Any]]) -> Season:
    season = Season(lines[0]["league"])
    for line in lines[1:]:
        match line["kind"]:
            case "result":
                season.results[line["table"]] = LoggedResult.from_json(line)
            case "void":
                season.voids.append(Void(line["table"], line["match"], line["reason"]))
            case "record":
                season.records[line["match"]] = line["record"]
            case "given_up" | "let_back" as kind:
                is_back, results = kind == "let_back", len(season.results)
                season.entrant_changes.append(EntrantChange(line["player"], is_back, line["why"], results))
    return season


def _parse_lines(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        yield json.loads(line)


def _explain_other_league(folder: Path, head: dict[str, Any], league: League) -> str:
    before, now = head.get("settings", {}), league.to_json()
    keys = [key for key in now if now[key] != before.get(key)]
    return (
        f"{folder} holds a league with other settings ({', '.join(keys) or 'format'}): its matches do not "
        "count for this one. Choose another folder with --results, or restore the old settings of the league"
    )
