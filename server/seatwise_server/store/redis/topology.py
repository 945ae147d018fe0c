"""Which node holds which keys now, and connections to each node: for whoever needs one of its own."""

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
"""Where the URL leads; with sentinels that is somebody else after a failover."""

NODE_SLOTS_S = 1.0
"""A node that does not say in this time who holds what is not the one to ask."""


class Span(NamedTuple):
    """Slots from `first` to `last`, and who holds them."""

    first: int
    last: int
    primary: NodeAddress


class Topology(Protocol):
    """Which node holds which keys."""

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:
        """Who holds what now, asking the suspects last; raises RedisError or OSError when nobody knows."""
        ...

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """A new connection to that node, not yet connected; it does not retry."""
        ...


class SingleNodeTopology:
    """All keys are in one place."""

    def __init__(self, to_primary: Callable[[], AbstractConnection], options: dict[str, Any]) -> None:
        self._to_primary = to_primary
        self._options = options

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:  # noqa: ARG002 - there is one
        """See Topology."""
        return (Span(0, SLOTS - 1, THE_PRIMARY),)

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """See Topology; other addresses than THE_PRIMARY are those of its replicas."""
        if address != THE_PRIMARY:
            return connection_to(address, self._options)
        connection = self._to_primary()
        connection.retry = Retry(NoBackoff(), 0)
        return connection


class ClusterTopology:
    """The keys are spread over a cluster."""

    def __init__(self, seeds: Sequence[NodeAddress], options: dict[str, Any]) -> None:
        self._seeds = tuple(seeds)
        self._options = options
        self._known: set[NodeAddress] = set(seeds)

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:
        """See Topology. One node after the other is asked, until one answers."""
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
        """See Topology."""
        return connection_to(address, self._options)


def _nodes_in(row: list[Any], asked: NodeAddress) -> list[NodeAddress]:
    """Primary and replicas of one row of CLUSTER SLOTS; a node may not know its own name."""
    return [NodeAddress(node[0].decode() if node[0] else asked.host, int(node[1])) for node in row[2:]]


def connection_to(address: NodeAddress, options: dict[str, Any]) -> AbstractConnection:
    """A new connection with the options of a URL, but to this address."""
    own = {
        name: it for name, it in options.items() if name not in ("connection_class", "path", "host", "port")
    }
    kind = options.get("connection_class", Connection)
    over_tcp = kind if issubclass(kind, Connection) else Connection
    return over_tcp(host=address.host, port=address.port, retry=Retry(NoBackoff(), 0), **own)


@asynccontextmanager
async def open_for_commands(connection: AbstractConnection) -> AsyncIterator[Callable[..., Any]]:
    """A function that asks on this connection and gives replies as they come over the line."""

    async def ask(*command: bytes | str | int) -> Any:
        await connection.send_command(*command, check_health=False)
        return await connection.read_response()

    try:
        await connection.connect()  # type: ignore[no-untyped-call]
        yield ask
    finally:
        await connection.disconnect(nowait=True)
