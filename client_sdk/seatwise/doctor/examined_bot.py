"""The bot that is examined, as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from glob import glob
from typing import IO, TypeAlias

from seatwise.child_process import others_environment, resident_bytes
from seatwise.defaults import TOKEN_VARIABLE
from seatwise.errors import UsageError

# The kernel can send a signal to a child at the death of its parent, but not to what the child has started. So a program of its own
# waits for the end of a pipe that only this process can write to.
_WATCHER_PROGRAM = """
import os, signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.read(0, 1)
os.killpg(0, signal.SIGKILL)
"""


@contextmanager
def watched_group() -> Iterator[int]:
    """Yield the number of a new process group. All of it is killed at the end of the context, or of this process."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCHER_PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
    ) as watcher:  # fmt: skip
        yield watcher.pid


TOKEN = "doctor"
MOST_OUTPUT = 4000
"""How many characters of the bot's output are kept, from its end."""


BotStarter: TypeAlias = "Callable[[str], AbstractAsyncContextManager[ExaminedBot]]"
"""Starts a fresh bot that plays at this address, and stops it at the end of the context."""


def process_starter(command: Sequence[str]) -> BotStarter:
    """Return a starter for a command line, in which {address} and {token} are replaced."""
    if not any("{address}" in part for part in command):
        raise UsageError(
            "the command has no {address}: write it where the server's address belongs, as in "
            "seatwise doctor -- ./my-bot --address {address}"
        )

    @asynccontextmanager
    async def start(address: str) -> AsyncIterator[ExaminedBot]:
        filled = [part.replace("{address}", address).replace("{token}", TOKEN) for part in command]
        with tempfile.TemporaryFile() as output, watched_group() as group:
            bot = await _start_process(filled, group, output)
            try:
                yield bot
            finally:
                await bot.stop()

    return start


async def _start_process(command: Sequence[str], group: int, output: IO[bytes]) -> ExaminedBot:
    environment = {**others_environment(), TOKEN_VARIABLE: TOKEN}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
            process_group=group,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"{command[0]}: cannot be started: {error.strerror}") from None
    return ExaminedBot(process, group, output)


class ExaminedBot:
    """A bot as a process in a process group, so that nothing of it is left running."""

    def __init__(self, process: asyncio.subprocess.Process, group: int, output: IO[bytes]) -> None:
        self._process = process
        self._group = group
        self._output = output

    def read_output(self) -> str:
        """Return the end of what it has printed."""
        size = os.fstat(self._output.fileno()).st_size
        data = os.pread(self._output.fileno(), MOST_OUTPUT, max(0, size - MOST_OUTPUT))
        return data.decode(errors="replace")

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self._signal(signal.SIGINT)

    async def wait_for_end(self) -> str:
        """Return when it has ended, and how: "with exit code 1", or "by SIGSEGV"."""
        code = await self._process.wait()
        return f"with exit code {code}" if code >= 0 else f"by {name_signal(-code)}"

    @property
    def memory_bytes(self) -> int:
        """The memory that it holds; 0 where that is not known."""
        return resident_bytes(self._process.pid)

    def read_starved_s(self) -> float:
        """Return how long it could run and got no core, in seconds since its start; 0 where that is not known.

        Of several processes, as of a script that starts the bot, that of the one that waited most.
        """
        return max(map(_starved_s, processes_of(self._group)), default=0.0)

    async def stop(self) -> None:
        """Kill the process and all that it has started."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._group, number)


def processes_of(group: int) -> Iterator[int]:
    """Yield the numbers of the processes in a process group; nothing where there is no /proc."""
    for path in glob("/proc/[0-9]*"):
        number = int(path.rpartition("/")[2])
        with suppress(OSError):  # one that has ended meanwhile
            if os.getpgid(number) == group:
                yield number


def _starved_s(process: int) -> float:
    """Return how long the main thread of a process could run and waited for a core; 0 where the system does not count it."""
    try:
        with open(f"/proc/{process}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def name_signal(number: int) -> str:
    """Return the name of a signal, as in "SIGTERM"; "signal 64" for one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
