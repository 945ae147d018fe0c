"""Asks Redis to rewrite its append-only files, so that nothing is left in them of what was deleted."""

from __future__ import annotations

import asyncio

import structlog
from redis.exceptions import RedisError, ResponseError

from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.address import NodeAddress
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.durability import NODE_ANSWER_S, read_facts, read_setting
from seatwise_server.store.redis.topology import open_for_commands

REWRITES_NOTHING = "0"
"""The percentage of growth with which an operator stops rewriting while the files are copied."""

log = structlog.get_logger()


async def rewrite_files(client: RedisClient) -> bool:
    """Asks every node, primaries and replicas. Returns whether all have begun; the log names those that have not.

    A node does not begin while its operator has turned rewriting off, which is how a backup is made.
    """
    try:
        facts = await read_facts(client)
    except (RedisError, OSError, StoreUnavailable) as error:
        log.warning("redis_files_not_rewritten", why=str(error))
        return False
    begun = await asyncio.gather(*(_rewrite_node(client, node.address) for node in facts.nodes))
    return all(begun) and not facts.unreachable


async def _rewrite_node(client: RedisClient, address: NodeAddress) -> bool:
    try:
        async with (
            asyncio.timeout(NODE_ANSWER_S),
            open_for_commands(client.routes.new_connection(address)) as ask,
        ):
            if await read_setting(ask, "auto-aof-rewrite-percentage") == REWRITES_NOTHING:
                raise ResponseError("auto-aof-rewrite-percentage is 0")
            await ask("BGREWRITEAOF")
    except (RedisError, OSError) as error:
        log.warning("redis_files_not_rewritten", node=str(address), why=str(error))
        return False
    return True
