"""The topology of Redis, which node has which keys now, and connections to each node."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from redis.asyncio.connection import AbstractConnection, Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from seatwise_server.store.redis.address import NodeAddress

SLOTS = 16_384

THE_PRIMARY = NodeAddress("", 0)
"""The node that the URL leads to; with sentinels it is another one after a failover."""

NODE_SLOTS_S = 1.0
"""A node that does not report the slots within this time is skipped."""


class Span(NamedTuple):
    """The slots from `first` to `last`, and the node that has them."""

    first: int
    last: int
    primary: NodeAddress


class Topology(Protocol):
    """The mapping of keys to nodes."""

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:
        """Returns the present mapping, asking the suspects last; raises RedisError or OSError if no node answers."""
        ...

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """Returns a new connection to that node, not yet connected; it does not retry."""
        ...


class SingleNodeTopology:
    """A topology in which one node has all keys."""

    def __init__(self, to_primary: Callable[[], AbstractConnection], options: dict[str, Any]) -> None:
        self._to_primary = to_primary
        self._options = options

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:  # noqa: ARG002 - there is one
        """See `Topology`."""
        return (Span(0, SLOTS - 1, THE_PRIMARY),)

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """See `Topology`; other addresses than THE_PRIMARY are those of its replicas."""
        if address != THE_PRIMARY:
            return connection_to(address, self._options)
        connection = self._to_primary()
        connection.retry = Retry(NoBackoff(), 0)
        return connection


class ClusterTopology:
    """A topology in which the keys are spread over a cluster."""

    def __init__(self, seeds: Sequence[NodeAddress], options: dict[str, Any]) -> None:
        self._seeds = tuple(seeds)
        self._options = options
        self._known: set[NodeAddress] = set(seeds)

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:
        """See `Topology`. Asks one node after the other, until one answers."""
        trouble: Exception = RedisConnectionError("no node of the cluster is known")
        for address in sorted(self._known, key=lambda it: (it in suspects, random.random())):
            try:
                answer = await self._ask_node(address)
            except (RedisError, OSError) as error:
                trouble = error
                continue
            self._known = {*self._seeds, *(node for row in answer for node in _nodes_in(row, address))}
            return tuple(sorted(Span(int(row[0]), int(row[1]), _nodes_in(row, address)[0]) for row in answer))
        raise trouble

    async def _ask_node(self, address: NodeAddress) -> list[Any]:
        async with asyncio.timeout(NODE_SLOTS_S):
            async with open_for_commands(self.new_connection(address)) as ask:
                answer: list[Any] = await ask("CLUSTER", "SLOTS")
                return answer

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """See `Topology`."""
        return connection_to(address, self._options)


def _nodes_in(row: list[Any], asked: NodeAddress) -> list[NodeAddress]:
    """Returns primary and replicas of one row of CLUSTER SLOTS; a node may not know its own name."""
    return [NodeAddress(node[0].decode() if node[0] else asked.host, int(node[1])) for node in row[2:]]


def connection_to(address: NodeAddress, options: dict[str, Any]) -> AbstractConnection:
    """Returns a new connection with the options of a URL, but to this address."""
    own = {
        name: it for name, it in options.items() if name not in ("connection_class", "path", "host", "port")
    }
    kind = options.get("connection_class", Connection)
    over_tcp = kind if issubclass(kind, Connection) else Connection
    return over_tcp(host=address.host, port=address.port, retry=Retry(NoBackoff(), 0), **own)


@asynccontextmanager
async def open_for_commands(connection: AbstractConnection) -> AsyncIterator[Callable[..., Any]]:
    """Yields a function that sends a command on this connection and returns the raw reply."""

    async def ask(*command: bytes | str | int) -> Any:
        await connection.send_command(*command, check_health=False)
        return await connection.read_response()

    try:
        await connection.connect()  # type: ignore[no-untyped-call]
        yield ask
    finally:
        await connection.disconnect(nowait=True)
