"""What a league has come to so far, on disk: a line is there as a whole or not at all, and is never lost.

The first line says which league it is; each further one what has happened. Whoever starts again reads
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
    turns: list[Turn] = field(default_factory=list)
    """Who was given up and who was let back, in their order."""

    @property
    def given_up(self) -> dict[str, str]:
        """Why, by player: those that a substitute resigns for now."""
        last = {turn.player: turn for turn in self.turns}
        return {player: turn.why for player, turn in last.items() if not turn.is_back}

    def attempts(self, table: str) -> int:
        """How often the table was played for nothing."""
        return sum(void.table == table for void in self.voids)


@dataclass(frozen=True, slots=True)
class Void:
    """A match that counts for nobody."""

    table: str
    match: str
    reason: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An entrant was given up, or let back. What it has lost in between stays lost."""

    player: str
    is_back: bool
    why: str
    results: int
    """How many there were by then."""


class Diary:
    """The file. One process at a time writes it."""

    def __init__(self, file: IO[bytes], season: Season) -> None:
        self._file = file
        self.season = season

    def result(self, table: str, result: LoggedResult) -> None:
        """A match that counts; once for each table."""
        assert table not in self.season.results, f"{table} has a result already"
        self._append_line({"kind": "result", "table": table, **result.to_json()})
        self.season.results[table] = result

    def void(self, void: Void) -> None:
        """A match that does not."""
        self._append_line({"kind": "void", "table": void.table, "match": void.match, "reason": void.reason})
        self.season.voids.append(void)

    def record(self, match: str, record: str) -> None:
        """The record of a match that counts."""
        self._append_line({"kind": "record", "match": match, "record": record})
        self.season.records[match] = record

    def given_up(self, player: str, why: str) -> None:
        """An entrant that is not started again."""
        self._append_change("given_up", player, why)

    def let_back(self, player: str, why: str) -> None:
        """An entrant that was given up, and is started again from now on."""
        self._append_change("let_back", player, why)

    def _append_change(self, kind: str, player: str, why: str) -> None:
        self._append_line({"kind": kind, "player": player, "why": why})
        self.season.turns.append(Turn(player, kind == "let_back", why, len(self.season.results)))

    def close(self) -> None:
        """Lets another process go on."""
        self._file.close()

    def _append_line(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def opened(folder: Path, league: League, new_name: str) -> Diary:
    """The league's season log in that folder, begun if there is none.

    `UsageError` where the folder holds another league's, or where another process writes it just now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "season.jsonl").open("a+b")
    try:
        _lock_file(file, folder)
        return Diary(file, _read_or_begin(file, folder, league, new_name))
    except BaseException:
        file.close()
        raise


def season_in(folder: Path) -> tuple[dict[str, Any], Season]:
    """Settings and season of the season log in that folder, to be read only; `UsageError` if there is none."""
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
    diary = Diary(file, Season(new_name))
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
                season.turns.append(Turn(line["player"], is_back, line["why"], results))
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
