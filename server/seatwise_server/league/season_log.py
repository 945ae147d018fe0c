"""The log of a season on disk. Each line is written completely or not at all, and is never lost.

The first line describes the league, and each further line one event. A run that starts again reads all lines and
continues from there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from seatwise.errors import UsageError
from seatwise.season.checking import result_in
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import (
    RoundDraw,
    Schedule,
    ScheduledMatch,
    SoFar,
    attempt_ids,
)
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.league.settings import LOCAL_TABLES, League, OtherVersion, check_versions

SEASON_LOG_FORMAT = "seatwise.league/1"


def log_path(folder: Path) -> Path:
    """Return the season log in the folder of a league."""
    return folder / "season.jsonl"


@dataclass(slots=True)
class Season:
    """All events of a season so far."""

    league: str
    """`leagues/<id>`: the name of the league on the server."""
    results: dict[str, LoggedResult] = field(default_factory=dict)
    """The results by table, in the order in which they came."""
    voids: list[Void] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)
    """The records by match, each one line."""
    entrant_changes: list[EntrantChange] = field(default_factory=list)
    """The changes of entrants that were given up or let back, in their order."""
    draws: dict[int, RoundDraw] = field(default_factory=dict)
    """By round, of a Swiss tournament."""

    @property
    def so_far(self) -> SoFar:
        """The season as the schedule needs it."""
        absences = {void.table: void.blamed for void in self.voids if void.absent or void.excuse}
        voids = {void.table for void in self.voids}
        return SoFar(self.results, voids, absences, self.draws, self._find_left())

    def _find_left(self) -> dict[str, tuple[str, ...]]:
        """Return by match the bots for which a substitute resigned it, or that left it when they were given up."""
        found: dict[str, tuple[str, ...]] = {}
        for place, (table, result) in enumerate(self.results.items() if self.entrant_changes else ()):
            changes = (change for change in self.entrant_changes if change.results <= place)
            out = {change.player: not change.is_back for change in changes}
            seats = zip(result.bots, result.endings, strict=True)
            if left := tuple(bot for bot, ending in seats if out.get(bot) and ending != Ending.COMPLETED):
                found[table] = left
        return found

    def excuse_attempts(self, table: str, why: str) -> None:
        """Hold the void attempts of this match against no bot."""
        for place, void in enumerate(self.voids):
            if void.table.partition(".")[0] == table and void.blamed:
                self.voids[place] = replace(void, excuse=f"annulled: {why}")

    def without_running_deals(self) -> Season:
        """Return the season as it may be published: without results whose deals may yet be played.

        A deal without any record so far is still running: the server gives its records when it is over.
        """
        over = {result.deal for result in self.results.values() if result.match in self.records}
        shown = {
            table: result for table, result in self.results.items() if not result.deal or result.deal in over
        }
        return replace(self, results=shown)

    @property
    def given_up(self) -> dict[str, str]:
        """The players for which a substitute resigns now, each with the reason."""
        last = {turn.player: turn for turn in self.entrant_changes}
        return {player: turn.why for player, turn in last.items() if not turn.is_back}


@dataclass(frozen=True, slots=True)
class Void:
    """A void match, which does not count."""

    table: str
    match: str
    reason: str
    absent: tuple[str, ...] = ()
    """The bots that did not sit down, if it is void for that reason."""
    excuse: str = ""
    """Why that is held against none of them: a fault of the server, or the organiser's reason for annulling the walk-over."""
    at_s: int = 0
    """When it was logged, in seconds since 1970."""

    @property
    def blamed(self) -> tuple[str, ...]:
        """The bots against which their absence is held."""
        return () if self.excuse else self.absent

    def to_json(self) -> dict[str, Any]:
        """Return the published values, from which `from_json` makes the same again."""
        return {"table": self.table, "match": self.match, "reason": self.reason,
                "absent": list(self.absent), "excuse": self.excuse}  # fmt: skip

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Void:
        """Return the void match of a line. Raises `ValueError` or `KeyError` if it is none."""
        texts = [line[key] for key in ("table", "match", "reason", "excuse")]
        absent = line["absent"]
        if not isinstance(absent, list) or not all(isinstance(text, str) for text in (*texts, *absent)):
            raise ValueError("match, reason and excuse must be texts, and absent a list of bots")
        table, match, reason, excuse = texts
        return cls(table, match, reason, tuple(absent), excuse, int(line.get("at_s", 0)))


@dataclass(frozen=True, slots=True)
class EntrantChange:
    """An entrant was given up or let back. The matches that it lost in between stay lost."""

    player: str
    is_back: bool
    why: str
    results: int
    """The number of results at that time."""

    def to_json(self) -> dict[str, Any]:
        """Return the published values."""
        kind = "let_back" if self.is_back else "given_up"
        return {"player": self.player, "kind": kind, "why": self.why, "results": self.results}


