"""Limits streams that are open to everybody: there is no token to count them by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatwise_server.refusal import Refusal


class StreamQuota:
    """At most so many streams of one kind in this process."""

    def __init__(self, most: int, doing: str) -> None:
        self._most = most
        self._doing = doing
        self._count = 0

    @contextmanager
    def reserve_stream(self) -> Iterator[None]:
        """Counts one stream inside this block; `Refusal` SERVER_FULL where there are as many as there may be."""
        if self._count >= self._most:
            raise Refusal("SERVER_FULL", f"{self._most} {self._doing} here; try again soon", retry_after="5")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
