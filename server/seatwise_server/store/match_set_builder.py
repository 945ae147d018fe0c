"""Builds the sets by which lists of matches are filtered, for stores that processes of an older version have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import structlog

from seatwise_server.store import keys
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.leases import Leases
from seatwise_server.store.match_filters import OPEN, SETS_VERSION
from seatwise_server.store.match_traces import ListCursor, MatchTraceReader
from seatwise_server.store.matches import Matches
from seatwise_server.store.redis.client import RedisClient, call

BUILD_LEASE = "match-sets"
"""The lease of this work, so that only one process does it at a time."""

BUILD_CHECK_S = 60.0
BUILD_LEASE_MS = 60_000
"""If a build takes longer, two processes may build at once, with the same result."""

_AT_ONCE = 50
_BUILD_PAUSE_S = 0.02
"""The pause between two steps, in seconds, because matches are played in the same process."""

log = structlog.get_logger()


class MatchSetBuilder:
    """Builds the sets while matches are played. Every step may be repeated; after a crash the next run continues."""

    def __init__(self, client: RedisClient, matches: Matches, leases: Leases, process: str) -> None:
        self._client = client
        self._matches = matches
        self._traces = MatchTraceReader(client, matches)
        self._leases = leases
        self._process = process

    async def keep_built(self) -> None:
        """Checks every minute whether a process of an older version has listed matches. Runs until cancelled."""
        while True:
            try:
                if not await self._matches.has_complete_sets():
                    await self._build_alone()
            except StoreUnavailable:
                log.debug("match_filters_paused")
            await asyncio.sleep(BUILD_CHECK_S)

    async def _build_alone(self) -> None:
        if await self._leases.take_lease(BUILD_LEASE, self._process, BUILD_LEASE_MS):
            count = await self.build_sets()
            log.info("match_filters_built", matches=count)
            await self._leases.release_lease(BUILD_LEASE, self._process)

    async def build_sets(self) -> int:
        """Makes all sets agree with the stored matches, and returns the number of matches that were added."""
        count = 0
        async for names in self._pages(keys.MATCH_INDEX):
            count += await self._add_missing(names)
        async for names in self._pages(keys.match_set(f"state/{OPEN}")):
            await self._sort_those_over(names)
        await self._remove_strays()
        await call(self._client, "SET", keys.MATCH_SETS_VERSION, SETS_VERSION)
        return count

    async def _add_missing(self, names: list[str]) -> int:
        facets = await call(self._client, "HMGET", keys.MATCH_FACETS, *names)
        missing = [name for name, its in zip(names, facets, strict=True) if its is None]
        metas = await self._matches.read_metas(missing)
        await asyncio.gather(*map(self._traces.relist, metas))
        for gone in set(missing).difference(meta.match for meta in metas):
            await self._traces.unlist(gone)
        return len(metas)

    async def _sort_those_over(self, names: list[str]) -> None:
        """Sorts matches that a referee of an older version has ended."""
        for meta in await self._matches.read_metas(names):
            if meta.is_over:
                await self._matches.sort_match(meta.match, meta.state)

    async def _remove_strays(self) -> None:
        """Removes entries of matches that a process of an older version has removed from the index only."""
        cursor = 0
        while True:
            cursor, names = await self._traces.scan_facets(cursor, _AT_ONCE)
            for name in await self._traces.unlisted_among(names):
                await self._traces.unlist(name)
            if not cursor:
                return

    async def _pages(self, key: str) -> AsyncIterator[list[str]]:
        place = ListCursor(0, "")
        while found := await self._traces.page_of_set(key, place, _AT_ONCE):
            place = found[-1]
            yield [each.match for each in found]
            await asyncio.sleep(_BUILD_PAUSE_S)
