"""Child processes: started so that they end with this one from their first instruction on, told things, ended, and kept running.

A child knows its parent by a pipe, its standard input, which closes when the parent ends, for whatever reason. A thread that is
started before any code of the child's own waits for that. The pipe also carries what the parent tells the child, one JSON value a
line. On Linux the kernel sends SIGTERM too when the thread of the parent ends that has started the child: it does not wait for
Python to start.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

ORPHAN_END_S: Final = 4.0
"""A child that handles SIGTERM has so many seconds to end in order after its parent has ended. It holds its ports so long."""
FIRST_START_PAUSE_S: Final = 0.2
LONGEST_START_PAUSE_S: Final = 10.0
STEADY_S: Final = 30.0
"""A process that has lived so long is started again after the first pause."""
LONGEST_CHILD_LINE: Final = 2**16

# The program that runs between fork and exec on Linux. A preexec_fn would run Python in a fork of a process full of threads.
_DEATH_SIGNAL_PROGRAM: Final = """
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
except (ImportError, MemoryError, OSError, AttributeError):
    pass  # a system without it, or one that forbids what ctypes needs: the pipe is enough
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
_RUN_CHILD: Final = "from seatwise.child_process import run_child; run_child()"


def with_death_signal(command: Sequence[str]) -> list[str]:
    """Return the command so that, on Linux, its process gets SIGTERM when the thread that starts it ends."""
    if sys.platform != "linux" or not sys.executable:
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _DEATH_SIGNAL_PROGRAM, str(os.getpid()), *command]


FACTS_VARIABLE: Final = "SEATWISE_HOSTED_GAMES"
"""The environment variable with the facts of games from outside as JSON, so that no child imports all packages to learn them."""


def others_environment() -> dict[str, str]:
    """Return the environment for code of others: without the variables of this program and of its traces, which may be secrets."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SEATWISE_", "OTEL_")) or name == FACTS_VARIABLE
    }


def _child_options(
    module: str, arguments: Sequence[str], environment: Mapping[str, str] | None, *, runs_others: bool
) -> tuple[list[str], dict[str, Any]]:
    """Return the command of a child, and the options that each way to start it has.

    A child that runs code of others gets no signal when this process ends: it would end before its thread has killed what that code
    has started.
    """
    command = [sys.executable, "-c", _RUN_CHILD, module, *arguments]
    inherited = others_environment() if runs_others else dict(os.environ)
    return (
        command if runs_others else with_death_signal(command),
        # in a session of its own, so that Ctrl-C reaches this process alone, which ends the others
        {"stdin": subprocess.PIPE, "env": inherited | dict(environment or {}), "start_new_session": True},
    )


def open_child(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None, runs_others: bool = False,
    stdout: int | IO[Any] | None = None, stderr: int | IO[Any] | None = None,
) -> subprocess.Popen[str]:  # fmt: skip
    """Start a module as a process, for callers without an event loop. See `ChildProcess.start`."""
    command, options = _child_options(module, arguments, environment, runs_others=runs_others)
    return subprocess.Popen(command, text=True, stdout=stdout, stderr=stderr, **options)


def kill_group(pid: int) -> None:
    """Kill a child that leads its own session, with all processes that it has started there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def resident_bytes(pid: int | str = "self") -> int:
    """Return the memory of a process in bytes; 0 where the system has no /proc, or no such process."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


class ChildProcess:
    """A process that ends when this one ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(
        cls, module: str, *arguments: str, environment: Mapping[str, str] | None = None, runs_others: bool = False,
        stdout: int | IO[Any] | None = None, stderr: int | IO[Any] | None = None, pass_fds: Sequence[int] = (),
        limit: int = LONGEST_CHILD_LINE,
    ) -> ChildProcess:  # fmt: skip
        """Start a module as a process. Raises OSError.

        Args:
            module: The module, as for `python -m`.
            arguments: Its arguments, which everybody on this machine can see.
            environment: Variables in addition to those of this process.
            runs_others: Whether it runs code of others. Then it inherits no variable of this program but the facts of games.
            stdout: As for `subprocess`; PIPE to read its lines.
            stderr: As for `subprocess`.
            pass_fds: The descriptors that it gets.
            limit: The longest line that can be read, in bytes.
        """
        command, options = _child_options(module, arguments, environment, runs_others=runs_others)
        return cls(
            await asyncio.create_subprocess_exec(
                *command, stdout=stdout, stderr=stderr, pass_fds=pass_fds, limit=limit, **options
            )
        )

    @property
    def code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.returncode

    def send_line(self, told: object) -> None:
        """Tell the process something. Nothing happens if it has ended."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(told, default=str).encode() + b"\n")

    async def drain(self) -> None:
        """Wait until the process has read most of what it was told. Raises OSError if it has ended."""
        assert self._process.stdin
        await self._process.stdin.drain()

    async def read_line(self, timeout_s: float | None = None) -> bytes:
        """Return the next line that it prints; at its end the rest, which may be empty. Raises TimeoutError and ValueError."""
        assert self._process.stdout
        async with asyncio.timeout(timeout_s):
            return await self._process.stdout.readline()

    async def wait(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        return await self._process.wait()

    def terminate(self) -> None:
        """Ask the process to end. Nothing happens if it has ended."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process, and all that it has started."""
        kill_group(self.pid)

    async def stop(self, patience_s: float = ORPHAN_END_S) -> None:
        """Ask the process to end, and kill it if that takes longer than `patience_s` seconds. All that it has started ends with it."""
        try:
            if self.code is None:
                self.terminate()
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience_s):
                        await self.wait()
        finally:
            self.kill()
            await self.wait()


async def run_repeatedly(run_once: Callable[[], Awaitable[object]]) -> None:
    """Call `run_once`, which starts a process and returns at its end, again and again until cancelled.

    The pauses double up to `LONGEST_START_PAUSE_S`, and begin again after a process that has lived for `STEADY_S`.
    """
    loop, pause_s = asyncio.get_running_loop(), FIRST_START_PAUSE_S
    while True:
        began = loop.time()
        await run_once()
        if loop.time() - began >= STEADY_S:
            pause_s = FIRST_START_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_START_PAUSE_S)


# In the child

_told: Final[SimpleQueue[str]] = SimpleQueue()


def run_child() -> None:
    """Run the module that the arguments name, as `_child_options` writes them, until it ends or the parent does."""
    pipe = os.dup(sys.stdin.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    threading.Thread(target=_follow_parent, args=(pipe,), daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _follow_parent(pipe: int) -> None:
    with open(pipe, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            _told.put(line)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_END_S)
    os.killpg(0, signal.SIGKILL)  # with all processes that it has started


def told_lines() -> Iterator[Any]:
    """Yield what the parent tells this process. It does not end: the process ends with the parent."""
    while True:
        yield json.loads(_told.get())


_AUTOGROUP: Final = Path("/proc/self/autogroup")
"""Linux shares cores between sessions first, and heeds a niceness only within a session: sched(7), "The autogroup feature"."""


def lower_priority(niceness: int) -> bool:
    """Raise the niceness of this process to at least `niceness`, 0 to 19, also beside other sessions if it has its own.

    Return False if the session could not be changed now. The kernel lets only one process do so every 0.1 s: try again later.
    """
    os.nice(max(0, niceness - os.getpriority(os.PRIO_PROCESS, 0)))
    if os.getsid(0) != os.getpid() or not _AUTOGROUP.exists():
        return True
    try:
        _AUTOGROUP.write_text(str(niceness))
    except OSError:
        return False
    return True
