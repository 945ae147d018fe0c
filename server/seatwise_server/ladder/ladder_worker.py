"""Fits strengths in a process of its own: for a hundred bots it takes seconds, too long for an event loop.

It is told {"ladder", "after", "results"}, which adds results after the first `after`. {"ladder", "wanted"} asks for the strengths, with
the neighbours in the table that cannot be distinguished, or for the fairness checks. The answer also says what it has cost, in seconds
of CPU time: the server asks again after a multiple of it. So the process has a small share of a core, of normal priority: with a lower
one no table appeared for minutes on a busy machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

from seatwise.child_process import ChildProcess, told_lines
from seatwise.output import AnswerOutput
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import Strength, StrengthFit, fit_strengths
from seatwise_server.competition.statistics.fairness import FairnessReport, SeatBias, check_fairness
from seatwise_server.competition.statistics.pair_test import Favour
from seatwise_server.ladder.bot_form import rated_results

if TYPE_CHECKING:
    from seatwise_server.store import ResultLogs

PEER_PLACES = 10
"""The number of neighbours in the table, on each side, with which a bot is compared."""
MOST_CHECKED_RESULTS = 10_000
"""The newest results in which fairness is checked. More take minutes where a hundred bots meet at tables of four."""
FIRST_LOOKS = (125, 250, 500)
LOOK_EVERY = 1_000
"""Fairness is checked after these numbers of results, and after each multiple of this one: no other look shows anything new."""
LOOKS = len(FIRST_LOOKS) + MOST_CHECKED_RESULTS // LOOK_EVERY
"""The looks at the first `MOST_CHECKED_RESULTS` results of a ladder, and no fewer than at as many later ones."""
StrengthsByBot = dict[str, list[Any]]
"""By bot in the order of the table: strength, low, high, provisional, peers."""


def main() -> None:
    """Answer requests until the server ends."""
    # Numpy would start a thread for each core, and use none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    answers = AnswerOutput()
    logs: dict[str, list[LoggedResult]] = {}
    for message in told_lines():
        log = logs.setdefault(message["ladder"], [])
        if "results" in message:
            log[message["after"] :] = map(LoggedResult.from_json, message["results"])
        else:
            began, wanted = time.process_time(), message["wanted"]
            found: Any = strengths_by_bot(log) if wanted == "strengths" else asdict(check_ladder(log))
            answers.print_line(json.dumps({wanted: found, "cpu_s": time.process_time() - began}))


def find_look(results: int) -> int:
    """Return after how many results the newest look at a ladder with so many was; 0 if there are too few."""
    first = max((count for count in FIRST_LOOKS if count <= results), default=0)
    return results // LOOK_EVERY * LOOK_EVERY or first


def describe_look(results: int) -> str:
    """Return the sentences about the newest look at a ladder with so many results."""
    after = find_look(results)
    later = min(count for count in (*FIRST_LOOKS, (after // LOOK_EVERY + 1) * LOOK_EVERY) if count > after)
    return (
        f"From the newest {min(after, MOST_CHECKED_RESULTS)} of the first {after} results; the next look is at {later}. However often "
        f"you look, chance names something in at most one of twenty honest ladders within {MOST_CHECKED_RESULTS} results."
    )


def check_ladder(log: Sequence[LoggedResult]) -> FairnessReport:
    """Return the fairness checks of the newest look, which hold however often and whenever somebody looks."""
    return check_fairness(log[: find_look(len(log))][-MOST_CHECKED_RESULTS:]).hold_over(LOOKS)


def strengths_by_bot(log: Sequence[LoggedResult]) -> StrengthsByBot:
    """Return the strengths by those of these results that are rated. The intervals hold at every look, because the log grows."""
    fitted = fit_strengths(rated_results(log)).widen_for_every_look()
    rows = sorted(fitted.strengths, key=lambda each: (-each.table_value, each.bot))
    return {each.bot: [each.value, each.low, each.high, each.provisional, _indistinct_neighbours(fitted, rows, place)]
            for place, each in enumerate(rows)}  # fmt: skip


def _indistinct_neighbours(fitted: StrengthFit, rows: Sequence[Strength], place: int) -> list[str]:
    """Return the neighbours in the table that the results do not distinguish from this bot, at whatever look."""
    near = [*rows[max(0, place - PEER_PLACES) : place], *rows[place + 1 : place + 1 + PEER_PLACES]]
    own = rows[place].bot
    return [other.bot for other in near if not fitted.excludes_equality(own, other.bot)]


# --- The side of the server ---

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
        answer = await self._fetch(ladder, results, "strengths")
        return answer["strengths"], answer["cpu_s"]

    async def fetch_checks(self, ladder: str, results: int) -> FairnessReport:
        """Return the fairness checks of the newest of the first `results` results; raises as `fetch_strengths` does."""
        found = (await self._fetch(ladder, results, "checks"))["checks"]
        favours = tuple(Favour(**each) for each in found["favours"])
        return FairnessReport(favours, tuple(SeatBias(**each) for each in found["seat_bias"]), ())

    async def _fetch(self, ladder: str, results: int, wanted: str) -> dict[str, Any]:
        async with self._one_at_a_time:
            try:
                process = self._process or await self._start_process()
                return await self._request(process, ladder, results, wanted)
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
        worker = "seatwise_server.ladder.ladder_worker"
        process = await ChildProcess.start(worker, stdout=PIPE, limit=MOST_ANSWER_BYTES)
        self._process, self._results_sent = process, {}
        return process

    async def _request(self, process: ChildProcess, ladder: str, results: int, wanted: str) -> dict[str, Any]:
        if self._results_sent.get(ladder, 0) > results:
            self._results_sent[ladder] = 0  # the store has lost some results; send all of them again
        while (after := self._results_sent.get(ladder, 0)) < results:
            some = await self._results.read_results(ladder, after, min(RESULTS_PER_LINE, results - after))
            if not some:
                raise ValueError(f"{ladder} has fewer than {results} results")
            told = [each.to_json() for each in some]
            process.send_line({"ladder": ladder, "after": after, "results": told})
            await process.drain()
            self._results_sent[ladder] = after + len(some)
        process.send_line({"ladder": ladder, "wanted": wanted})
        answer: dict[str, Any] = json.loads(await process.read_line())
        return answer

    async def _end_process(self) -> None:
        self.kill_process()
        process, self._process = self._process, None
        if process:
            await process.wait()


if __name__ == "__main__":
    main()
