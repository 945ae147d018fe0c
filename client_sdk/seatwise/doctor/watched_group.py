"""A group of processes that ends when this process does, in whichever way this process ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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


__all__ = ["watched_group"]
