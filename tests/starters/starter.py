"""Builds a starter in a copy of the repository, and runs it against a server."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_S = 540.0
"""The first build on a machine fetches and compiles all libraries."""
SOON_S = 30.0


_WEBSOCKET_OF_NODE_20 = ("--experimental-websocket", "--no-warnings")
"""Newer ones have WebSocket without it, and know the option too."""


@dataclass(frozen=True, slots=True)
class Starter:
    """A bot of docs/starters/: what builds it, and how it is called."""

    name: str
    tools: tuple[str, ...]
    """Programs without which it cannot be built or run."""
    builds: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]
    scheme: str = "http"
    """How an address of its door begins: a WebSocket's with ws."""

    def address_at(self, target: str, *, is_tls: bool = False) -> str:
        """The address as the starter is given it, of host:port."""
        return f"{self.scheme}{'s' if is_tls else ''}://{target}"

    def trust(self, ca: Path) -> tuple[tuple[str, ...], dict[str, str]]:
        """The arguments and the environment with which it trusts the CAs in this file."""
        if self.name == "node":  # Node reads them before it runs anything
            return (), {"NODE_EXTRA_CA_CERTS": str(ca)}
        return ("--tls-ca", str(ca)), {}

    @property
    def missing(self) -> list[str]:
        """The tools that are not installed here."""
        return [tool for tool in self.tools if shutil.which(tool, path=_search_path()) is None]

    def build(self, folder: Path) -> Path:
        """Builds it in a copy of docs/starters/ and proto/; the folder in which it runs. Skips the test if a tool is missing."""
        if self.missing:
            pytest.skip(f"{' and '.join(self.missing)} not installed here, and {self.name} needs it")
        shutil.copytree(ROOT / "proto", folder / "proto")
        here = folder / "docs" / "starters" / self.name
        made = shutil.ignore_patterns("build", "gen", "node_modules", "target")
        shutil.copytree(ROOT / "docs" / "starters" / self.name, here, ignore=made)
        for command in self.builds:
            done = subprocess.run(
                command,
                cwd=here,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=BUILD_S,
                check=False,
            )
            assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return here


STARTERS = (
    Starter("node", ("node",), (), ("node", *_WEBSOCKET_OF_NODE_20, "main.mjs"), "ws"),
    Starter(
        "go",
        ("go", "buf"),
        (("buf", "generate"), ("go", "build", "-o", "starter", ".")),
        ("./starter",),
    ),
    Starter(
        "java",
        ("java", "mvn"),
        (("mvn", "-q", "-B", "package"),),
        ("java", "-jar", "target/starter.jar"),
    ),
    Starter("rust", ("cargo", "rustc"), (("cargo", "build", "--quiet"),), ("target/debug/starter",)),
    Starter(
        "cpp",
        ("cmake", "c++"),
        (("cmake", "-S", ".", "-B", "build"), ("cmake", "--build", "build")),
        ("build/starter",),
        "ws",
    ),
)


@dataclass(slots=True)
class RunningStarter:
    """A starter's process, and what it has logged."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def read_log(self) -> None:
        """Reads standard error to its end."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._news:
                self.lines.append(line.decode().rstrip())
                self._news.notify_all()

    async def said(self, pattern: str, within_s: float = SOON_S) -> re.Match[str]:
        """The first line in which the pattern is, now or later."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(lambda: re.search(pattern, "\n".join(self.lines)))
        found = re.search(pattern, "\n".join(self.lines))
        assert found
        return found

    async def ended(self, within_s: float = SOON_S) -> int:
        """Its exit code."""
        async with asyncio.timeout(within_s):
            return await self.process.wait()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)


@asynccontextmanager
async def running_starter(
    command: Sequence[str], folder: Path, token: str, *arguments: str, **variables: str
) -> AsyncIterator[RunningStarter]:
    """A starter's process, which is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        cwd=folder,
        env=_environment() | {"SEATWISE_TOKEN": token} | variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    starter = RunningStarter(process)
    reading = asyncio.create_task(starter.read_log())
    try:
        yield starter
    except BaseException:
        print("\n".join(starter.lines[-40:]), file=sys.stderr)
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


def _search_path() -> str:
    """Tools of this environment, e.g. buf, are found too."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def _environment() -> dict[str, str]:
    return os.environ | {"PATH": _search_path()}
