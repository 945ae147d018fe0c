"""Leases of work that only one process does at a time, for example running the house bots."""

from __future__ import annotations

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call


class Leases:
    """The leases on one Redis.

    A lease names the process that does the work. A process can stall and continue after its lease, so the work
    must tolerate being done twice.
    """

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def take_lease(self, work: str, process: str, lease_ms: int) -> bool:
        """Acquires or extends the lease; returns False if another process has it."""
        return bool(
            await scripts.run_script(self._client, "lease_hold", [keys.work_lease(work)], process, lease_ms)
        )

    async def release_lease(self, work: str, process: str) -> bool:
        """Releases the lease, so that others need not wait for its end; returns False if another process has it."""
        return bool(await scripts.run_script(self._client, "lease_hold", [keys.work_lease(work)], process, 0))

    async def read_holder(self, work: str) -> tuple[str, int] | None:
        """Returns the holder and the remaining milliseconds; None if the lease is free."""
        process = await call(self._client, "GET", keys.work_lease(work))
        left_ms = await call(self._client, "PTTL", keys.work_lease(work))
        return (process.decode(), max(0, int(left_ms))) if process is not None else None
