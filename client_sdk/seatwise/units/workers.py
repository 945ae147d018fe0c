"""Makes of workers: processes of this machine, and actors of a Ray cluster."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any, Final

from seatwise.child_process import ChildProcess
from seatwise.errors import UsageError
from seatwise.units.plan import UnitAnswer, UnitPlan, UnitWorker, UnitWorkers, WorkerLost

LONGEST_ANSWER: Final = 2**28
"""The most bytes of an answer: a record of a very long match is some megabytes."""
RAY_END_S: Final = 2.0


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_workers(where: str = "", count: int | None = None, logs: Path | None = None) -> UnitWorkers:
    """Return so many workers, or one on each core: processes of this machine, or with `where` actors as `RayWorkers` makes them.

    `logs` is that of `LocalWorkers`. Raises `UsageError`.
    """
    return RayWorkers(where, count) if where else LocalWorkers(count or count_cores(), logs)


class LocalWorkers:
    """Processes of this machine, at least one. Their bots print to files in the folder `logs`, or to the standard error here."""

    def __init__(self, count: int, logs: Path | None = None) -> None:
        self.count = count
        self._logs = logs

    async def start_worker(self, plan: UnitPlan, place: int) -> UnitWorker:
        """Start a process. Raises OSError."""
        log = self._logs and self._logs / f"worker-{place + 1}.log"
        worker = _LocalWorker(f"process {place + 1}", log)
        await worker.start(plan)
        return worker


class _LocalWorker:
    def __init__(self, name: str, log: Path | None) -> None:
        self.name = name
        self._log = log
        self._asked: deque[tuple[int, asyncio.Future[UnitAnswer]]] = deque()
        self._process: ChildProcess | None = None
        self._reader: asyncio.Task[None] | None = None
        self._has_failed = False

    async def start(self, plan: UnitPlan) -> None:
        """Start the process, and tell it the plan."""
        if self._log:
            self._log.parent.mkdir(parents=True, exist_ok=True)
        log = self._log.open("ab") if self._log else None
        try:
            self._process = await ChildProcess.start(
                "seatwise.units.unit_process", stdout=PIPE, stderr=log, limit=LONGEST_ANSWER, runs_others=True
            )
        finally:
            if log:
                log.close()
        self._process.send_line({"task": plan.task, "settings": plan.settings})
        self._reader = asyncio.create_task(self._read_answers(self._process))

    async def stop(self) -> None:
        """Kill the process, with all processes that its bots have started."""
        if self._process is None:
            return
        self._process.kill()
        if self._reader:
            await asyncio.wait({self._reader})
        await self._process.wait()

    async def run_unit(self, number: int, told: Any) -> UnitAnswer:
        """Do one unit. Raises `WorkerLost`, and OSError if the output of the bots cannot be written."""
        answer: asyncio.Future[UnitAnswer] = asyncio.get_running_loop().create_future()
        self._asked.append((number, answer))
        assert self._process
        self._process.send_line({"unit": number, "told": told})
        if self._reader and self._reader.done():
            self._fail_all()
        return await answer

    async def _read_answers(self, process: ChildProcess) -> None:
        while (line := await process.read_line()).endswith(b"\n"):
            number, answer = self._asked.popleft()
            if answer.done():
                continue
            found = json.loads(line)
            if fault := found.get("fault"):
                answer.set_exception(OSError(*fault, "standard error of the bots"))
            else:
                answer.set_result(UnitAnswer(number, found["result"], found["note"], self.name))
        self._fail_all()

    def _fail_all(self) -> None:
        while self._asked:
            _, answer = self._asked.popleft()
            if not answer.done():
                answer.set_exception(WorkerLost(self._describe_end(), was_at_it=not self._has_failed))
                self._has_failed = True

    def _describe_end(self) -> str:
        text = "does a bot end its process, or run out of memory?"
        if self._log is None:
            return f"{text} Its last lines are above"
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{text} The last line of {self._log} is: {lines[-1] if lines else 'nothing'}"


class RayWorkers:
    """Actors of a Ray cluster, which keep bots loaded. The folders of the bots are sent to them."""

    def __init__(self, address: str, count: int | None = None) -> None:
        """Connect to the cluster, for so many actors, or one on each of its CPUs.

        The address is HOST:PORT, ray://HOST:PORT, or `ray` for the cluster of $RAY_ADDRESS, or one on this machine if there is none.
        Raises `UsageError` if Ray is not installed, or there is no such cluster.
        """
        try:
            import ray
        except ModuleNotFoundError:
            raise UsageError("--on needs Ray: pip install '.[ray]' in a clone of the repository") from None
        self._ray: Any = ray
        if not self._ray.is_initialized():
            try:
                self._ray.init(
                    address=None if address == "ray" else address, log_to_driver=True, logging_level="error"
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise UsageError(f"--on {address}: {error}") from None
        self.count = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._packed: Any = None

    async def start_worker(self, plan: UnitPlan, place: int) -> UnitWorker:
        """Start an actor."""
        if self._packed is None:
            self._packed = self._ray.put(plan.pack_files())
        actor = self._ray.remote(num_cpus=1, max_restarts=0)(_RayActor)
        told = [version("seatwise"), plan.task, plan.settings, plan.files, plan.list_places()]
        return _RayWorker(self._ray, f"actor {place + 1}", actor.remote(json.dumps(told), self._packed))


class _RayActor:
    """Does units in a process of the cluster."""

    def __init__(self, told: str, packed: dict[str, bytes]) -> None:
        wanted, task, settings, files, places = json.loads(told)
        if version("seatwise") != wanted:
            raise UsageError(f"this node has Seatwise {version('seatwise')}, and the run is of {wanted}")
        self._folder = TemporaryDirectory(prefix="seatwise-")
        plan = UnitPlan(task, settings, tuple(files)).unpack_files(packed, places, Path(self._folder.name))
        self._player = plan.open_player()

    def run_unit(self, number: int, told: Any) -> str:
        """Do one unit."""
        return json.dumps(self._player(number, told))

    def close(self) -> None:
        """Remove what was unpacked."""
        self._folder.cleanup()


class _RayWorker:
    def __init__(self, ray: Any, name: str, actor: Any) -> None:
        self.name = name
        self._ray = ray
        self._actor = actor
        self._asked: deque[int] = deque()

    async def run_unit(self, number: int, told: Any) -> UnitAnswer:
        """Do one unit. Raises `WorkerLost`."""
        self._asked.append(number)
        try:
            found = await asyncio.wrap_future(self._actor.run_unit.remote(number, told).future())
        except self._ray.exceptions.RayActorError as error:
            raise WorkerLost(str(error), was_at_it=number == self._asked[0]) from None
        self._asked.remove(number)
        result, note = json.loads(found)
        return UnitAnswer(number, result, note, self.name)

    async def stop(self) -> None:
        """End the actor."""
        with suppress(Exception):
            await asyncio.wait_for(asyncio.wrap_future(self._actor.close.remote().future()), RAY_END_S)
        self._ray.kill(self._actor)
