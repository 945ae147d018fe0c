"""Parses a Redis URL: the kind of Redis, where it is, and how to connect.

    redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]            one server; rediss:// with TLS
    unix://[[USER]:PASSWORD@]/PATH[?db=DB]                one server, by its socket
    redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT],HOST[:PORT].../SERVICE[?db=DB]
    redis+cluster://[[USER]:PASSWORD@]HOST[:PORT],HOST[:PORT]...

`rediss+sentinel` and `rediss+cluster` use TLS with every node. The part after the question mark has redis-py's
options for a connection (`ssl_ca_certs`, `ssl_cert_reqs`, ...). For sentinels with a password it also has
`sentinel_username` and `sentinel_password`; name and password in the URL are those of the data nodes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379

COMMON: dict[str, Any] = {"protocol": 2, "socket_connect_timeout": 3.0, "health_check_interval": 0}
"""Options of every connection; a URL may override them."""

_PLAIN = ("redis", "rediss", "unix")
_URL_KINDS = (
    "redis://, rediss://, unix://, redis+sentinel://HOST,HOST/SERVICE or redis+cluster://HOST,HOST "
    "(with TLS: rediss+sentinel://, rediss+cluster://)"
)

SLOTS = 16_384
NODE_SLOTS_S = 1.0
"""A node that does not report the slots within this time is skipped."""


class RedisMode(StrEnum):
    """How the Redis behind a URL is built."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class NodeAddress(NamedTuple):
    """The address at which a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """The parsed URL."""

    mode: RedisMode
    hosts: tuple[NodeAddress, ...]
    """The sentinels, or some nodes of the cluster; empty for a single server, whose address is in the options."""
    service: str
    """The sentinels' name for the primary."""
    options: dict[str, Any]
    """Options for redis-py's connections: user, password, db, TLS."""
    sentinel_options: dict[str, Any]
    """Options for connections to the sentinels themselves."""


def parse_target(url: str) -> RedisTarget:
    """Parse the URL; raises ValueError, with the right form, for a URL of an unknown kind."""
    scheme, _, rest = url.partition("://")
    scheme, _, kind = scheme.lower().partition("+")
    if scheme in _PLAIN and not kind:
        return RedisTarget(RedisMode.STANDALONE, (), "", COMMON | dict(parse_url(url)), {})
    if scheme in ("redis", "rediss") and kind == "sentinel":
        return _parse_sentinel(scheme, rest)
    if scheme in ("redis", "rediss") and kind == "cluster":
        return _parse_cluster(scheme, rest)
    raise ValueError(f"A Redis URL is one of {_URL_KINDS}")


def _parse_sentinel(scheme: str, rest: str) -> RedisTarget:
    account, hosts, service, query = _split_url(rest, SENTINEL_PORT)
    if not service or "/" in service:
        raise ValueError(
            "A sentinel URL names the service behind the hosts: redis+sentinel://HOST,HOST/SERVICE; "
            "the database comes after it: ?db=0"
        )
    prefix = "sentinel_"
    own = {name.removeprefix(prefix): it for name, it in query.items() if name.startswith(prefix)}
    options = _connection_options(
        scheme, account, {name: it for name, it in query.items() if not name.startswith(prefix)}
    )
    tls = {name: it for name, it in options.items() if name.startswith("ssl") or name == "connection_class"}
    return RedisTarget(RedisMode.SENTINEL, hosts, service, options, COMMON | tls | own)


def _parse_cluster(scheme: str, rest: str) -> RedisTarget:
    account, hosts, path, query = _split_url(rest, CLUSTER_PORT)
    if path not in ("", "0") or query.pop("db", "0") != "0":
        raise ValueError("A cluster has one database, 0: redis+cluster://HOST,HOST")
    return RedisTarget(RedisMode.CLUSTER, hosts, "", _connection_options(scheme, account, query), {})


