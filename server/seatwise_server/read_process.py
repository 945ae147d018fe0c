"""The process that serves HTTP and reads without a token beside the matches: this module starts it, watches it and ends it.

Without an HTTP port the process is started when the first such read arrives.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Final, Protocol

import structlog

from seatwise.child_process import ORPHAN_END_S, ChildProcess, resident_bytes, run_repeatedly
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import HttpSettings, SpectatorDelay
from seatwise_server.counts import COUNTS
from seatwise_server.embedded.folder import socket_path
from seatwise_server.tls.tls_files import TlsFiles

READY: Final = b"ready\n"
"""The line that the process prints when it can answer."""

MOST_MEMORY_BYTES: Final = 512 * 2**20
MEMORY_CHECK_S: Final = 1.0
READS_START_S: Final = 30.0
"""The time in which the process must be ready. It is doubled after each start that takes longer, because a machine on which every
start was broken off would never serve a read."""
LONGEST_READS_START_S: Final = 240.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings of the process, as one line of JSON on its standard input."""

    redis_url: str
    data: str
    keep_records_s: int
    allow_loss: bool
    wait_replicas: int
    gone_for_good_s: float
    reads_per_second: float
    anonymous_reads_per_second: float
    registration: str
    oidc_issuer: str
    oidc_audience: str
    owner_requests_per_minute: float
    owner_matches_at_once: int
    owner_matches_a_day: int
    owner_watches: int
    tls: TlsFiles | None = None
    http: HttpSettings | None = None
    decks: tuple[str, ...] = ()
    default_deck: str = ""
    spectators: SpectatorDelay = SpectatorDelay.LIVE
    log_level: str = "info"


class Forwarder(Protocol):
    """The part of the server that sends reads to the process."""

    async def wait_until_wanted(self) -> None:
        """Returns when the first read has arrived."""
        ...

    def connect(self, socket: Path) -> None:
        """Begins to send reads to the process behind this socket."""
        ...

    async def disconnect(self) -> None:
        """Stops sending reads to the process."""
        ...


class ReadProcess:
    """Keeps the process running, and limits its memory."""

    def __init__(
        self, settings: ReadSettings, forwarder: Forwarder, http_port: socket.socket | None = None
    ) -> None:
        """The process also serves HTTP if it is given a port, on which connections wait until it is there."""
        self._settings = settings
        self._http_port = http_port
        self._is_ready = self._is_stopping = False
        self._patience_s = READS_START_S
        self.folder = Path(settings.data) / "reads"
        """The folder of its socket."""
        self._forwarder = forwarder
        self._supervising: asyncio.Task[None] | None = None
        self._process: ChildProcess | None = None
        self.pid: int | None = None
        """The id of the process that answers now; None while there is none."""

    def start(self) -> None:
        """Starts the process as soon as it is wanted, for HTTP at once; and again whenever it ends."""
        self._supervising = asyncio.create_task(self._supervise(), name="read process")

    async def stop(self) -> None:
        """Ends the process in order, and takes no more connections."""
        self._is_stopping = True
        if self._http_port:
            self._http_port.close()
        if self._process:
            await self._process.stop(ORPHAN_END_S)
        if self._supervising:
            await cancel_until_ended([self._supervising])

    def report_ready(self, is_ready: bool) -> None:
        """Tells the process whether this server takes bots: /readyz says so."""
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            self._send_ready()

    def _send_ready(self) -> None:
        if self.pid and self._process:
            self._process.send_line(self._is_ready)

    async def _supervise(self) -> None:
        if not self._http_port:
            await self._forwarder.wait_until_wanted()
        path = _socket_in(self.folder)
        try:
            await run_repeatedly(lambda: self._run_once(path))
        finally:
            path.unlink(missing_ok=True)

    async def _run_once(self, path: Path) -> None:
        process = watching = None
        try:
            process = self._process = await ChildProcess.start(
                "seatwise_server.read_server", stdout=PIPE,
                pass_fds=(self._http_port.fileno(),) if self._http_port else (),
            )  # fmt: skip
            watching = asyncio.create_task(_watch_memory(process))
            await self._connect_when_ready(process, path)
            await _count_refusals_of(process)
            code = await process.wait()
            if not self._is_stopping:
                log.warning("read_process_ended", code=code)
        except OSError as error:  # e.g. no more processes or descriptors
            log.warning("read_process_not_started", why=str(error))
        finally:
            self._process = self.pid = None
            await cancel_until_ended([watching] if watching else [])
            await asyncio.shield(self._forwarder.disconnect())
            if process:
                await process.stop(ORPHAN_END_S)

    async def _connect_when_ready(self, process: ChildProcess, path: Path) -> None:
        told = {"socket": path, "http_port": self._http_port and self._http_port.fileno()}
        process.send_line(told | asdict(self._settings))
        if await self._read_first_line(process) == READY:
            self._forwarder.connect(path)
            self.pid = process.pid
            self._send_ready()
            log.info("read_process_started", pid=process.pid)

    async def _read_first_line(self, process: ChildProcess) -> bytes:
        """Raises TimeoutError if the process takes too long; the next one has twice the time."""
        patience_s = self._patience_s
        try:
            line = await process.read_line(patience_s)
        except TimeoutError:
            self._patience_s = min(2 * patience_s, LONGEST_READS_START_S)
            raise TimeoutError(f"it was not ready within {patience_s:.0f} s") from None
        self._patience_s = READS_START_S
        return line


async def _count_refusals_of(process: ChildProcess) -> None:
    """Adds the refusals of the process to those of this server, until its standard output ends. Each line has new ones."""
    while line := await process.read_line():
        with suppress(ValueError):  # a line that is no report, e.g. of a library
            COUNTS.refusals.update(json.loads(line))


async def _watch_memory(process: ChildProcess) -> None:
    """Ends the process when it uses too much memory. The next one starts with little."""
    while True:
        await asyncio.sleep(MEMORY_CHECK_S)
        size = resident_bytes(process.pid)
        if size > MOST_MEMORY_BYTES:
            log.warning("read_process_too_large", bytes=size)
            process.terminate()
            return


def _socket_in(folder: Path) -> Path:
    """Returns the path of this server's socket, and removes sockets that killed servers have left."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.glob("*.sock"):
        if not _is_running(left.stem):
            left.unlink(missing_ok=True)
    return socket_path(folder, f"{os.getpid()}.sock")


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
