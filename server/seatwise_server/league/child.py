"""Runs a module as a process that ends when the process that started it ends, for whatever reason.

Usage: `python -m seatwise_server.league.child MODULE ARGUMENT ...`

The parent holds the other end of this process's standard input. When the parent ends, that end closes. No signal
does this on every system, and the one that Linux has follows a thread, not a process.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

END_PATIENCE_S = 5.0
"""Seconds between the request to end and the kill."""


def _end_with_parent(pipe: int) -> None:
    while os.read(pipe, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_PATIENCE_S)
    os.killpg(0, signal.SIGKILL)  # with all processes that it has started


def main() -> None:
    """Run the module named in the arguments. Its standard input is empty."""
    pipe = os.dup(sys.stdin.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