class SeasonLog:
    """The season log. One process at a time writes it. The season changes by logged events only, as when they are read again."""

    def __init__(self, file: IO[bytes], season: Season, entrants: int) -> None:
        self._file = file
        self._entrants = entrants
        self.season = season

    def append_result(self, table: str, result: LoggedResult) -> None:
        """Log a match that counts. Each table has one result."""
        self._append_events(self._result_event(table, result))

    def append_void(self, void: Void) -> None:
        """Log a match that does not count."""
        self._append_events({"kind": "void", **void.to_json(), "at_s": void.at_s})

    def annul_walk_over(self, table: str, why: str) -> None:
        """Log that nobody loses this match by walk-over: its attempts so far are held against no bot."""
        self._append_events({"kind": "annulled", "table": table, "why": why})

    def append_record(self, match: str, record: str) -> None:
        """Log the record of a match that counts."""
        self._append_events({"kind": "record", "match": match, "record": record})

    def append_played(self, played: Sequence[tuple[str, LoggedResult, str]]) -> None:
        """Log matches that count with their records, as (table, result, record), all at once.

        A record precedes its result: where only the record has reached the disk, the match is played again.
        """
        events: list[dict[str, Any]] = []
        for table, result, record in played:
            events.append({"kind": "record", "match": result.match, "record": record})
            events.append(self._result_event(table, result))
        self._append_events(*events)

    def append_draw(self, draw: RoundDraw) -> None:
        """Log the draw of a round, before the round is played."""
        self._append_events({"kind": "draw", **draw.to_json()})

    def give_up_entrant(self, player: str, why: str) -> None:
        """Log that an entrant is given up: it is not started again."""
        self._append_events({"kind": "given_up", "player": player, "why": why})

    def let_entrant_back(self, player: str, why: str) -> None:
        """Log that an entrant is let back: it is started again from now on."""
        self._append_events({"kind": "let_back", "player": player, "why": why})

    def close(self) -> None:
        """Close the file, so that another process can write it."""
        with suppress(OSError):  # each line was written already, or has failed
            self._file.close()

    def _result_event(self, table: str, result: LoggedResult) -> dict[str, Any]:
        assert table not in self.season.results, f"{table} has a result already"
        return {"kind": "result", "table": table, **result.to_json()}

    def _append_events(self, *events: dict[str, Any]) -> None:
        _write_lines(self._file, events)
        for event in events:
            _add_event(self.season, event, self._entrants)


def find_due_matches(schedule: Schedule, book: SeasonLog) -> tuple[ScheduledMatch, ...]:
    """Return the matches that are due. If their round was only drawn for this, log the draw first."""
    so_far = book.season.so_far
    draw = schedule.current_draw(so_far) if isinstance(schedule, Swiss) else None
    if draw and draw.round not in so_far.draws:
        book.append_draw(draw)
    return schedule.due_matches(so_far)


