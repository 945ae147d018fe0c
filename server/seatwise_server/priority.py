"""Lets a process step back behind others when a machine is busy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_AUTOGROUP: Final = Path("/proc/self/autogroup")
"""Linux shares cores between sessions first, and heeds a niceness only within a session: sched(7), "The autogroup feature"."""


def lower_priority(niceness: int) -> bool:
    """Raises the niceness of this process to at least `niceness`, 0 to 19, also beside other sessions if it has its own.

    Returns False if the session could not be changed now. The kernel lets only one process do so every 0.1 s: try again later.
    """
    os.nice(max(0, niceness - os.getpriority(os.PRIO_PROCESS, 0)))
    if os.getsid(0) != os.getpid() or not _AUTOGROUP.exists():
        return True
    try:
        _AUTOGROUP.write_text(str(niceness))
    except OSError:
        return False
    return True
