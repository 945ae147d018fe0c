"""Guards the referee process of games from outside: kills it when it is silent, voids the match at fault, and starts it again.

The process notes in a file which match is at a step of a game, and that its event loop still runs. A step that hangs, or that
takes the process with it, is known by that note. All other matches are taken over by the next process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from seatwise.kits.installed_games import UNLOADED_VARIABLE
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import PROCESS_NAME_VARIABLE
from seatwise_server.embedded.processes import with_death_signal
from seatwise_server.memory import START_AGAIN
from seatwise_server.play.step_marker import (
    GAME_FAULT_MARK,
    STEP_FILE_VARIABLE,
    read_imported_package,
    read_last_match,
    read_marked_match,
    read_signs_of_life,
)
from seatwise_server.store import Store, new_client
from seatwise_server.store.errors import StoreUnavailable

SILENCE_LIMIT_S = 5.0
"""A process whose event loop has been silent for so long is killed."""
FIRST_SIGN_LIMIT_S = 60.0
"""A process that has given no sign of life after this time is killed."""
GUARD_LOOK_S = 0.25
GUARD_FIRST_PAUSE_S = 0.2
GUARD_LONGEST_PAUSE_S = 10.0
GUARD_STEADY_S = 30.0
"""A process that has lived so long is started again after the first pause."""
ORDERLY_END_S = 15.0
STORE_PAUSE_S = 0.5
OTHER_ENDS = (0, START_AGAIN, -signal.SIGTERM, -signal.SIGKILL)
"""Exit codes of a process that was stopped from outside, or that ended in order."""

log = structlog.get_logger()


class HostedGuard:
    """Keeps one referee process for games from outside running."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], redis_url: str) -> None:
        """`arguments` are those of `seatwise serve`; the address of Redis is in the environment."""
        self._arguments = arguments
        self._environment = environment
        self._redis_url = redis_url
        self._process: asyncio.subprocess.Process | None = None
        self._unloaded: list[str] = []
        """The entry points whose packages have stopped a process that imported them."""
        self._suspect = ""
        """The match whose step was the last one before the process broke down between two steps."""

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def run_guard(self) -> None:
        """Runs until cancelled. Then the process is stopped in order."""
        client = new_client(self._redis_url)
        pause_s = GUARD_FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    await self._run_once(Store.of(client))
                except OSError as error:
                    log.warning("hosted_referee_not_started", why=str(error))
                if loop.time() - began >= GUARD_STEADY_S:
                    pause_s = GUARD_FIRST_PAUSE_S
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, GUARD_LONGEST_PAUSE_S)
        finally:
            await client.close_connections()

    async def _run_once(self, store: Store) -> None:
        with tempfile.TemporaryDirectory(prefix="seatwise-hosted-") as folder:
            note = Path(folder) / "step"
            process = self._process = await asyncio.create_subprocess_exec(
                *with_death_signal([sys.executable, "-m", "seatwise", "serve", *self._arguments]),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
                env={
                    **_own_environment(), **self._environment, STEP_FILE_VARIABLE: str(note),
                    UNLOADED_VARIABLE: "\n".join(self._unloaded),
                },
            )  # fmt: skip
            log.info("hosted_referee_started", pid=process.pid)
            watching = asyncio.create_task(_kill_when_silent(process, note))
            try:
                code = await process.wait()
                match = self._find_fault(code, read_marked_match(note), read_last_match(note))
                log.warning("hosted_referee_ended", code=code, match=match)
                if package := read_imported_package(note):
                    self._unloaded.append(package)
                    log.error(
                        "game_package_not_loaded",
                        entry=package,
                        why="it hangs or ends the process at its import",
                    )
                elif match:
                    await _void_match(store, match)
            finally:
                await cancel_until_ended([watching])
                await _stop_process(process)

    def _find_fault(self, code: int, marked: str, last: str) -> str:
        """Returns the match that has ended the process; empty if none is known to have.

        A step may break the process so that it ends only after the step, for example by closing files. One such end proves
        nothing about the last match; two in a row do. An end by a signal from outside, or in order, is no such end.
        """
        if marked or code in OTHER_ENDS:
            return marked
        before, self._suspect = self._suspect, last
        return last if last == before else ""


def _own_environment() -> dict[str, str]:
    """Returns the environment without the name of this process: each start of the referee has a name of its own."""
    return {name: value for name, value in os.environ.items() if name != PROCESS_NAME_VARIABLE}


async def _kill_when_silent(process: asyncio.subprocess.Process, note: Path) -> None:
    """Only time in which this process itself looked regularly counts: a standstill of the machine kills nothing."""
    silent_s, signs = 0.0, 0
    while True:
        await asyncio.sleep(GUARD_LOOK_S)
        silent_s += GUARD_LOOK_S
        found = read_signs_of_life(note)
        if found != signs:
            signs, silent_s = found, 0.0
        if silent_s >= (SILENCE_LIMIT_S if signs else FIRST_SIGN_LIMIT_S):
            log.warning("hosted_referee_silent", pid=process.pid, match=read_marked_match(note))
            with suppress(ProcessLookupError):
                process.kill()
            return


async def _void_match(store: Store, match: str) -> None:
    """Marks the match: its next owner voids it without another look at its moves."""
    while True:
        with suppress(StoreUnavailable):
            await store.matches.ask_abort(match, GAME_FAULT_MARK)
            return
        await asyncio.sleep(STORE_PAUSE_S)


async def _stop_process(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(ORDERLY_END_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
