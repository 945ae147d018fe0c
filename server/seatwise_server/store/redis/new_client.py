"""Creates the client for a Redis URL: one server, sentinels or a cluster."""

from __future__ import annotations

from seatwise_server.store.redis.address import RedisMode, parse_target
from seatwise_server.store.redis.client import RedisClient, SingleClient
from seatwise_server.store.redis.cluster import ClusterClient
from seatwise_server.store.redis.outage import BRIDGED_S
from seatwise_server.store.redis.topology import THE_PRIMARY


def new_client(url: str, bridge_s: float = BRIDGED_S) -> RedisClient:
    """Returns a client for the Redis behind the URL; it connects with its first command.

    `address` lists the kinds of URL.

    The client retries through an outage of up to `bridge_s` seconds. It repeats a command whose reply was lost,
    so only send commands that may run twice. Raises ValueError for a URL of another kind, and for unknown
    options.
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
