"""`seatwise serve` as a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness.house import House
from harness.table import Admin
from harness.wire import SOON_S

SEVERAL_PROCESSES_S = 240.0
"""For a command that starts or stops several processes, one after the other."""

_SERVE = """
import argparse, sys
from seatwise_server.cli.serve import COMMAND
parser = argparse.ArgumentParser()
COMMAND.configure(parser)
sys.exit(COMMAND.run(parser.parse_args()))
"""


class ServerProcess:
    """`seatwise serve` as a process of its own, on a data folder that outlives it."""

    before = ""
    """Python that is run before it: for a test that wants another version of something."""
    env: dict[str, str] | None = None
    """The environment of the process, if it is not that of the test: for another version of everything."""

    def __init__(self, data: Path, *args: str) -> None:
        self.data = data
        self.address = ""
        """Kept over restarts: bots come back to where they were."""
        self.ws_address = ""
        """That of its WebSockets, if its log tells of it; kept over restarts too."""
        self.http_address = ""
        """That of its HTTP port, if its log tells of it; kept over restarts too."""
        self.args = args
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Of the server."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def redis_pid(self) -> int:
        """Of its private Redis."""
        return int((self.data / "redis" / "redis.pid").read_text().split()[0])

    @property
    def token(self) -> str:
        """The admin's."""
        return (self.data / "admin.token").read_text().strip()

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it has logged, over all its lives."""
        lines = (self.data / "server.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def last_words(self) -> str:
        """The last thing it said that was no log line."""
        lines = (self.data / "server.log").read_text().splitlines()
        return next((line for line in reversed(lines) if not line.startswith("{")), "")

    async def start(self) -> None:
        """Returns when it listens, on the port that it had before."""
        host, _, port = self.address.rpartition("://")[2].rpartition(":")
        where = ["--host", host or "127.0.0.1", "--port", port or "0", "--data", str(self.data)]
        if self.ws_address:
            where += ["--ws-port", self.ws_address.rpartition(":")[2]]
        http = [] if "--http-port" in self.args else ["--no-http"]
        kept = ["--http-port", self.http_address.rpartition(":")[2]] if self.http_address else []
        house = [] if "--guests" in self.args else ["--no-house-bots"]  # guests play against house bots
        options = [*where, *house, *http, *self.args, *kept]
        command = self.command_with(options)
        with (self.data / "server.log").open("ab") as log:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=pipe, stderr=log, env=self.env
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(SEVERAL_PROCESSES_S):
            said = (await self._process.stdout.readline()).decode()
        if not said.startswith("Seatwise listens on "):
            raise AssertionError(f"the server did not start: {self.last_words}")
        self.address = said.removeprefix("Seatwise listens on ").partition(". ")[0]
        started = [line for line in self.log if line["event"] == "server_started"]
        told = started[-1] if started else {}
        self.ws_address = told.get("ws_address", "")
        self.http_address = told.get("http_address", "")

    def command_with(self, options: list[str]) -> list[str]:
        """The command that starts the server with these options of `seatwise serve`."""
        return [sys.executable, "-c", self.before + _SERVE, *options]

    def signal(self, number: signal.Signals) -> None:
        """To the server."""
        assert self._process is not None
        self._process.send_signal(number)

    def signal_redis(self, number: signal.Signals) -> None:
        """To its private Redis."""
        os.kill(self.redis_pid, number)

    async def ended(self, within_s: float = SOON_S) -> int:
        """Its exit code; it must end soon."""
        assert self._process is not None
        async with asyncio.timeout(within_s):
            return await self._process.wait()

    async def kill(self) -> None:
        """As by `kill -9`."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def stop(self) -> None:
        """In order; and if that takes too long, not. Nothing of it is left running."""
        if self._process is not None and self._process.returncode is None:
            self.signal(signal.SIGTERM)
            try:
                await self.ended(SEVERAL_PROCESSES_S)
            except TimeoutError:
                await self.kill()
                raise
        await until(lambda: not processes_with(str(self.data)))


def processes_with(text: str) -> list[int]:
    """Processes with this text on their command line; not those that are only remains."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


async def until(look: Callable[[], Any], within_s: float = SOON_S) -> Any:
    """What `look` finds, looking again every few milliseconds: for what nobody tells us of."""
    async with asyncio.timeout(within_s):
        while not (found := look()):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)
    return found


@asynccontextmanager
async def server_process(
    *args: str, log_level: str = "debug", where: str | None = None
) -> AsyncIterator[tuple[ServerProcess, House]]:
    """`seatwise serve` in a process of its own, stopped at the end with all that it started."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=where) as folder:
        process = ServerProcess(Path(folder), "--log-level", log_level, *args)
        try:
            await process.start()
            house = House(process.address, Admin(process.address, process.token), process.ws_address)
            yield process, house
            await house.drop_all()
            await house.admin.drop()
        finally:
            await process.stop()
