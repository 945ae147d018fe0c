"""Limits calls and streams that need no token, and so cannot be counted by caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatwise_server.refusal import Refusal


class StreamQuota:
    """A limit on the number of open streams of one kind in this process."""

    def __init__(self, most: int, doing: str, retry_after_s: int = 5) -> None:
        self._most = most
        self._doing = doing
        self._retry_after_s = retry_after_s
        self._count = 0

    @contextmanager
    def reserve_stream(self) -> Iterator[None]:
        """Counts one stream inside this block. Raises `Refusal` SERVER_FULL if the limit is reached."""
        if self._count >= self._most:
            message = f"{self._most} callers {self._doing} already; try again soon"
            raise Refusal("SERVER_FULL", message, retry_after=str(self._retry_after_s))
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
