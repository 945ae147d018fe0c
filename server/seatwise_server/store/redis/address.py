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

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import parse_url

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379

COMMON: dict[str, Any] = {"protocol": 2, "socket_connect_timeout": 3.0, "health_check_interval": 0}
"""Options of every connection; a URL may override them."""

_PLAIN = ("redis", "rediss", "unix")
_URL_KINDS = (
    "redis://, rediss://, unix://, redis+sentinel://HOST,HOST/SERVICE or redis+cluster://HOST,HOST "
    "(with TLS: rediss+sentinel://, rediss+cluster://)"
)


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
    """Parses the URL; raises ValueError, with the right form, for a URL of an unknown kind."""
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
    """Returns account, hosts, path and options. The standard library's parser only supports URLs with one host."""
    place, _, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    account, _, named = netloc.rpartition("@")
    split = [urlsplit(f"//{host}") for host in named.split(",")]
    hosts = tuple(NodeAddress(it.hostname, it.port or port) for it in split if it.hostname)
    if not hosts:
        raise ValueError(f"The Redis URL names no host; it is one of {_URL_KINDS}")
    return account, hosts, unquote(path.strip("/")), dict(parse_qsl(query))


def _connection_options(scheme: str, account: str, query: dict[str, str]) -> dict[str, Any]:
    """Returns the options as redis-py reads them from the URL of a single server."""
    at = f"{account}@" if account else ""
    options = dict(parse_url(f"{scheme}://{at}host:1?{urlencode(query)}"))
    return COMMON | {name: it for name, it in options.items() if name not in ("host", "port")}
