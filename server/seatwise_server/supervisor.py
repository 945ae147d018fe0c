"""Runs several server processes under one command: starts them, starts those again that die, and stops them one by one.

A process that died was seen to die: the system has reported its end to its parent. So its lease is released at once, and its
siblings take over its matches without waiting for the lease to end. Each start has a name of its own, so the lease of a
process that lives is never released.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import structlog

from seatwise.child_process import ChildProcess, run_repeatedly
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import Config
from seatwise_server.memory import LEAST_MEMORY
from seatwise_server.store import Store, new_client
from seatwise_server.store.errors import StoreUnavailable

if TYPE_CHECKING:
    from seatwise_server.embedded import EmbeddedRedis

START_LIMIT_S = 120.0
"""A process that is not ready after this time is killed, and started again."""
STOP_LIMIT_S = 20.0
"""A process that has not stopped in order after this time is killed."""
DRAIN_LIMIT_S = 2.5
"""The longest wait until all referees have said that they take no more matches."""
DRAIN_CHECK_S = 0.1
FRONT_ROLES = frozenset({"lobby", "gateway"})

log = structlog.get_logger()

Facts = dict[str, str]
"""The addresses of a process that is ready, as its first line says: `address`, `pin`, `http_address`, `ws_address`."""


class StartFailed(Exception):
    """A process was not ready in time, or ended before. It has said why on standard error."""


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """A process that is to run all the time."""

    label: str
    """For the log, such as `referee-1`."""
    config: Config
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the process gets."""


