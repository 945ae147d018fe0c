"""`seatwise serve --referees N`: a front (lobby and gateway) and several referees, each a process, under one command."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import ArgumentParser, Namespace
from math import ceil
from typing import TYPE_CHECKING, Any

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.cli import serve
from seatwise_server.config import Config
from seatwise_server.memory import LEAST_MEMORY, default_limit
from seatwise_server.store import Store, new_client
from seatwise_server.supervisor import ProcessPlan, Supervisor

if TYPE_CHECKING:
    from seatwise_server.embedded import EmbeddedRedis
    from seatwise_server.hosted_guard import HostedGuard

FRONT_ROLES = ("lobby", "gateway")
_NOT_PASSED_ON = ("help", "redis", "referees", "referee_port")
"""Options that the processes do not get. The address of Redis is in their environment, so that `ps` does not show it."""


def refuse_options(args: Namespace) -> str:
    """Return why these options do not fit several referees; empty if they do."""
    if args.roles:
        return "--referees starts all roles: leave --role out, or start each process with its own command"
    if args.ws_address:
        return "--ws-address names one referee: leave it out, or start each referee with its own command"
    if args.address and not args.referee_port:
        return "with --referees, --address names the host of all referees: name their ports too, with --referee-port"
    return ""


def count_referees(args: Namespace) -> int:
    """Return the number of referee processes: for `auto` one for each core but one, which the front and Redis share."""
    if args.referees != "auto":
        return int(args.referees)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def plan_processes(args: Namespace, redis_url: str) -> list[ProcessPlan]:
    """Return the processes in the order of their starts: the referees, then the front."""
    count = count_referees(args)
    common = {"max_memory": _memory_of_each(args, count + 1)}
    plans = [
        ProcessPlan(
            f"referee-{number}",
            pass_arguments_on(args, **common, **_referee_options(args, number, count)),
            {serve.REDIS_VARIABLE: redis_url},
        )
        for number in range(1, count + 1)
    ]
    front = pass_arguments_on(args, **common, roles=list(FRONT_ROLES))
    return [*plans, ProcessPlan("front", front, {serve.REDIS_VARIABLE: redis_url}, is_front=True)]


def _referee_options(args: Namespace, number: int, count: int) -> dict[str, Any]:
    """Return the options of referee `number` that differ from those of the front; it has no HTTP port and no health port."""
    first = args.referee_port
    return {
        "roles": ["referee"],
        "port": first + number - 1 if first else 0,
        "address": args.address and f"{args.address.rpartition(':')[0]}:{first + number - 1}",
        "ws_port": None if args.no_ws else (first + count + number - 1 if first else 0),
        "no_http": True,
        "http_host": None,
        "http_port": None,
        "http_cors": [],
        "http_lobby": None,
        "health_port": None,
        "metrics_port": args.metrics_port and args.metrics_port + number,
        "no_house_bots": True,
        "house_bot": [],
        "tables": ceil(args.tables / count),
    }


def _memory_of_each(args: Namespace, processes: int) -> int:
    """Return the limit of each process: the one that was named, or an equal part of the default."""
    if args.max_memory is not None:
        return int(args.max_memory)
    return max(LEAST_MEMORY, default_limit() // processes)


def pass_arguments_on(args: Namespace, **changes: Any) -> list[str]:
    """Return the arguments of `seatwise serve` that have the meaning of `args`, with these changes."""
    parser = ArgumentParser()
    serve.configure(parser)
    passed: list[str] = []
    for action in parser._actions:  # argparse has no other list of its options
        value = changes.get(action.dest, getattr(args, action.dest, None))
        if action.dest in _NOT_PASSED_ON or value is None or value is False or value == action.default:
            continue
        option = action.option_strings[-1]
        if value is True:
            passed.append(option)
        else:
            passed += [part for each in _as_list(value) for part in (option, str(each))]
    return passed


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


async def serve_processes(
    args: Namespace, config: Config, embedded: EmbeddedRedis | None, guard: HostedGuard | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C. SIGHUP restarts all processes, one by one.

    Raises `StartFailed` if a process does not start, and `RedisKeepsDying`.
    """
    stop, restart = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number, event in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, restart)):
        loop.add_signal_handler(number, event.set)
    url = config.redis_url or (embedded.url if embedded else "")
    client = new_client(url)
    tasks: list[asyncio.Task[Any]] = []
    try:
        supervisor = Supervisor(Store.of(client), plan_processes(args, url))
        if embedded:
            tasks.append(asyncio.create_task(embedded.supervise()))
        if guard:
            tasks.append(asyncio.create_task(guard.run_guard()))
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
    """Starts all processes, then restarts them whenever that is asked. Runs until cancelled."""
    await supervisor.start_all()
    while True:
        await restart.wait()
        restart.clear()
        await supervisor.restart_all()
