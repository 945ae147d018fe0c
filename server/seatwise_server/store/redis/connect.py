"""From a URL to a client."""

from __future__ import annotations

from seatwise_server.store.redis.address import RedisMode, parse_target
from seatwise_server.store.redis.client import RedisClient, SingleClient
from seatwise_server.store.redis.cluster import ClusterClient
from seatwise_server.store.redis.outage import BRIDGED_S
from seatwise_server.store.redis.topology import THE_PRIMARY


def connect(url: str, bridge_s: float = BRIDGED_S) -> RedisClient:
    """A client for the Redis behind the URL, not yet connected; `address` lists the kinds of URL.

    Raises ValueError for a URL of another kind, and for options that no connection has. The client bridges
    `bridge_s` of outage. A command whose reply was lost is sent again, so only send what may run twice.
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
