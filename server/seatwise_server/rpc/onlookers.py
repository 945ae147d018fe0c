"""Streams that stay open for anybody: there is no token to count them by, so there are only so many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatwise_server.refusal import Refusal


class Onlookers:
    """Those of one kind in this process."""

    def __init__(self, most: int, doing: str) -> None:
        self._most = most
        self._doing = doing
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """As long as this lasts; `Refusal` SERVER_FULL when there are as many as there may be."""
        if self._count >= self._most:
            raise Refusal("SERVER_FULL", f"{self._most} {self._doing} here; try again soon", retry_after="5")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
