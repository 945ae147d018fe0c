"""The process that serves HTTP and reads without a token beside the matches: a gateway at a UNIX socket, with a low priority.

Without an HTTP port the process is started when the first such read arrives.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from seatwise.child_process import ORPHAN_END_S
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import Config
from seatwise_server.counts import COUNTS
from seatwise_server.embedded import socket_path
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.supervisor import Facts, ProcessPlan, SupervisedProcess

MOST_MEMORY_BYTES: Final = 512 * 2**20
READS_NICENESS: Final = 10
"""The niceness of the process, so that matches have priority."""

log = structlog.get_logger()


class ReadProcess:
    """Keeps the process running, and tells it whether this server is ready."""

    def __init__(
        self,
        config: Config,
        forwarder: ReadForwarder,
        on_shortage: Callable[[int], None],
        http_port: socket.socket | None = None,
    ) -> None:
        """The process also serves HTTP if it is given a port, on which connections wait until it is there.

        `config` is that of this server, with the URL of its Redis. `on_shortage` is told for how many ms the process had no
        descriptor left, so that no bot could connect by HTTP.
        """
        self._on_shortage = on_shortage
        self._config = config
        self._http_port = http_port
        self._is_ready = False
        self.folder = config.data / "reads"
        """The folder of its socket."""
        self._forwarder = forwarder
        self._supervising: asyncio.Task[None] | None = None
        self._process: SupervisedProcess | None = None
        self.pid: int | None = None
        """The id of the process that answers now; None while there is none."""

    def start(self) -> None:
        """Start the process as soon as it is wanted, for HTTP at once; and again whenever it ends."""
        self._supervising = asyncio.create_task(self._supervise(), name="read process")

    async def stop(self) -> None:
        """End the process in order, and take no more connections."""
        if self._http_port:
            self._http_port.close()
        if self._supervising:
            await cancel_until_ended([self._supervising])
        if self._process:
            await self._process.stop_process(ORPHAN_END_S)
            await self._disconnect("")

    def report_ready(self, is_ready: bool) -> None:
        """Tell the process whether this server takes bots: /readyz says so."""
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            if self.pid and self._process:
                self._process.send_line(is_ready)

    async def _supervise(self) -> None:
        if not self._http_port:
            await self._forwarder.wait_until_wanted()
        path = _socket_in(self.folder)
        try:
            self._process = SupervisedProcess(
                self._plan(path), self._disconnect, self._connect, self._add_counts
            )
            await self._process.keep_running()
        finally:
            path.unlink(missing_ok=True)

    def _plan(self, path: Path) -> ProcessPlan:
        descriptor = self._http_port.fileno() if self._http_port else None
        http = self._config.http if descriptor is not None else None
        config = replace(
            self._config, roles=frozenset({"gateway"}), socket=path, http=http and replace(http, descriptor=descriptor),
            has_read_process=False, ws_port=None, health_port=None, metrics_port=None, max_memory=MOST_MEMORY_BYTES,
            niceness=READS_NICENESS,
        )  # fmt: skip
        return ProcessPlan("read_server", config, () if descriptor is None else (descriptor,))

    def _connect(self, _: Facts) -> None:
        assert self._process
        assert self._process.plan.config.socket
        self._forwarder.connect(self._process.plan.config.socket)
        self.pid = self._process.pid
        self._process.send_line(self._is_ready)
        log.info("read_process_started", pid=self.pid)

    def _add_counts(self, counted: Mapping[str, Any]) -> None:
        """Add what the process has counted to the metrics of this server. Each line has what is new."""
        COUNTS.refusals.update(counted["refusals"])
        COUNTS.connections_short_s["http"] += counted["short_s"]["http"]
        if shut_s := counted["short_s"]["bots"]:
            self._on_shortage(int(shut_s * 1000))

    async def _disconnect(self, _: str) -> None:
        self.pid = None
        await asyncio.shield(self._forwarder.disconnect())


def _socket_in(folder: Path) -> Path:
    """Return the path of this server's socket, and remove sockets that killed servers have left."""
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
