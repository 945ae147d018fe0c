"""Leases of work that only one process does at a time, e.g. running the house's bots."""

from __future__ import annotations

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call


class Leases:
    """A lease says who is to do the work; what the work writes must bear a repeat, for a process may stall."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def take_lease(self, work: str, process: str, lease_ms: int) -> bool:
        """Takes or lengthens the lease; False when another process has it."""
        return bool(
            await scripts.run_script(self._client, "lease_hold", [keys.work_lease(work)], process, lease_ms)
        )

    async def release_lease(self, work: str, process: str) -> bool:
        """Gives it back, so that others need not wait for its end; False when another process has it."""
        return bool(await scripts.run_script(self._client, "lease_hold", [keys.work_lease(work)], process, 0))

    async def read_holder(self, work: str) -> tuple[str, int] | None:
        """Who has it and for how many milliseconds yet; None when nobody."""
        process = await call(self._client, "GET", keys.work_lease(work))
        left_ms = await call(self._client, "PTTL", keys.work_lease(work))
        return (process.decode(), max(0, int(left_ms))) if process is not None else None
