"""Hands units out to workers, and their answers back in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from random import SystemRandom
from typing import Any, Final

from seatwise.errors import UsageError
from seatwise.units.plan import UnitAnswer, UnitPlan, UnitWorker, UnitWorkers, WorkerLost, encode_result
from seatwise.units.unit_files import UnitFile
from seatwise.units.workers import LocalWorkers

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


class UnitRun:
    """One run of units. Use it in an `async with` statement."""

    def __init__(
        self, plan: UnitPlan, workers: UnitWorkers, *, file: UnitFile | None = None, replay_share: float = REPLAY_SHARE
    ) -> None:  # fmt: skip
        """Create it.

        Args:
            plan: The part that all units share.
            workers: The make of the workers.
            file: The answers of a run that was interrupted, which are not asked for again. New ones are added to it.
            replay_share: The share of units, 0 to 1, that are done again by a process of this machine.
        """
        self.is_repeatable = True
        """Whether no unit has given two results in the same process."""
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

    @property
    def room(self) -> int:
        """How many units its workers take at once."""
        return ROOM * self._make.count

    async def __aenter__(self) -> UnitRun:
        try:
            for place in range(self._make.count):
                self._workers.append(await self._make.start_worker(self._plan, place))
        except BaseException:
            await self._stop()
            raise
        for place in range(self.room):
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
        """Do one unit, at another worker if the first is lost.

        Args:
            number: Its number, from 0.
            told: Further data for the worker, as a value for JSON.

        Raises:
            UnitEndsWorkers: It has ended three workers.
            UsageError: A worker has answered wrongly, or cannot be started.
        """
        if self._file and (known := self._file.answers.get(number)):
            return known
        ended = 0
        while True:
            self._raise_lie()
            place = await self._free.get()
            worker = self._workers[place]
            try:
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
                    return
                yield await waiting[0]
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


async def _next_answer(answers: AsyncGenerator[UnitAnswer, None]) -> UnitAnswer | None:
    return await anext(answers, None)
