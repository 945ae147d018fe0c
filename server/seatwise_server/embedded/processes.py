"""Child processes that end with this one, and the end of a process that outlived its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from seatwise_server.embedded.errors import EmbeddedRedisError

PROCESS_END_S = 3.0
"""Seconds that a process may take after each way of asking it to end."""

# The child asks the kernel to end it with its parent. A small program of its own does so between fork and exec: a
# preexec_fn would run Python in a fork of a process that is full of gRPC threads.
_DEATH_SIGNAL_PROGRAM = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def with_death_signal(command: list[str]) -> list[str]:
    """Returns the command so that, on Linux, its process gets SIGTERM when the thread that starts it ends."""
    if sys.platform != "linux" or not sys.executable:
        return command
    return [sys.executable, "-I", "-S", "-c", _DEATH_SIGNAL_PROGRAM, str(os.getpid()), *command]


def end_process(pid: int, ask: Callable[[], object], is_alive: Callable[[], bool]) -> None:
    """Asks a process to end, then sends SIGTERM, then SIGKILL.

    All three, because a stopped process reacts neither to a request nor to SIGTERM. Raises EmbeddedRedisError if it
    still runs.
    """
    ways: tuple[Callable[[], object], ...] = (
        ask,
        lambda: _send_signal(pid, signal.SIGTERM),
        lambda: _send_signal(pid, signal.SIGKILL),
    )
    for end in ways:
        end()
        deadline = time.monotonic() + PROCESS_END_S
        while time.monotonic() < deadline:
            if not is_alive():
                return
            time.sleep(0.02)
    raise EmbeddedRedisError(
        f"The Redis of an earlier server (process {pid}) does not end; kill it and start again."
    )


def command_line(pid: int) -> str:
    """Returns the command line of a process; empty if there is none, or if it is a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if sys.platform == "linux":
            return ""
    ask = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout


def _send_signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
