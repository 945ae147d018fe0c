"""How many connections others may hold: with all descriptors gone not even Redis could be reached, nor a file read."""

from __future__ import annotations

import resource

WANTED = 65_536
"""Open files and connections of this process."""
OWN = 1_024
"""Of these for ourselves: Redis, files, child processes."""


def connections_for_others() -> int:
    """What is left for those who call us, once the limit is raised as far as the system lets us."""
    most = _raised()
    return most - min(OWN, most // 2)


def _raised() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= WANTED:
        return max(soft, WANTED)
    most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):  # the system has another limit besides
        return soft
    return most
