"""`seatwise serve` as an operator starts it: several processes on one Redis, each on a core of its own if wanted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from seatwise_server.embedded import EmbeddedRedis

FRONT = ("--role", "lobby", "--role", "gateway", "--no-house-bots")
REFEREE = ("--role", "referee")
END_WITHIN_S = 20.0

_PINNED = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(slots=True)
class Server:
    """One process."""

    process: subprocess.Popen[str]
    address: str
    data: Path

    @property
    def pid(self) -> int:
        """Of the server."""
        return self.process.pid

    @property
    def token(self) -> str:
        """The admin's; a gateway has it."""
        return (self.data / "admin.token").read_text().strip()

    def end(self, number: signal.Signals) -> None:
        """Returns when it is gone."""
        self.process.send_signal(number)
        self.process.wait(END_WITHIN_S)


@dataclass(slots=True)
class Serving:
    """All processes on one Redis."""

    folder: Path
    redis: EmbeddedRedis
    servers: list[Server] = field(default_factory=list)

    def start(self, *args: str, core: int | None = None, port: int = 0) -> Server:
        """One more, up and listening."""
        data = self.folder / f"data-{len(self.servers)}"
        pinned = [sys.executable, "-c", _PINNED, str(core)] if core is not None else []
        serve = [
            sys.executable,
            "-m",
            "seatwise",
            "serve",
            "--port",
            str(port),
            "--data",
            str(data),
        ]
        http = [] if "--http-port" in args else ["--no-http"]
        where = [*http, "--redis", self.redis.url, "--log-level", "warning"]
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [*pinned, *serve, *where, *args], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert process.stdout
        said = process.stdout.readline()
        if not said.startswith("Seatwise listens on "):
            process.kill()
            raise RuntimeError((self.folder / "server.log").read_text()[-2000:])
        address = said.removeprefix("Seatwise listens on ").partition(". ")[0]
        self.servers.append(Server(process, address, data))
        return self.servers[-1]

    def stop(self) -> None:
        """Nothing of it is left."""
        for server in self.servers:
            server.process.kill()
            server.process.wait()
            assert server.process.stdout
            server.process.stdout.close()


@contextmanager
def serving(data: Path | None = None) -> Iterator[Serving]:
    """A Redis of its own; to be called from the main thread. All of it ends with the block."""
    with TemporaryDirectory(prefix="seatwise-bench-", dir=data) as name:
        folder = Path(name)
        with EmbeddedRedis(folder / "redis") as redis:
            found = Serving(folder, redis)
            try:
                yield found
            finally:
                found.stop()
