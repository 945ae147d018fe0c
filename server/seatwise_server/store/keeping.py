"""How long matches that are over, tokens, invites and guests are kept, and their removal.

If Redis expired them by itself, a clock that is set wrong would delete all of them at once. So they have no expiry. They are
removed by the *time of keeping*, which passes as Redis's clock does, but stands still while that clock leaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call_many

_LONGEST_STEP_MS = 86_400_000
"""A clock that has moved further since the last look has leapt, or no server has run. That time counts for nothing."""

_REMOVED_AT_ONCE = 500
"""The most matches, and the most other keys, that one message removes."""

_log = structlog.get_logger()


async def keep_key(client: RedisClient, key: str, keep_ms: int) -> None:
    """Schedules the removal of a key; a later call replaces the time."""
    await scripts.run_script(client, "kept_note", [keys.KEEPING_TIME, keys.KEPT_KEYS], key, keep_ms)


@dataclass(frozen=True, slots=True)
class Keeping:
    """Everything on one Redis that is kept for a while. Any number of processes may remove what is due."""

    client: RedisClient

    async def remove_due(self) -> int:
        """Lets the time of keeping pass, and removes what is due; returns how much that was. Call it every minute."""
        removed = 0
        while found := await self._remove_some():
            removed += found
        return removed

    async def _remove_some(self) -> int:
        named = [keys.KEEPING_TIME, keys.MATCH_EXPIRY, keys.KEPT_KEYS]
        args = (_LONGEST_STEP_MS, _REMOVED_AT_ONCE)
        clock_ms, leap_ms, matches, others = await scripts.run_script(
            self.client, "kept_advance", named, *args
        )
        if leap_ms:
            _log.warning(
                "redis_clock_leapt",
                by_s=leap_ms // 1000,
                why="or no server has run; what is kept stays as much longer",
            )
        return await self._remove_matches(
            [name.decode() for name in matches], clock_ms
        ) + await self._remove_keys(others)

    async def _remove_matches(self, matches: list[str], clock_ms: int) -> int:
        if not matches:
            return 0
        parts = (keys.match_fence, keys.match_meta, keys.match_record)
        calls = [("match_remove", [part(match) for part in parts], (clock_ms,)) for match in matches]
        [answers] = await scripts.run_phases(self.client, calls)
        gone = [match for match, answer in zip(matches, answers, strict=True) if answer]
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY, keys.MATCH_FACETS, keys.KEEPING_TIME]
        args = (keys.MATCH_SETS, *gone)
        return int(await scripts.run_script(self.client, "match_expire", named, *args))

    async def _remove_keys(self, found: list[bytes]) -> int:
        if found:
            await call_many(self.client, [("UNLINK", key) for key in found])
            await call_many(self.client, [("ZREM", keys.KEPT_KEYS, *found)])
        return len(found)
