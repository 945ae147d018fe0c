"""Asks `strength_worker` for strengths, and starts it again if it has died."""

from __future__ import annotations

import asyncio
import json
from subprocess import PIPE

from seatwise.child_process import ChildProcess
from seatwise_server.ladder.strength_worker import StrengthsByBot
from seatwise_server.store import ResultLogs

RESULTS_PER_LINE = 200
"""The number of results in one line. Writing it takes some milliseconds."""
MOST_ANSWER_BYTES = 2**26
"""The longest answer that is read, in bytes."""


class StrengthsFailed(Exception):
    """The worker process died, or its answer cannot be used. The next request starts another one."""


class StrengthClient:
    """One worker process, started by the first request."""

    def __init__(self, results: ResultLogs) -> None:
        self._results = results
        self._process: ChildProcess | None = None
        self._results_sent: dict[str, int] = {}
        """How many results the process has of each ladder."""
        self._one_at_a_time = asyncio.Lock()

    async def fetch_strengths(self, ladder: str, results: int) -> tuple[StrengthsByBot, float]:
        """Return the strengths by the first `results` results of a ladder, and their cost in CPU seconds.

        Raises `StrengthsFailed` if the process fails, and `StoreUnavailable`.
        """
        async with self._one_at_a_time:
            try:
                process = self._process or await self._start_process()
                return await self._request_strengths(process, ladder, results)
            except (OSError, ValueError) as error:
                await self._end_process()
                raise StrengthsFailed(str(error)) from error
            except asyncio.CancelledError:
                await self._end_process()  # its answer would be read as the answer to the next request
                raise

    def kill_process(self) -> None:
        """Kill the process. It has no data that could be lost."""
        if self._process and self._process.code is None:
            self._process.kill()

    async def close_process(self) -> None:
        """Kill the process, and wait until it has ended."""
        async with self._one_at_a_time:
            await self._end_process()

    async def _start_process(self) -> ChildProcess:
        worker = "seatwise_server.ladder.strength_worker"
        process = await ChildProcess.start(worker, stdout=PIPE, limit=MOST_ANSWER_BYTES)
        self._process, self._results_sent = process, {}
        return process

    async def _request_strengths(
        self, process: ChildProcess, ladder: str, results: int
    ) -> tuple[StrengthsByBot, float]:
        if self._results_sent.get(ladder, 0) > results:
            self._results_sent[ladder] = 0  # the store has lost some results; send all of them again
        while (after := self._results_sent.get(ladder, 0)) < results:
            some = await self._results.read_results(ladder, after, min(RESULTS_PER_LINE, results - after))
            if not some:
                raise ValueError(f"{ladder} has fewer than {results} results")
            process.send_line(
                {"ladder": ladder, "after": after, "results": [each.to_json() for each in some]}
            )
            await process.drain()
            self._results_sent[ladder] = after + len(some)
        process.send_line({"ladder": ladder})
        answer = json.loads(await process.read_line())
        return answer["strengths"], answer["cpu_s"]

    async def _end_process(self) -> None:
        self.kill_process()
        process, self._process = self._process, None
        if process:
            await process.wait()