def open_season_log(folder: Path, league: League, new_name: str) -> SeasonLog:
    """Open the league's season log in that folder, or begin one if there is none.

    Raises `UsageError` if the folder holds the log of another league, or if another process writes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = log_path(folder).open("a+b")
    try:
        _lock_file(file, folder)
        return SeasonLog(file, _read_or_begin(file, folder, league, new_name), len(league.entrants))
    except BaseException:
        file.close()
        raise


def copy_season_log(folder: Path, league: League, new_name: str) -> SeasonLog:
    """Return a copy of the season log in that folder, or of one that begins, which is lost when it is closed.

    Its bots may lie elsewhere: it may be of another machine. Raises `UsageError` if it is of another league.
    """
    season = Season(new_name)
    if has_begun(folder):
        settings, season = read_season(folder)
        here, there = (
            plain | {"entrants": [each["name"] for each in plain["entrants"]]}
            for plain in (league.to_json(), settings)
        )
        if here != there:
            raise UsageError(_explain_other_league(folder, settings, league))
    return SeasonLog(NamedTemporaryFile(), season, len(league.entrants))


def has_begun(folder: Path) -> bool:
    """Return whether that folder holds the first line of a season log."""
    path = log_path(folder)
    return path.is_file() and b"\n" in path.read_bytes()[: 2**20]


def read_season(folder: Path) -> tuple[dict[str, Any], Season]:
    """Read settings and season from the season log in that folder. Raises `UsageError` if there is none."""
    try:
        lines = list(_parse_lines(log_path(folder).read_bytes(), folder))
    except OSError as error:
        raise UsageError(f"{folder} holds no league: season.jsonl: {error.strerror}") from None
    if not lines or lines[0].get("format") != SEASON_LOG_FORMAT:
        raise UsageError(f"{folder}/season.jsonl: the first line is not of the format {SEASON_LOG_FORMAT}")
    season = _replay_lines(lines, folder)
    return lines[0]["settings"], season


def _lock_file(file: IO[bytes], folder: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        why = f"another process runs the league in {folder}; wait for it, interrupt it, or choose another folder"
        raise UsageError(why) from None


def _read_or_begin(file: IO[bytes], folder: Path, league: League, new_name: str) -> Season:
    file.seek(0)
    text = file.read()
    whole = len(text[: text.rfind(b"\n") + 1])
    lines = list(_parse_lines(text, folder))
    if not lines:
        file.truncate(whole)
        _write_lines(file, [{"format": SEASON_LOG_FORMAT, "league": new_name, "settings": league.to_json()}])
        return Season(new_name)
    if lines[0].get("format") != SEASON_LOG_FORMAT or lines[0].get("settings") != league.to_json():
        _check_same_versions(folder, lines[0].get("settings", {}), league)
        raise UsageError(_explain_other_league(folder, lines[0].get("settings", {}), league))
    season = _replay_lines(lines, folder)
    if whole < len(text):  # the process died while it wrote a line, which was never acknowledged
        file.truncate(whole)
    return season


def _write_lines(file: IO[bytes], lines: Iterable[dict[str, Any]]) -> None:
    try:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.name) from None


def _replay_lines(lines: list[dict[str, Any]], folder: Path) -> Season:
    """Return the season that these lines tell. Raises `UsageError` for the first that tells nothing, or does not fit the others."""
    number = 1
    places: dict[str, int] = {}
    try:
        season, settings = Season(lines[0]["league"]), lines[0]["settings"]
        for number, line in enumerate(lines[1:], start=2):
            if why := _find_gap(season, line, settings):
                raise _make_line_error(folder, number, why)
            _add_event(season, line, len(settings["entrants"]))
            if line["kind"] == "result":
                places[line["match"]] = number
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        told = f"it has no {error}" if isinstance(error, KeyError) else error
        raise _make_line_error(folder, number, f"is no event of a season: {told!s:.200}") from None
    for match, place in places.items():
        if match in season.records:
            if why := _find_contradiction(lines[place - 1], season.records[match]):
                raise _make_line_error(folder, place, f"is the result of {match}, and {why}")
        elif settings.get("tables") == LOCAL_TABLES:  # a server gives a record again
            why = f"is the result of {match}, and the line of its record is missing"
            raise _make_line_error(folder, place, why)
    return season


def _find_contradiction(line: dict[str, Any], record: str) -> str:
    try:
        told = result_in(json.loads(record))
    except (KeyError, TypeError, ValueError, AttributeError):
        return "its record cannot be read"
    other = next((key for key, value in told.items() if line.get(key, "") != value), "")
    return other and f"its record has other {other}"


def _find_gap(season: Season, line: dict[str, Any], settings: dict[str, Any]) -> str:
    """Return why this line does not follow those before it, as after a line was lost; empty if it does."""
    if line["kind"] == "void":
        attempts = attempt_ids(line["table"].partition(".")[0])
        earlier = set(takewhile(lambda each: each != line["table"], attempts))
        if earlier <= {void.table for void in season.voids}:
            return ""
        return f"is void attempt {line['table']:.60}, and the line of the one before is missing"
    if line["kind"] != "result":
        return ""
    due, table = len(season.results) + 1, str(line.get("table"))
    if (seq := line.get("seq", due)) != due:
        return f"is result {seq!r:.20}, where result {due} is due: a line is missing, or is there twice"
    if table in season.results:
        return f"is a second result of {table:.60}"
    round_number = re.match(r"r(\d+)-", table)
    if settings.get("format") == "swiss" and round_number and int(round_number[1]) not in season.draws:
        return f"is a result of round {round_number[1]}, and the line of its draw is missing"
    return ""


def _add_event(season: Season, line: dict[str, Any], entrants: int) -> None:
    match line["kind"]:
        case "result":
            season.results[line["table"]] = LoggedResult.from_json(line)
        case "void":
            season.voids.append(Void.from_json(line))
        case "annulled":
            season.excuse_attempts(line["table"], line["why"])
        case "record":
            season.records[line["match"]] = line["record"]
        case "draw":
            season.draws[line["round"]] = RoundDraw.from_json(line, entrants)
        case "given_up" | "let_back" as kind:
            is_back, results = kind == "let_back", len(season.results)
            season.entrant_changes.append(EntrantChange(line["player"], is_back, line["why"], results))
        case other:
            raise ValueError(f"{other!r} is no kind of event")


def _parse_lines(text: bytes, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in whole lines. Raises `UsageError` for a line that is none, as after a fault of the disk."""
    for number, line in enumerate(text[: text.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise _make_line_error(folder, number, "is no JSON object")
        yield value


def _make_line_error(folder: Path, number: int, what: str) -> UsageError:
    hint = "Restore the file from a copy, or choose another folder; it was not changed"
    return UsageError(f"{log_path(folder)}: line {number} {what}. {hint}")


def _check_same_versions(folder: Path, settings: dict[str, Any], league: League) -> None:
    try:
        if settings.get("name") == league.name:
            check_versions(settings)
    except OtherVersion as other:
        raise UsageError(f"{log_path(folder)}: {other}") from None


def _explain_other_league(folder: Path, before: Mapping[str, Any], league: League) -> str:
    now = league.to_json()
    keys = [key for key in now if now[key] != before.get(key)]
    return (
        f"{folder} holds a league with other settings ({', '.join(keys) or 'format'}): its matches do not "
        "count for this one. Choose another folder with --results, or restore the old settings of the league"
    )
