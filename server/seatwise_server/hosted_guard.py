"""Guards the referee process of games from outside: kills it when it is silent, voids the match at fault, and starts it again.

The process notes in a file which match is at a step of a game, and that its event loop still runs. A step that hangs, or that
takes the process with it, is known by that note. All other matches are taken over by the next process.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL

import structlog

from seatwise.child_process import ChildProcess, run_repeatedly
from seatwise.kits.hosted.installed_games import UNLOADED_VARIABLE
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import Config
from seatwise_server.game_choice import GameChoice
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
ORDERLY_END_S = 15.0
STORE_PAUSE_S = 0.5
OTHER_ENDS = (0, START_AGAIN, -signal.SIGTERM, -signal.SIGKILL)
"""Exit codes of a process that was stopped from outside, or that ended in order."""

log = structlog.get_logger()


class HostedGuard:
    """Keeps one referee process for games from outside running."""

    def __init__(self, config: Config) -> None:
        """`config` is that of the referee, with the URL of Redis."""
        self._config = config
        self._process: ChildProcess | None = None
        self._unloaded: list[str] = []
        """The entry points whose packages have stopped a process that imported them."""
        self._suspect = ""
        """The match whose step was the last one before the process broke down between two steps."""

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return self._process.pid if self._process and self._process.code is None else None

    async def run_guard(self) -> None:
        """Run until cancelled. Then the process is stopped in order."""
        client = new_client(self._config.redis_url)
        try:
            await run_repeatedly(lambda: self._run_once(Store(client)))
        finally:
            await client.close_connections()

    async def _run_once(self, store: Store) -> None:
        with tempfile.TemporaryDirectory(prefix="seatwise-hosted-") as folder:
            note = Path(folder) / "step"
            told = {STEP_FILE_VARIABLE: str(note), UNLOADED_VARIABLE: "\n".join(self._unloaded)}
            try:
                process = self._process = await ChildProcess.start(
                    "seatwise_server.serving", "hosted", stdout=DEVNULL, environment=told, runs_others=True
                )
                process.send_line(self._config.to_json())
            except OSError as error:
                log.warning("hosted_referee_not_started", why=str(error))
                return
            log.info("hosted_referee_started", pid=process.pid)
            watching = asyncio.create_task(_kill_when_silent(process, note))
            try:
                code = await process.wait()
                match = self._find_fault(code, read_marked_match(note), read_last_match(note))
                log.warning("hosted_referee_ended", code=code, match=match)
                if package := read_imported_package(note):
                    self._unloaded.append(package)
                    why = "it hangs or ends the process at its import"
                    log.error("game_package_not_loaded", entry=package, why=why)
                elif match:
                    await _void_match(store, match)
            finally:
                await cancel_until_ended([watching])
                await process.stop(ORDERLY_END_S)

    def _find_fault(self, code: int, marked: str, last: str) -> str:
        """Return the match that has ended the process; empty if none is known to have.

        A step may break the process so that it ends only after the step, for example by closing files. One such end proves
        nothing about the last match; two in a row do. An end by a signal from outside, or in order, is no such end.
        """
        if marked or code in OTHER_ENDS:
            return marked
        before, self._suspect = self._suspect, last
        return last if last == before else ""


def hosted_config(config: Config, *, is_own: bool, max_memory: int) -> Config:
    """Return the configuration of the referee for games from outside: the same folder and certificate, and free ports.

    Args:
        config: The configuration of the server, with the URL of Redis.
        is_own: Whether the operator has asked for this referee alone. Then it has the ports and the address.
        max_memory: Its limit, in bytes.
    """
    if not is_own:
        ws_port = None if config.ws_port is None else 0
        config = replace(config, port=0, address="", ws_address="", ws_port=ws_port)
    return replace(
        config, roles=frozenset({"referee"}), games=GameChoice.HOSTED, max_memory=max_memory, http=None, health_port=None,
        metrics_port=None, house_bots=False, has_read_process=False, process_name="",
    )  # fmt: skip


async def _kill_when_silent(process: ChildProcess, note: Path) -> None:
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
            process.kill()
            return


async def _void_match(store: Store, match: str) -> None:
    """Mark the match: its next owner voids it without another look at its moves."""
    while True:
        with suppress(StoreUnavailable):
            await store.matches.ask_abort(match, GAME_FAULT_MARK)
            return
        await asyncio.sleep(STORE_PAUSE_S)
