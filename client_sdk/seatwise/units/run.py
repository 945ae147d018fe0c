"""Hands units out to workers, and their answers back in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from seatwise.errors import UsageError
from seatwise.units.plan import (
    UnitAnswer,
    UnitPlan,
    UnitWorker,
    UnitWorkers,
    WorkerLost,
    digest_of,
    encode_result,
)
from seatwise.units.unit_files import PartFiles, UnitFile
from seatwise.units.workers import LocalWorkers, make_workers

MOST_WORKERS_A_UNIT: Final = 3
"""A unit that has ended so many workers is given up."""
ROOM: Final = 2
"""Units that a worker has at once: one that it does, and one that waits, so that it never waits for its coordinator."""
AHEAD: Final = 8
"""How many units a worker may be ahead of the oldest one that is not finished, so that a slow unit holds none of them up."""
REPLAY_SHARE: Final = 1 / 64
"""The share of units that the coordinator does again, at random."""
REPLAYS: Final = 4
"""How often a unit must give the same bytes here before a worker that gave others is named."""


class UnitEndsWorkers(UsageError):
    """A unit has ended three workers."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"unit {number} has ended {MOST_WORKERS_A_UNIT} workers: {why}")
        self.number = number
        self.why = why


class _Stopped(Exception):  # not an error: the run was asked to end
    pass


class UnitRun:
    """One run of units. Use it in an `async with` statement.

    `file` has the answers of a run that was interrupted, which are not asked for again; new ones are added to it. `replay_share` is
    the share of units, 0 to 1, that are done again by a process of this machine.
    """

    def __init__(
        self, plan: UnitPlan, workers: UnitWorkers, *, file: UnitFile | None = None, replay_share: float = REPLAY_SHARE
    ) -> None:  # fmt: skip
        self.is_repeatable = True
        """Whether no unit has given two results in the same process."""
        self.is_stopping = False
        """Set it to end `read_units` after the units that workers have."""
        self._plan = plan
        self._make = workers
        self._file = file
        self._share = replay_share
        self._workers: list[UnitWorker] = []
        self._free: asyncio.Queue[int] = asyncio.Queue()
        self._replays: set[asyncio.Task[None]] = set()
        self._own: UnitWorker | None = None
        self._own_lock = asyncio.Lock()
        self._lost_lock = asyncio.Lock()
        self._draw = SystemRandom()

    async def __aenter__(self) -> UnitRun:
        try:
            for place in range(self._make.count):
                self._workers.append(await self._make.start_worker(self._plan, place))
        except BaseException:
            await self._stop()
            raise
        for place in range(ROOM * self._make.count):
            self._free.put_nowait(place % self._make.count)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                await asyncio.gather(*self._replays)
        finally:
            await self._stop()

    async def _stop(self) -> None:
        for task in self._replays:
            task.cancel()
        await asyncio.gather(*self._replays, return_exceptions=True)
        for worker in (*self._workers, *([self._own] if self._own else ())):
            await worker.stop()

    async def run_unit(self, number: int, told: Any = None) -> UnitAnswer:
        """Do the unit of that number, from 0, at another worker if the first is lost. The worker is told a value for JSON.

        Raises `UnitEndsWorkers` if it has ended three workers, and `UsageError` if one has answered wrongly or cannot be started.
        """
        if self._file and (known := self._file.answers.get(number)):
            return known
        ended = 0
        while True:
            self._raise_lie()
            place = await self._free.get()
            worker = self._workers[place]
            try:
                if self.is_stopping:
                    raise _Stopped
                answer = await worker.run_unit(number, told)
                break
            except WorkerLost as lost:
                await self._replace_worker(place, worker)
                ended += lost.was_at_it
                if ended == MOST_WORKERS_A_UNIT:
                    raise UnitEndsWorkers(number, str(lost)) from None
            finally:
                self._free.put_nowait(place)
        if self._file:
            self._file.add_answer(answer)
        if self.is_repeatable and self._draw.random() < self._share:
            self._replays.add(asyncio.create_task(self._replay(answer, told)))
        return answer

    async def _replace_worker(self, place: int, lost: UnitWorker) -> None:
        async with self._lost_lock:
            if self._workers[place] is lost:
                await lost.stop()
                self._workers[place] = await self._make.start_worker(self._plan, place)

    def _raise_lie(self) -> None:
        for task in [each for each in self._replays if each.done()]:
            self._replays.discard(task)
            task.result()

    async def _replay(self, answer: UnitAnswer, told: Any) -> None:
        """Do the unit again in a process of our own. Raises `UsageError` if the worker has answered wrongly."""
        async with self._own_lock:
            try:
                if self._own is None:
                    self._own = await LocalWorkers(1).start_worker(self._plan, 0)
                own = encode_result((await self._own.run_unit(answer.number, told)).result)
                if own == encode_result(answer.result) or not self.is_repeatable:
                    return
                for _ in range(REPLAYS - 1):
                    if encode_result((await self._own.run_unit(answer.number, told)).result) != own:
                        self.is_repeatable = False
                        return
            except WorkerLost:  # the unit may end any process: that is for the run to say
                if self._own:
                    await self._own.stop()
                self._own = None
                return
        raise UsageError(
            f"{answer.worker} has answered unit {answer.number} wrongly: here it gave other bytes, {REPLAYS} times the same. "
            "Leave out all that it has answered"
        )

    async def read_units(self, units: Iterable[tuple[int, Any]]) -> AsyncGenerator[UnitAnswer, None]:
        """Yield the answers in the order of the units, which are numbers with what is told of them. Raises as `run_unit`."""
        waiting: deque[asyncio.Task[UnitAnswer]] = deque()
        source = iter(units)
        try:
            while True:
                while len(waiting) < AHEAD * self._make.count and (unit := next(source, None)):
                    waiting.append(asyncio.create_task(self.run_unit(*unit)))
                if not waiting:
                    await asyncio.gather(*self._replays)  # a wrong answer is told before the end
                    return
                try:
                    answer = await waiting[0]
                except _Stopped:
                    return
                yield answer
                waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