class SupervisedProcess:
    """Keeps one process running."""

    def __init__(
        self, plan: ProcessPlan, on_end: Callable[[str], Awaitable[None]],
        on_ready: Callable[[Facts], None] = lambda _: None, on_line: Callable[[Any], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """`on_end` is called with the name of a start when its process has ended, `on_line` with what it says once it is ready."""
        self.plan = plan
        self.name = ""
        """The name of the present start; unique to it."""
        self._on_end, self._on_ready, self._on_line = on_end, on_ready, on_line
        self._process: ChildProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return self._process.pid if self._process and self._process.code is None else None

    async def start_process(self) -> None:
        """Start the process, and return when it is ready. Raises StartFailed if it is not ready in time, or ends before."""
        label, self._is_stopping = self.plan.label, False
        self.name = f"{socket.gethostname()}-{label}-{secrets.token_hex(4)}"
        process = self._process = await ChildProcess.start(
            "seatwise_server.serving", label, stdout=PIPE, pass_fds=self.plan.pass_fds
        )
        process.send_line(replace(self.plan.config, process_name=self.name).to_json())
        try:
            line = await process.read_line(START_LIMIT_S)
        except TimeoutError:
            raise StartFailed(f"{label} was not ready after {START_LIMIT_S:g} s") from None
        if not line:
            raise StartFailed(f"{label} ended with exit code {await process.wait()} before it was ready")
        facts: Facts = json.loads(line)
        self.plan = replace(self.plan, config=_keep_ports(self.plan.config, facts))
        self._reading = asyncio.create_task(self._read_lines(process))
        log.info("process_started", process=self.name, pid=process.pid)
        self._on_ready(facts)

    async def _read_lines(self, process: ChildProcess) -> None:
        while line := await process.read_line():
            with suppress(ValueError):  # it was killed within a line
                self._on_line(json.loads(line))

    def send_line(self, told: object) -> None:
        """Tell the process something, if there is one."""
        if self._process:
            self._process.send_line(told)

    async def keep_running(self) -> None:
        """Start the process, and again whenever it ends. Runs until cancelled."""
        await run_repeatedly(self._run_once)

    async def _run_once(self) -> None:
        if self._process is None or self._process.code is not None:
            try:
                await self.start_process()
            except (OSError, StartFailed) as error:
                log.warning("process_not_started", process=self.name, why=str(error))
                await self.stop_process()
        if self._process:
            code = await self._process.wait()
            if not self._is_stopping:
                log.warning("process_ended", process=self.name, code=code)
            await self._on_end(self.name)

    async def stop_process(self, limit_s: float = STOP_LIMIT_S) -> None:
        """Stop the process in order, or kills it after `limit_s` seconds. Nothing happens if there is none."""
        self._is_stopping = True
        if self._process is None:
            return
        process = self._process  # kept: a caller that is cancelled here stops it again
        await process.stop(limit_s)
        if self._reading:
            await self._reading
        self._process = None
        if process.code:  # else it has released its lease itself
            await self._on_end(self.name)


def _keep_ports(config: Config, facts: Facts) -> Config:
    """Return the configuration with the ports that a process has taken: callers find the next one at the same ports."""
    if not config.roles >= FRONT_ROLES:
        return config
    port, ws_port, http_port = (
        int(facts[name].rpartition(":")[2] or 0) for name in ("address", "ws_address", "http_address")
    )
    http = config.http and replace(config.http, port=http_port, is_port_default=False)
    found_ws = None if config.ws_port is None else ws_port
    return replace(config, port=port, ws_port=found_ws, is_ws_port_default=False, http=http)


class Supervisor:
    """Keeps several processes on one Redis running, such as referees and the front of a server (lobby and gateway)."""

    def __init__(self, store: Store, plans: Sequence[ProcessPlan], on_ready: Callable[[Facts], None]) -> None:
        """`plans` is in the order of the starts; processes are stopped in the reverse order.

        A front comes last. `on_ready` is called when it is ready for the first time.
        """
        self._store = store
        self._on_ready = on_ready
        self.processes = [SupervisedProcess(plan, self._release_lease) for plan in plans[:-1]]
        self.processes.append(SupervisedProcess(plans[-1], self._release_lease, self._announce_front))
        self._keeping: dict[str, asyncio.Task[None]] = {}

    async def start_all(self) -> None:
        """Start the first process alone, because it may make files for the others; then the others; the last one at the end.

        Raises StartFailed if one does not start. Call `stop_all` then too.
        """
        first, *others = self.processes
        waves = [[first], others[:-1], others[-1:]]
        for wave in waves:
            await asyncio.gather(*(process.start_process() for process in wave))
        for process in self.processes:
            self._keep(process)

    def _announce_front(self, facts: Facts) -> None:
        if not self._keeping:
            self._on_ready(facts)

    def _keep(self, process: SupervisedProcess) -> None:
        self._keeping[process.plan.label] = asyncio.create_task(process.keep_running())

    async def restart_all(self) -> None:
        """Restart all processes one by one. The matches of a referee go to its siblings at once."""
        for process in self.processes:
            await cancel_until_ended([self._keeping.pop(process.plan.label)])
            try:
                await process.stop_process()
                await process.start_process()
            except (OSError, StartFailed) as error:
                log.warning("process_not_started", process=process.name, why=str(error))
            self._keep(process)

    async def stop_all(self) -> None:
        """Stop all processes one by one. None of them takes over the matches of another: those wait in the store."""
        await cancel_until_ended(self._keeping.values())
        await self._drain_referees()
        for process in reversed(self.processes):
            await process.stop_process()

    async def _drain_referees(self) -> None:
        """Tell all referees to take no more matches, and wait until their heartbeats say so."""
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
        """Tell the referees that this process is dead. If the store is away for long, they notice when the lease is over."""
        with suppress(StoreUnavailable):
            await self._store.processes.deregister_process(name, is_dead=True)


# Which processes there are


def plan_processes(
    config: Config, referees: int, referee_port: int, most_memory: int | None
) -> list[ProcessPlan]:
    """Return the processes of `serve --referees` in the order of their starts: the referees, then the front.

    Args:
        config: The configuration of the whole, with the URL of Redis.
        referees: How many there are.
        referee_port: The first port of the referees; 0 for free ports.
        most_memory: The limit of each process in bytes; None for an equal part of that of the whole.
    """
    each = max(LEAST_MEMORY, config.max_memory // (referees + 1)) if most_memory is None else most_memory
    common = replace(config, max_memory=each, has_read_process=False)
    plans = [
        ProcessPlan(f"referee-{number}", _referee_config(common, number, referees, referee_port))
        for number in range(1, referees + 1)
    ]
    return [*plans, ProcessPlan("front", replace(common, roles=FRONT_ROLES))]


def _referee_config(config: Config, number: int, count: int, first: int) -> Config:
    """Return the configuration of referee `number`; it has no HTTP port, no health port and no house bots."""
    port = first + number - 1 if first else 0
    ws_port = first + count + number - 1 if first else 0
    return replace(
        config, roles=frozenset({"referee"}), port=port,
        address=config.address and f"{config.address.rpartition(':')[0]}:{port}",
        ws_port=None if config.ws_port is None else ws_port, is_ws_port_default=False, http=None, health_port=None,
        metrics_port=config.metrics_port and config.metrics_port + number, house_bots=False, house_names=(),
        most_tables=ceil(config.most_tables / count),
    )  # fmt: skip


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def serve_processes(
    plans: Sequence[ProcessPlan], on_ready: Callable[[Facts], None], embedded: EmbeddedRedis | None = None,
    guarding: Callable[[], Awaitable[None]] | None = None,
) -> None:  # fmt: skip
    """Run these processes until SIGTERM or Ctrl-C, and the guard beside them. SIGHUP restarts all processes, one by one.

    Raises `StartFailed` if a process does not start, and `RedisKeepsDying`.
    """
    stop, restart = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number, event in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, restart)):
        loop.add_signal_handler(number, event.set)
    client = new_client(plans[0].config.redis_url)
    tasks: list[asyncio.Task[Any]] = []
    try:
        supervisor = Supervisor(Store(client), plans, on_ready)
        if embedded:
            tasks.append(asyncio.create_task(embedded.supervise()))
        if guarding:
            tasks.append(asyncio.ensure_future(guarding()))
        running = asyncio.create_task(_run_until_stopped(supervisor, stop, restart))
        await asyncio.wait([running, *tasks], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():  # Redis cannot be kept running
            stop.set()
        await running
        for task in tasks:
            if task.done():
                await task
    finally:
        await cancel_until_ended(tasks)
        await client.close_connections()


async def _run_until_stopped(supervisor: Supervisor, stop: asyncio.Event, restart: asyncio.Event) -> None:
    working = asyncio.create_task(_start_and_restart(supervisor, restart))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if working.done():  # a process did not start
            await working
    finally:
        await cancel_until_ended([working])
        stopping.cancel()
        await supervisor.stop_all()


async def _start_and_restart(supervisor: Supervisor, restart: asyncio.Event) -> None:
    """Start all processes, then restart them whenever that is asked. Runs until cancelled."""
    await supervisor.start_all()
    while True:
        await restart.wait()
        restart.clear()
        await supervisor.restart_all()
