"""Runs one server process until it is told to stop: that of `seatwise serve`, and each that another one has started.

Such a child is told its configuration in one line of JSON, and says in one line when it is ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import bind_contextvars

from seatwise.child_process import lower_priority, told_lines
from seatwise.cli.arguments import use_deck_files
from seatwise.defaults import USAGE
from seatwise.errors import UsageError
from seatwise.kits import REFUSED_GAMES
from seatwise.kits.hosted.installed_games import forbid_game_code, load_installed_games
from seatwise.output import AnswerOutput
from seatwise_server import log
from seatwise_server.app import PortBusy, StoreLost, running
from seatwise_server.background_tasks import BackgroundTasks, cancel_until_ended, run_in_loop
from seatwise_server.config import Config
from seatwise_server.counts import COUNTS
from seatwise_server.embedded import EmbeddedRedisError
from seatwise_server.game_choice import GameChoice
from seatwise_server.memory import START_AGAIN, MemoryLimitPassed
from seatwise_server.play.step_marker import STEP_FILE_VARIABLE, STEP_MARKER
from seatwise_server.store.errors import StoreError
from seatwise_server.supervisor import Facts, StartFailed
from seatwise_server.tls.tls_files import TlsError
from seatwise_server.tracing import TRACING

if TYPE_CHECKING:
    from seatwise_server.embedded import EmbeddedRedis
    from seatwise_server.hosted_guard import HostedGuard

STEP_MEMORY_SHARE = 0.8
"""The share of the limit of memory that the process may have during a step of a game from outside; the rest is for our own code."""
COUNT_EVERY_S = 1.0
"""Seconds between two reports of counts to the server, which has them in its metrics."""


def main() -> None:
    """Serve as a child, until SIGTERM or the end of the parent."""
    lines, answers = told_lines(), AnswerOutput()
    config = Config.from_json(next(lines))
    if config.niceness:
        lower_priority(config.niceness)

    def serve() -> None:
        prepare_process(config)
        run_in_loop(_serve_parent(config, lines, answers), with_uvloop=config.uvloop)

    sys.exit(explain_failure(serve))


def explain_failure(serve: Callable[[], None]) -> int:
    """Return the exit code of a server process. If it cannot go on, a sentence on standard error says why."""
    try:
        serve()
    except MemoryLimitPassed as error:
        print(f"seatwise serve: {error}; start it again, its matches wait", file=sys.stderr)
        return START_AGAIN
    except UsageError as error:
        print(f"seatwise serve: {error}", file=sys.stderr)
        return USAGE
    except (EmbeddedRedisError, StartFailed, StoreError, StoreLost, PortBusy, TlsError, ValueError) as error:
        print(f"seatwise serve: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        named = f"{error.filename}: {error.strerror}; choose a writable folder with --data FOLDER"
        print(f"seatwise serve: {error if error.filename is None else named}", file=sys.stderr)
        return 1
    return 0


def prepare_process(config: Config) -> None:
    """Open the log, load the decks, and import games from outside where their matches are played and nowhere else."""
    if config.process_name:
        bind_contextvars(process=config.process_name)
    use_deck_files(config.decks, config.default_deck)  # before the log: a wrong deck is told to the user
    log.configure(config.log_level, background_file=config.data / log.FILE)
    TRACING.start(config.process_name)
    is_player = "referee" in config.roles and config.games is not GameChoice.OWN
    step_file = os.environ.get(STEP_FILE_VARIABLE, "")
    if config.socket is None:
        for refused in REFUSED_GAMES:
            structlog.get_logger().warning("game_not_hosted", entry=refused.entry, why=refused.why)
    if not is_player or (config.games is GameChoice.HOSTED and not step_file):
        forbid_game_code()
        return
    STEP_MARKER.open_file(step_file)
    STEP_MARKER.limit_memory(int(STEP_MEMORY_SHARE * config.max_memory))
    load_installed_games(STEP_MARKER.run_import)


async def serve_until_stopped(
    config: Config, on_ready: Callable[[Facts], None], embedded: EmbeddedRedis | None = None,
    guard: HostedGuard | None = None, is_more_ready: Callable[[], bool] = lambda: True,
) -> None:  # fmt: skip
    """Serve until SIGTERM or Ctrl-C. `on_ready` is called with the addresses once the server is ready."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running(config, embedded, is_more_ready) as server:
        on_ready({
            "address": server.address, "pin": server.pin, "http_address": server.http_address, "ws_address": server.ws_address
        })  # fmt: skip
        guarding = asyncio.create_task(guard.run_guard()) if guard else None
        told = asyncio.create_task(stop.wait())
        either: list[asyncio.Future[Any]] = [told, server.stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if guarding:
            await cancel_until_ended([guarding])
        if server.stopped.done():
            await server.stopped


# As a child


class ParentReadiness:
    """Whether the parent of a process for reads takes bots, as the parent says. /readyz says so."""

    def __init__(self, config: Config, lines: Iterator[Any]) -> None:
        self.is_ready = config.socket is None
        self._lines = lines
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for is_ready in self._lines:
            self.is_ready = is_ready


async def _serve_parent(config: Config, lines: Iterator[Any], answers: AnswerOutput) -> None:
    readiness = ParentReadiness(config, lines)
    tasks = BackgroundTasks()

    def announce(facts: Facts) -> None:
        answers.print_line(json.dumps(facts))
        if config.socket:
            tasks.start_task(_report_counts(answers))

    try:
        await serve_until_stopped(config, announce, is_more_ready=lambda: readiness.is_ready)
    finally:
        await tasks.cancel_all()


async def _report_counts(answers: AnswerOutput) -> None:
    """Write what was counted over HTTP since the last report as one line of JSON, if there is anything. Runs until cancelled.

    Refusals of forwarded reads are counted by the server itself.
    """
    told, told_s = Counter[str](), dict.fromkeys(COUNTS.connections_short_s, 0.0)
    while True:
        await asyncio.sleep(COUNT_EVERY_S)
        now, now_s = Counter(COUNTS.http_refusals), dict(COUNTS.connections_short_s)
        if now != told or now_s != told_s:
            short_s = {port: now_s[port] - told_s[port] for port in now_s}
            answers.print_line(json.dumps({"refusals": now - told, "short_s": short_s}))
            told, told_s = now, now_s


if __name__ == "__main__":
    main()
