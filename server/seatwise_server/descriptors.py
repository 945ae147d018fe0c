"""Limits the connections of clients: without a free file descriptor the server could neither reach Redis nor read
a file.
"""

from __future__ import annotations

import resource

WANTED = 65_536
"""The number of open files and connections that this process wants to be allowed."""
OWN_DESCRIPTORS = 1_024
"""The number of these that are reserved for the server itself: Redis, files, child processes."""


def connections_for_others() -> int:
    """Raises the limit of open files as far as the system allows, and returns how many connections clients may hold."""
    most = _raise_limit()
    return most - min(OWN_DESCRIPTORS, most // 2)


def _raise_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= WANTED:
        return max(soft, WANTED)
    most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):  # the system has another, lower limit
        return soft
    return most
