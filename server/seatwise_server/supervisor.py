"""Runs several server processes under one command: starts them, starts those again that die, and stops them one by one.

A process that died was seen to die: the system has reported its end to its parent. So its lease is released at once, and its
siblings take over its matches without waiting for the lease to end. Each start has a name of its own, so the lease of a
process that lives is never released.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import PIPE

import structlog

from seatwise.child_process import ChildProcess, run_repeatedly
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import PROCESS_NAME_VARIABLE
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable

LISTENING_LINE = "Seatwise listens on "
"""How the line begins that a process prints when it takes bots."""
START_LIMIT_S = 120.0
"""A process that is not ready after this time is killed, and started again."""
STOP_LIMIT_S = 20.0
"""A process that has not stopped in order after this time is killed."""
DRAIN_LIMIT_S = 2.5
"""The longest wait until all referees have said that they take no more matches."""
DRAIN_CHECK_S = 0.1

log = structlog.get_logger()


_PORT_OPTIONS = {LISTENING_LINE: "--port", "REST API: ": "--http-port", "Bots by WebSocket: ": "--ws-port"}
"""How the lines begin that tell of a port, and the option for it."""


class StartFailed(Exception):
    """A process was not ready in time, or ended before. It has said why on standard error."""


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """A process that is to run all the time."""

    label: str
    """For the log, such as `referee-1`."""
    arguments: Sequence[str]
    """The arguments of `seatwise serve`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables in addition to those of this process."""
    is_front: bool = False
    """Whether bots know its addresses: then its first output is shown, and later starts take the same ports."""


class SupervisedProcess:
    """Keeps one process running."""

    def __init__(self, plan: ProcessPlan, on_end: Callable[[str], Awaitable[None]]) -> None:
        self.plan = plan
        self.name = ""
        """The name of the present start; unique to it."""
        self._on_end = on_end
        """Called with the name of a start when its process has ended."""
        self._process: ChildProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._ports: dict[str, str] = {}
        """The ports of a front, by option."""

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return self._process.pid if self._process and self._process.code is None else None

    async def start_process(self) -> None:
        """Starts the process, and returns when it is ready. Raises StartFailed if it is not ready in time, or ends before."""
        self.name = f"{socket.gethostname()}-{self.plan.label}-{secrets.token_hex(4)}"
        self._ready.clear()
        self._process = await ChildProcess.start(
            "seatwise", "serve", *self._arguments(), stdout=PIPE,
            environment={**self.plan.environment, PROCESS_NAME_VARIABLE: self.name},
        )  # fmt: skip
        self._reading = asyncio.create_task(self._read_output(self._process))
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await self._ready.wait()
        except TimeoutError:
            raise StartFailed(f"{self.plan.label} was not ready after {START_LIMIT_S:g} s") from None
        if self._process.code is not None:
            raise StartFailed(
                f"{self.plan.label} ended with exit code {self._process.code} before it was ready"
            )
        log.info("process_started", process=self.name, pid=self._process.pid)

    def _arguments(self) -> list[str]:
        return [*self.plan.arguments, *(part for port in self._ports.items() for part in port)]

    async def _read_output(self, process: ChildProcess) -> None:
        """Reads all that the process prints, until it ends: a full pipe would stop it."""
        is_shown = self.plan.is_front and not self._ports
        while line := await process.read_line():
            text = line.decode(errors="replace")
            if is_shown:
                print(text, end="", flush=True)
                self._ports |= _port_in(text)
            if text.startswith(LISTENING_LINE):
                self._ready.set()
        await process.wait()
        self._ready.set()

    async def keep_running(self) -> None:
        """Starts the process again whenever it ends. Runs until cancelled; the process was started before."""
        await run_repeatedly(self._run_once)

    async def _run_once(self) -> None:
        """Waits for the end of the process, and starts it before if there is none."""
        if self._process is None or self._process.code is not None:
            try:
                await self.start_process()
            except (OSError, StartFailed) as error:
                log.warning("process_not_started", process=self.name, why=str(error))
                await self.stop_process()
        if self._process:
            code = await self._process.wait()
            log.warning("process_ended", process=self.name, code=code)
            await self._on_end(self.name)

    async def restart_process(self) -> None:
        """Stops the process in order and starts it again. Call it while `keep_running` is not running."""
        await self.stop_process()
        await self.start_process()

    async def stop_process(self) -> None:
        """Stops the process in order, or kills it after `STOP_LIMIT_S`. Nothing happens if there is none."""
        process = self._process  # kept until it is gone: a caller that is cancelled here stops it again
        if process is None:
            return
        await process.stop(STOP_LIMIT_S)
        if self._reading:
            await self._reading
        self._process = None
        if process.code:  # else it has released its lease itself
            await self._on_end(self.name)


class Supervisor:
    """Keeps several processes on one Redis running, such as referees and the front of a server (lobby and gateway)."""

    def __init__(self, store: Store, plans: Sequence[ProcessPlan]) -> None:
        """`plans` is in the order of the starts; processes are stopped in the reverse order. A front comes last."""
        self._store = store
        self.processes = [SupervisedProcess(plan, self._release_lease) for plan in plans]
        self._keeping: dict[str, asyncio.Task[None]] = {}

    async def start_all(self) -> None:
        """Starts the first process alone, because it may make files for the others; then the others; the last one at the end.

        Raises StartFailed if one does not start. Call `stop_all` then too.
        """
        first, *others = self.processes
        waves = [[first], others[:-1], others[-1:]]
        for wave in waves:
            await asyncio.gather(*(process.start_process() for process in wave))
        for process in self.processes:
            self._keep(process)

    def _keep(self, process: SupervisedProcess) -> None:
        self._keeping[process.plan.label] = asyncio.create_task(process.keep_running())

    async def restart_all(self) -> None:
        """Restarts all processes one by one. The matches of a referee go to its siblings at once."""
        for process in self.processes:
            await cancel_until_ended([self._keeping.pop(process.plan.label)])
            try:
                await process.restart_process()
            except (OSError, StartFailed) as error:
                log.warning("process_not_started", process=process.name, why=str(error))
            self._keep(process)

    async def stop_all(self) -> None:
        """Stops all processes one by one. None of them takes over the matches of another: those wait in the store."""
        await cancel_until_ended(self._keeping.values())
        await self._drain_referees()
        for process in reversed(self.processes):
            await process.stop_process()

    async def _drain_referees(self) -> None:
        """Tells all referees to take no more matches, and waits until their heartbeats say so."""
        names = {process.name for process in self.processes if process.pid}
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(DRAIN_LIMIT_S):
                beats = await self._store.processes.read_heartbeats()
                awaited = names & beats.keys()
                for name in awaited:
                    await self._store.processes.send_order(name, b"drain")
                while not all(beats[name].is_draining for name in awaited & beats.keys()):
                    await asyncio.sleep(DRAIN_CHECK_S)
                    beats = await self._store.processes.read_heartbeats()

    async def _release_lease(self, name: str) -> None:
        """Tells the referees that this process is dead. If the store is away for long, they notice when the lease is over."""
        with suppress(StoreUnavailable):
            await self._store.processes.deregister_process(name, is_dead=True)


def _port_in(line: str) -> dict[str, str]:
    """Returns the port that a line tells of, by its option; empty if it tells of none."""
    found = re.search(r":(\d+)", line)
    return {option: found[1] for start, option in _PORT_OPTIONS.items() if found and line.startswith(start)}
