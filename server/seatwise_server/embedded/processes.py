"""Processes: one that ends with us, and one that outlived whoever started it."""

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

GRACE_S = 3.0
"""How long a process may take over each way of asking it to end."""

# The child asks the kernel to be ended with us. Done between fork and exec by a small program of its own:
# a preexec_fn would run Python in a fork of a process full of gRPC threads.
_LEASHED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def leashed(command: list[str]) -> list[str]:
    """The command, on Linux so that it gets SIGTERM when the thread that starts it ends."""
    if sys.platform != "linux" or not sys.executable:
        return command
    return [sys.executable, "-I", "-S", "-c", _LEASHED, str(os.getpid()), *command]


def end_process(pid: int, ask: Callable[[], object], is_alive: Callable[[], bool]) -> None:
    """Asks, then insists: a stopped process hears neither a question nor SIGTERM. Raises EmbeddedRedisError."""
    ways: tuple[Callable[[], object], ...] = (
        ask,
        lambda: _signal(pid, signal.SIGTERM),
        lambda: _signal(pid, signal.SIGKILL),
    )
    for end in ways:
        end()
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if not is_alive():
                return
            time.sleep(0.02)
    raise EmbeddedRedisError(
        f"A Redis left behind (process {pid}) does not end; end it by hand and start again."
    )


def command_line(pid: int) -> str:
    """What a process was started with, empty when there is none (or only its remains)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if sys.platform == "linux":
            return ""
    ask = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
