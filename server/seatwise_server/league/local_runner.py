"""Plays a league at local tables, without a server: the same schedule, season log and records as at a server."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from seatwise.errors import UsageError
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import Schedule, ScheduledMatch, SoFar
from seatwise_server.league.local_match import LocalOutcome, LocalSeason
from seatwise_server.league.progress import Screen
from seatwise_server.league.season_log import SeasonLog, Void, find_due_matches

KEY_FILE = "deals.key"
"""In the folder of the league. A match that was interrupted has the same deal again, because all deals follow from this key."""
SEASON_KEY_BYTES = 32


class LocalTables(Protocol):
    """Plays the matches of a season: `SeasonTables`, or this process in a test."""

    @property
    def room(self) -> int:
        """How many matches it takes at once."""

    async def play_match(self, scheduled: ScheduledMatch) -> LocalOutcome:
        """Play one match to its end."""


@dataclass
class LocalRunner:
    """One run of a league at local tables, until the season is over or until it must stop."""

    schedule: Schedule
    season_log: SeasonLog
    season: LocalSeason
    pool: LocalTables
    screen: Screen
    is_stopping: bool = False
    played: int = 0
    """Matches that ended in this run."""
    moves: int = 0
    waits_for: Collection[str] = ()
    _open: dict[asyncio.Task[LocalOutcome], ScheduledMatch] = field(default_factory=dict)
    _waiting: list[ScheduledMatch] = field(default_factory=list)
    """Due matches that are not started, the next one last."""
    _failures: set[tuple[str, str]] = field(default_factory=set)

    @property
    def so_far(self) -> SoFar:
        """The season so far, in the form that the schedule needs."""
        return self.season_log.season.so_far

    async def run(self) -> bool:
        """Play the due matches. Return whether the season is over. Raises `UsageError` if a bot ends its process."""
        try:
            while self._start_due():
                done, _ = await asyncio.wait(self._open, return_when=asyncio.FIRST_COMPLETED)
                self._write_down({task: self._open.pop(task) for task in done})
        finally:
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
        return not self.schedule.due_matches(self.so_far)

    def _start_due(self) -> bool:
        """Start as many matches as there is room for, and return whether any is open."""
        while not self.is_stopping and len(self._open) < self.pool.room:
            if not self._waiting and not self._find_due():
                break
            scheduled = self._waiting.pop()
            self._open[asyncio.create_task(self.pool.play_match(scheduled))] = scheduled
        return bool(self._open)

    def _find_due(self) -> bool:
        open_ids = {match.id for match in self._open.values()}
        due = find_due_matches(self.schedule, self.season_log)
        self._waiting = [match for match in reversed(due) if match.id not in open_ids]
        return bool(self._waiting)

    def _write_down(self, done: dict[asyncio.Task[LocalOutcome], ScheduledMatch]) -> None:
        """Log matches that are over. Those that have a result are written before an error is raised."""
        ended = [(scheduled, task.result()) for task, scheduled in done.items() if not task.exception()]
        counted = [
            (scheduled.id, outcome.result, outcome.record) for scheduled, outcome in ended if outcome.result
        ]
        self._log_results(counted)
        for scheduled, outcome in ended:
            if not outcome.result:
                name = self.season.match_name(scheduled)
                self.season_log.append_void(Void(scheduled.id, name, outcome.void_reason))
                self._waiting.clear()
            self._note_outcome(outcome)
        for task in done:
            task.result()

    def _log_results(self, counted: list[tuple[str, LoggedResult, str]]) -> None:
        first = len(self.season_log.season.results) + 1
        self.season_log.append_played(
            [
                (table, replace(result, seq=first + place), record)
                for place, (table, result, record) in enumerate(counted)
            ]
        )

    def _note_outcome(self, outcome: LocalOutcome) -> None:
        self.played += 1
        self.moves += outcome.moves
        for failure in outcome.failures:
            kind = (failure["bot"], failure["place"])
            if kind not in self._failures:
                self._failures.add(kind)
                self.screen.print_message(failure["text"])
        self.screen.show(self)


def read_or_create_key(folder: Path) -> bytes:
    """Return the key of the season in that folder, which only its owner may read. Raises `UsageError` if it is broken."""
    path = folder / KEY_FILE
    if not path.exists():
        _create_key(path)
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except ValueError:
        key = b""
    if len(key) != SEASON_KEY_BYTES:
        raise UsageError(
            f"{path} is not a key of {SEASON_KEY_BYTES} bytes in hex; delete it, and new deals are drawn"
        )
    return key


def _create_key(path: Path) -> None:
    def open_private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    with open(path, "x", encoding="ascii", opener=open_private) as file:
        file.write(secrets.token_hex(SEASON_KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
