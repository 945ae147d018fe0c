"""Plays a league at local tables, without a server: the same schedule, season log and records as at a server."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

from seatwise.errors import UsageError
from seatwise.units import UnitEndsWorkers, UnitRun
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.league.local_match import LocalOutcome, LocalSeason
from seatwise_server.league.progress import Screen, SeasonProgress
from seatwise_server.league.season_log import Void, find_due_matches

KEY_FILE = "deals.key"
"""In the folder of the league. A match that was interrupted has the same deal again, because all deals follow from this key."""
SEASON_KEY_BYTES = 32
LOG_EVERY_S: Final = 0.1
"""Seconds between two writes to the season log. A write for each match would take longer than a short match."""

Ended: TypeAlias = tuple[ScheduledMatch, LocalOutcome]


@dataclass
class LocalRunner(SeasonProgress):
    """One run of a league at local tables, until the season is over or until it must stop.

    It plays all matches that are due, and logs them in the order of the schedule. Then it asks for the next ones. So the log does not
    depend on the number of workers.
    """

    season: LocalSeason
    units: UnitRun
    screen: Screen
    part: range | None = None
    """The due matches that it plays, by number, if others play the rest. Then its season log is a copy."""
    is_merge: bool = False
    """Whether it has the answers of parts. It logs all of them or none, because they fit only the season before them."""
    _failures: set[tuple[str, str]] = field(default_factory=set)

    async def run(self) -> bool:
        """Play the due matches. Return whether the season, or its part, is over. Raises `UsageError` if a bot ends its process."""
        while not self.units.is_stopping and (due := find_due_matches(self.schedule, self.season_log)):
            numbers = range(len(due))[self.part.start : self.part.stop] if self.part else range(len(due))
            await self._play_matches(due, numbers)
            if self.part:
                return self.played == len(numbers)
            if self.is_merge:
                break
        return not find_due_matches(self.schedule, self.season_log)

    async def _play_matches(self, due: Sequence[ScheduledMatch], numbers: range) -> None:
        ended: list[Ended] = []
        units = ((number, asdict(due[number])) for number in numbers)
        due_s, is_complete = monotonic(), False
        try:
            async with aclosing(self.units.read_units(units)) as answers:
                async for answer in answers:
                    ended.append((due[answer.number], LocalOutcome.from_answer(answer)))
                    if monotonic() >= due_s and not self.is_merge:
                        self._write_down(ended)
                        due_s = monotonic() + LOG_EVERY_S
            is_complete = not self.units.is_stopping
        except UnitEndsWorkers as ends:
            match = due[ends.number]
            raise UsageError(
                f"{self.season.match_name(match)} between {', '.join(match.bots)} has ended three workers: {ends.why}"
            ) from None
        finally:
            if is_complete or not self.is_merge:
                self._write_down(ended)

    def _write_down(self, ended: list[Ended]) -> None:
        """Log matches that are over, and forget them."""
        seq = count(len(self.season_log.season.results) + 1)
        self.season_log.append_played(
            [
                (scheduled.id, replace(outcome.result, seq=next(seq)), outcome.record)
                for scheduled, outcome in ended
                if outcome.result
            ]
        )
        for scheduled, outcome in ended:
            if not outcome.result:
                name = self.season.match_name(scheduled)
                self.season_log.append_void(Void(scheduled.id, name, outcome.void_reason))
            self._note_outcome(outcome)
        ended.clear()

    def _note_outcome(self, outcome: LocalOutcome) -> None:
        self.played += 1
        self.moves += outcome.moves
        for failure in outcome.failures:
            kind = (failure["bot"], failure["place"])
            if kind not in self._failures:
                self._failures.add(kind)
                self.screen.print_message(failure["text"])
        self.screen.show(self)


def read_or_create_key(folder: Path, seed: str = "", *, is_part: bool = False) -> bytes:
    """Return the key of the season in that folder, which only its owner may read. It follows from the seed, if there is one.

    Nothing is written for a part of a season. Raises `UsageError` if the key is broken, of another seed, or missing for a part.
    """
    path = folder / KEY_FILE
    wanted = derive_key(seed) if seed else b""
    if is_part and wanted:
        return wanted
    if not path.exists():
        if is_part:
            raise UsageError(f"a part needs --seed, or {path}: all parts must have the same deals")
        _create_key(path, wanted or secrets.token_bytes(SEASON_KEY_BYTES))
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except ValueError:
        key = b""
    if len(key) != SEASON_KEY_BYTES:
        raise UsageError(
            f"{path} is not a key of {SEASON_KEY_BYTES} bytes in hex; delete it, and new deals are drawn"
        )
    if wanted not in (b"", key):
        raise UsageError(f"{path} is of another --seed: the season has begun with other deals")
    return key


def derive_key(seed: str) -> bytes:
    """Return the key of a season whose deals follow from a text."""
    return sha256(f"seatwise league {seed}".encode()).digest()


def _create_key(path: Path, key: bytes) -> None:
    def open_private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    with open(path, "x", encoding="ascii", opener=open_private) as file:
        file.write(key.hex())
        file.flush()
        os.fsync(file.fileno())