def _split_url(rest: str, port: int) -> tuple[str, tuple[NodeAddress, ...], str, dict[str, str]]:
    """Return account, hosts, path and options. The standard library's parser only supports URLs with one host."""
    place, _, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    account, _, named = netloc.rpartition("@")
    split = [urlsplit(f"//{host}") for host in named.split(",")]
    hosts = tuple(NodeAddress(it.hostname, it.port or port) for it in split if it.hostname)
    if not hosts:
        raise ValueError(f"The Redis URL names no host; it is one of {_URL_KINDS}")
    return account, hosts, unquote(path.strip("/")), dict(parse_qsl(query))


def _connection_options(scheme: str, account: str, query: dict[str, str]) -> dict[str, Any]:
    """Return the options as redis-py reads them from the URL of a single server."""
    at = f"{account}@" if account else ""
    options = dict(parse_url(f"{scheme}://{at}host:1?{urlencode(query)}"))
    return COMMON | {name: it for name, it in options.items() if name not in ("host", "port")}


THE_PRIMARY = NodeAddress("", 0)
"""The node that the URL leads to; with sentinels it is another one after a failover."""


class Span(NamedTuple):
    """The slots from `first` to `last`, and the node that has them."""

    first: int
    last: int
    primary: NodeAddress


class Topology(Protocol):
    """The mapping of keys to nodes."""

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:
        """Return the present mapping, asking the suspects last; raises RedisError or OSError if no node answers."""

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        """Return a new connection to that node, not yet connected; it does not retry."""


class SingleNodeTopology:
    """A topology in which one node has all keys."""

    def __init__(self, to_primary: Callable[[], AbstractConnection], options: dict[str, Any]) -> None:
        self._to_primary = to_primary
        self._options = options

    async def read_spans(self, suspects: Collection[NodeAddress] = ()) -> tuple[Span, ...]:  # noqa: ARG002 - there is one
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
        async with open_for_commands(self.new_connection(address), NODE_SLOTS_S) as ask:
            answer: list[Any] = await ask("CLUSTER", "SLOTS")
            return answer

    def new_connection(self, address: NodeAddress) -> AbstractConnection:
        return connection_to(address, self._options)


def _nodes_in(row: list[Any], asked: NodeAddress) -> list[NodeAddress]:
    """Return primary and replicas of one row of CLUSTER SLOTS; a node may not know its own name."""
    return [NodeAddress(node[0].decode() if node[0] else asked.host, int(node[1])) for node in row[2:]]


def connection_to(address: NodeAddress, options: dict[str, Any]) -> AbstractConnection:
    """Return a new connection with the options of a URL, but to this address."""
    own = {
        name: it for name, it in options.items() if name not in ("connection_class", "path", "host", "port")
    }
    kind = options.get("connection_class", Connection)
    over_tcp = kind if issubclass(kind, Connection) else Connection
    return over_tcp(host=address.host, port=address.port, retry=Retry(NoBackoff(), 0), **own)


@asynccontextmanager
async def open_for_commands(
    connection: AbstractConnection, within_s: float
) -> AsyncIterator[Callable[..., Any]]:
    """Yield a function that sends a command on this connection and returns the raw reply, all within these seconds."""

    async def ask(*command: bytes | str | int) -> Any:
        await connection.send_command(*command, check_health=False)
        return await connection.read_response()

    async with asyncio.timeout(within_s):
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            yield ask
        finally:
            await connection.disconnect(nowait=True)


class SharedSentinel(Sentinel):
    """redis-py's search for the primary of one service, shared by all that wait for its answer.

    redis-py moves the sentinel that answered to the head of its list. When many connections search at once, as
    after every failover, these moves interfere. One sentinel is then in the list twice, and another is never
    asked again and never closed. So only one search runs at a time.
    """

    _search: asyncio.Task[tuple[str, int]] | None = None

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Return host and port of the primary. Raises redis-py's MasterNotFoundError."""
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
