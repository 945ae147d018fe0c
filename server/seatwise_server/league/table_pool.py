"""Worker processes that play matches of a league at local tables."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import asdict
from pathlib import Path
from subprocess import PIPE

from seatwise.child_process import ChildProcess
from seatwise.errors import UsageError
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.league.local_match import LocalOutcome, LocalSeason
from seatwise_server.league.processes import last_line

LONGEST_ANSWER = 2**28
"""The most bytes of an answer: a record of a very long match is some megabytes."""
ROOM = 2
"""Matches that a worker has at once: one that it plays, and one that waits, so that it never waits for its parent."""


class TablePool:
    """The workers of one season. Use it in an `async with` statement."""

    def __init__(self, season: LocalSeason, workers: int, logs: Path) -> None:
        """Create it, with so many processes. Each writes the output of its bots to a file of its own in the folder `logs`."""
        self._season = season
        self._workers = [_TableWorker(season, logs / f"tables-{place + 1}.log") for place in range(workers)]

    @property
    def room(self) -> int:
        """How many matches it takes at once."""
        return ROOM * len(self._workers)

    async def __aenter__(self) -> TablePool:
        for worker in self._workers:
            await worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            await worker.stop()

    async def play_match(self, scheduled: ScheduledMatch) -> LocalOutcome:
        """Play a match in the process that has the fewest. Raises `UsageError` if the process ends."""
        worker = min(self._workers, key=lambda each: each.load)
        return await worker.play_match(scheduled)


class _TableWorker:
    """One process. It answers in the order in which it is asked."""

    def __init__(self, season: LocalSeason, log: Path) -> None:
        self._season = season
        self._log = log
        self._asked: deque[tuple[ScheduledMatch, asyncio.Future[LocalOutcome]]] = deque()
        self._process: ChildProcess | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def load(self) -> int:
        """How many matches it has been asked for and has not told the end of."""
        return len(self._asked)

    async def start(self) -> None:
        """Start the process, and tell it the season."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            worker = "seatwise_server.league.table_worker"
            self._process = await ChildProcess.start(
                worker, stdout=PIPE, stderr=log, limit=LONGEST_ANSWER, runs_others=True
            )
        self._process.send_line(self._season.to_json())
        self._reader = asyncio.create_task(self._read_answers())

    async def stop(self) -> None:
        """Kill the process, with all processes that its bots have started."""
        if self._process is None:
            return
        self._process.kill()
        if self._reader:
            await asyncio.wait({self._reader})
        await self._process.wait()
        for _, answer in self._asked:
            answer.cancel()

    async def play_match(self, scheduled: ScheduledMatch) -> LocalOutcome:
        """Play one match. Raises `UsageError` if the process ends."""
        answer: asyncio.Future[LocalOutcome] = asyncio.get_running_loop().create_future()
        self._asked.append((scheduled, answer))
        assert self._process
        self._process.send_line(asdict(scheduled))
        if self._reader and self._reader.done():
            self._fail_all()
        return await answer

    async def _read_answers(self) -> None:
        assert self._process
        while (line := await self._process.read_line()).endswith(b"\n"):
            _, answer = self._asked.popleft()
            if not answer.done():
                answer.set_result(LocalOutcome.from_json(json.loads(line)))
        self._fail_all()

    def _fail_all(self) -> None:
        for scheduled, answer in self._asked:
            if not answer.done():
                answer.set_exception(UsageError(self._describe_end(scheduled)))
                answer.exception()  # only the first of them is reported

    def _describe_end(self, scheduled: ScheduledMatch) -> str:
        return (
            f"the process that played {self._season.match_name(scheduled)} between {', '.join(scheduled.bots)} has ended: does one of "
            f"these bots end its process, or run out of memory? The last line of {self._log} is: {last_line(self._log)}"
        )