@contextmanager
def reading_units(run: UnitRun, units: Iterable[tuple[int, Any]]) -> Iterator[Iterator[UnitAnswer]]:
    """Start the run, and yield an iterator of its answers, for callers without an event loop. Raises as `UnitRun.run_unit`."""
    with asyncio.Runner() as runner:
        answers = run.read_units(units)

        def read() -> Generator[UnitAnswer, None, None]:
            while (answer := runner.run(_next_answer(answers))) is not None:
                yield answer

        runner.run(run.__aenter__())
        kind: type[BaseException] | None = None
        try:
            with closing(read()) as reader:
                yield reader
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            runner.run(answers.aclose())
            runner.run(run.__aexit__(kind))


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """Where the units of a run are done, and which of them. Every command that works in units has these options."""

    on: str = ""
    """Empty for processes of this machine; `ray`, or the address of a Ray cluster."""
    jobs: int = 0
    """The number of workers; 0 for one on each core."""
    units: range | None = None
    """The units of this part; `None` for all."""
    out: str | Path = ""
    """The file of the answers, from which a run that was interrupted goes on; empty for none."""
    merge: Sequence[str | Path] = ()
    """The parts that others wrote. No other worker is asked."""
    workers: UnitWorkers | None = None
    """The workers, in place of `on` and `jobs`."""

    @property
    def has_files(self) -> bool:
        """Whether answers go to a file, or come from files."""
        return bool(self.out or self.merge)

    @property
    def is_here(self) -> bool:
        """Whether one worker does all, so that it may be this process."""
        return self.jobs == 1 and not (self.on or self.has_files or self.workers)

    def digest_files(self, paths: Iterable[str | Path]) -> list[str]:
        """Return the hashes of the files that are read, for the plan; none where no part can be of other files. Raises `UsageError`."""
        return [digest_of(Path(path)) for path in paths] if self.has_files else []

    def make_workers(self, plan: UnitPlan, count: int = 0, logs: Path | None = None) -> UnitWorkers:
        """Return the workers for so many units; 0 if nobody knows how many. Raises `UsageError`. `logs` is that of `LocalWorkers`."""
        if self.merge:
            return PartFiles([*map(Path, self.merge)], plan, count)
        return self.workers or make_workers(self.on, self.jobs or None, logs)

    @contextmanager
    def open_file(self, plan: UnitPlan, units: range | None = None) -> Iterator[UnitFile | None]:
        """Open the file of the answers, if there is one. Raises `UsageError`. `units` is that of `UnitFile`."""
        with UnitFile(Path(self.out), plan, units) if self.out else nullcontext() as file:
            yield file


async def _next_answer(answers: AsyncGenerator[UnitAnswer, None]) -> UnitAnswer | None:
    return await anext(answers, None)
