"""Redis's own clock, the only one that all processes share."""

from __future__ import annotations

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient


async def now_ms(client: RedisClient) -> int:
    """Returns milliseconds on Redis's clock; in a cluster on the clock of the node that has the heartbeats."""
    return int(await scripts.run_script(client, "now", [keys.PROCESS_INDEX]))
