"""The client of a Redis Cluster, and the choice of a client by the URL.

It uses redis-py's client and works around three faults of it, which occur in failovers and while slots move.
redis-py sends ASKING and its command on two connections. It closes connections that others are using. It
repeats a call that failed, but not the first read of the topology.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.cluster import ClusterNode, PipelineCommand, RedisCluster
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.address import (
    THE_PRIMARY,
    ClusterTopology,
    RedisMode,
    RedisTarget,
    parse_target,
)
from seatwise_server.store.redis.client import (
    BRIDGED_S,
    FAILOVER_REPLY_TIMEOUT_S,
    MOST_COMMANDS_AT_ONCE,
    REPLY_TIMEOUT_S,
    Argument,
    Command,
    RedisClient,
    SingleClient,
    client_limits,
    read_channels,
    retry_through_outage,
)


class ClusterClient:
    """A client of a cluster; it sends every command to the node that has the command's key."""

    mode = RedisMode.CLUSTER

    def __init__(self, target: RedisTarget, bridge_s: float) -> None:
        self.routes = ClusterTopology(target.hosts, target.options)
        self._target = target
        self._quick = _new_cluster(target, FAILOVER_REPLY_TIMEOUT_S)
        self._patient = _new_cluster(target, REPLY_TIMEOUT_S)
        """For commands that wait in Redis; it has connections of its own."""
        self._bridge_s = bridge_s
        self._turns = asyncio.Semaphore(MOST_COMMANDS_AT_ONCE)
        """Above its limit redis-py raises instead of waiting."""

    async def call(self, *command: Argument) -> Any:
        async with self._turns:
            return await retry_through_outage(lambda: _execute_command(self._quick, command), self._bridge_s)

    async def call_blocking(self, *command: Argument) -> Any:
        return await retry_through_outage(lambda: _execute_command(self._patient, command), self._bridge_s)

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """See `RedisClient`. Commands of one slot go one after the other, different slots at the same time."""
        by_slot: dict[int, list[int]] = defaultdict(list)
        for number, command in enumerate(commands):
            by_slot[_slot_of(command)].append(number)
        answers: list[Any] = [None] * len(commands)

        async def ask(numbers: list[int]) -> None:
            for number in numbers:
                answers[number] = await self.call(*commands[number])

        outcomes = await asyncio.gather(*map(ask, by_slot.values()), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        return answers

    async def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        """See `RedisClient`. A notice that is published at any node of a cluster reaches every node."""
        try:
            spans = await self.routes.read_spans()
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"no notices: {error}") from error
        node = spans[0].primary
        options = self._target.options | client_limits(REPLY_TIMEOUT_S)
        redis = Redis.from_pool(ConnectionPool(host=node.host, port=node.port, **options))
        notices = read_channels(redis, channels)
        try:
            async for notice in notices:
                yield notice
        finally:
            await notices.aclose()
            await redis.aclose()

    async def close_connections(self) -> None:
        """See `RedisClient`. After a failure redis-py's own method would leave connections open."""
        for cluster in (self._quick, self._patient):
            await cluster.aclose()
            for nodes in ("nodes_cache", "startup_nodes"):
                await cluster.nodes_manager.aclose(nodes)


def _new_cluster(target: RedisTarget, timeout_s: float) -> RedisCluster:
    options = {name: it for name, it in target.options.items() if name not in ("connection_class", "db")}
    return RedisCluster(
        startup_nodes=[ClusterNode(*address) for address in target.hosts],
        ssl="connection_class" in target.options,
        require_full_coverage=False,  # the other slots stay usable while one shard fails over
        reinitialize_steps=0,  # a new read of the topology breaks every connection; MOVED says what has changed
        **options,
        **client_limits(timeout_s),
    )


async def _execute_command(cluster: RedisCluster, command: Command) -> Any:
    try:
        await cluster.initialize()
        return await cluster.execute_command(*command)
    except AttributeError as error:  # redis-py closed the connection while the command used it
        raise RedisConnectionError("redis-py has hung up") from error
    except ClusterError as error:
        if not str(error).startswith("TTL exhausted"):
            raise
        return await _execute_where_it_moves(cluster, command)


async def _execute_where_it_moves(cluster: RedisCluster, command: Command) -> Any:
    """Run a command whose slot is moving: the old node names the new one, which gets ASKING on the same connection."""
    slot = _slot_of(command)
    try:
        return await cluster.nodes_manager.get_node_from_slot(slot).execute_command(*command)
    except AskError as error:
        node = cluster.get_node(error.host, error.port)
        if node is None:
            raise TryAgainError(f"slot {slot} moves to a node that is not known yet") from error
    pair = [PipelineCommand(0, "ASKING"), PipelineCommand(1, *command)]
    await node.execute_pipeline(pair)
    if isinstance(pair[1].result, Exception):
        raise pair[1].result
    return pair[1].result


def _slot_of(command: Command) -> int:
    """Return the slot of the command's first key, for the commands of this store."""
    match command[0]:
        case "EVALSHA" | "EVAL":
            key = command[3]
        case "XREAD" | "XREADGROUP":
            key = command[command.index("STREAMS") + 1]
        case _:
            key = command[1]
    return int(key_slot(key if isinstance(key, bytes) else str(key).encode()))


def new_client(url: str, bridge_s: float = BRIDGED_S) -> RedisClient:
    """Return a client for the Redis behind the URL; it connects with its first command. `address` lists the kinds of URL.

    It retries through an outage of up to `bridge_s` seconds. Raises ValueError for a URL of another kind, and for unknown options.
    """
    target = parse_target(url)
    try:
        match target.mode:
            case RedisMode.STANDALONE:
                client: RedisClient = SingleClient.connect_to(target, bridge_s)
            case RedisMode.SENTINEL:
                client = SingleClient.connect_by_sentinels(target, bridge_s)
            case RedisMode.CLUSTER:
                client = ClusterClient(target, bridge_s)
        for address in (*target.hosts, *((THE_PRIMARY,) if not target.hosts else ())):
            client.routes.new_connection(address)
    except TypeError as error:
        raise ValueError(f"An option of the Redis URL is unknown: {error}") from error
    return client
