"""Finds the primary that sentinels watch, with one search for all connections that ask at the same time."""

from __future__ import annotations

import asyncio

from redis.asyncio.sentinel import Sentinel


class SharedSentinel(Sentinel):
    """redis-py's search for the primary of one service, shared by all that wait for its answer.

    redis-py moves the sentinel that answered to the head of its list. When many connections search at once, as
    after every failover, these moves interfere. One sentinel is then in the list twice, and another is never
    asked again and never closed. So only one search runs at a time.
    """

    _search: asyncio.Task[tuple[str, int]] | None = None

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Returns host and port of the primary. Raises redis-py's MasterNotFoundError."""
        if self._search is None or self._search.done():
            self._search = asyncio.create_task(super().discover_master(service_name))
            self._search.add_done_callback(_note_error)
        return await asyncio.shield(self._search)  # the search continues for the others

    async def aclose(self) -> None:
        """End the search that is under way, and close the connections to all sentinels."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])
        for sentinel in self.sentinels:
            await sentinel.aclose()


def _note_error(search: asyncio.Task[tuple[str, int]]) -> None:
    """Keep asyncio from reporting an error that nobody waits for any more."""
    if not search.cancelled():
        search.exception()
