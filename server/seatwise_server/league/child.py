"""Runs a module as a process that does not outlive the one that started it, however that one ends.

    python -m seatwise_server.league.child MODULE ARGUMENT ...

The parent holds the other end of our standard input. When it is gone, killed or not, that end closes.
No signal of the system does this everywhere, and the one that Linux has follows a thread.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

END_PATIENCE_S = 5.0
"""From the request to end until the process is killed."""


def _end_with_parent(pipe: int) -> None:
    while os.read(pipe, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_PATIENCE_S)
    os.killpg(0, signal.SIGKILL)  # and whatever it has started


def main() -> None:
    """Become the module; what it reads from standard input is empty."""
    pipe = os.dup(sys.stdin.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
