"""Access to Redis: one client type for one server, for sentinels and for a cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol, TypeAlias

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.address import RedisMode, RedisTarget
from seatwise_server.store.redis.outage import BRIDGED_S, retry_through_outage
from seatwise_server.store.redis.sentinel_search import SharedSentinel
from seatwise_server.store.redis.shared_messages import Command, SharedMessages
from seatwise_server.store.redis.topology import SingleNodeTopology, Topology

Argument: TypeAlias = bytes | str | int

REPLY_TIMEOUT_S = 10.0
"""The longest that a command waits for its reply, in seconds; blocking reads ask for at most half of it."""

FAILOVER_REPLY_TIMEOUT_S = 3.0
"""The same where another node can take over: a node that does not answer is given up sooner."""

SENTINEL_TIMEOUT_S = 1.0
"""A sentinel that does not answer within this time is skipped."""

LONGEST_BLOCK_MS = 5_000
"""The longest wait that a blocking read may ask for; callers repeat it."""

MOST_COMMANDS_AT_ONCE = 64
"""The most messages of one client at the same time, in a cluster the most commands. Others wait, so that a burst does not open many
connections.
"""

MOST_CONNECTIONS = 1_000

SILENCE_S = 5.0
"""The time without a notice, in seconds, after which a channel is checked with a ping."""


class RedisClient(Protocol):
    """A client of Redis. It may send a command twice, because it repeats a command whose reply was lost.

    It retries for about 10 s through an outage or a failover. After that its methods raise StoreUnavailable.
    Errors of the command itself are raised as redis-py's ResponseError.
    """

    @property
    def mode(self) -> RedisMode:
        """How the Redis behind the client is built."""
        ...

    @property
    def routes(self) -> Topology:
        """The topology, for users that need a connection of their own."""
        ...

    async def call(self, *command: Argument, **options: Any) -> Any:
        """Sends one command and returns its answer; the options are redis-py's own, for parsing the answer.

        In a cluster the first key of the command decides the node: every command of the store has a key.
        """
        ...

    async def call_blocking(self, *command: Argument, **options: Any) -> Any:
        """Like `call`, for a command that waits in Redis. It has a connection of its own and does not delay
        other commands.
        """
        ...

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Returns the answers to several commands; they are not atomic. Commands on the same key keep their order."""
        ...

    def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        """Yields the channel and the text of everything that is published on these channels from now on.

        Raises StoreUnavailable if the node is gone. Notices until the caller listens again are lost.
        """
        ...

    async def close_connections(self) -> None:
        """Closes all connections."""
        ...


class SingleClient:
    """One server; with sentinels, the server that they name when a connection is made."""

    def __init__(
        self, mode: RedisMode, quick: Redis, patient: Redis, routes: Topology, bridge_s: float
    ) -> None:
        self.mode = mode
        self.routes = routes
        self._quick = quick
        self._patient = patient
        """For commands that wait in Redis; it has connections of its own."""
        self._bridge_s = bridge_s
        self._messages = SharedMessages(quick, MOST_COMMANDS_AT_ONCE)
        self._sentinel: SharedSentinel | None = None

    @classmethod
    def connect_to(cls, target: RedisTarget, bridge_s: float = BRIDGED_S) -> SingleClient:
        """Returns a client for redis://, rediss:// or unix://."""
        quick, patient = (
            Redis.from_pool(ConnectionPool(**client_limits(REPLY_TIMEOUT_S), **target.options))
            for _ in range(2)
        )
        routes = SingleNodeTopology(quick.connection_pool.make_connection, target.options)
        return cls(target.mode, quick, patient, routes, bridge_s)

    @classmethod
    def connect_by_sentinels(cls, target: RedisTarget, bridge_s: float = BRIDGED_S) -> SingleClient:
        """Returns a client for the primary that the sentinels name."""
        sentinel = SharedSentinel(  # type: ignore[no-untyped-call]
            target.hosts,
            sentinel_kwargs=_with_tls(target.sentinel_options) | client_limits(SENTINEL_TIMEOUT_S),
        )
        quick, patient = (
            sentinel.master_for(target.service, **_with_tls(target.options), **client_limits(timeout_s))
            for timeout_s in (FAILOVER_REPLY_TIMEOUT_S, REPLY_TIMEOUT_S)
        )
        routes = SingleNodeTopology(quick.connection_pool.make_connection, target.options)
        client = cls(target.mode, quick, patient, routes, bridge_s)
        client._sentinel = sentinel
        return client

    async def call(self, *command: Argument, **options: Any) -> Any:
        """See `RedisClient`."""
        [answer] = await retry_through_outage(lambda: self._send_all([(command, options)]), self._bridge_s)
        return answer

    async def call_blocking(self, *command: Argument, **options: Any) -> Any:
        """See `RedisClient`."""
        return await retry_through_outage(
            lambda: _execute_command(self._patient, command, options), self._bridge_s
        )

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """See `RedisClient`. All commands are sent in one message, with those of other callers of this turn of the loop."""
        return await retry_through_outage(
            lambda: self._send_all([(command, {}) for command in commands]), self._bridge_s
        )

    async def _send_all(self, commands: Sequence[Command]) -> list[Any]:
        """Returns all answers; raises the first error among them, after all commands were executed."""
        answers = await self._messages.send_commands(commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        """See `RedisClient`."""
        return read_channels(self._patient, channels)

    async def close_connections(self) -> None:
        """See `RedisClient`."""
        await self._messages.close_messages()
        for redis in (self._quick, self._patient):
            await redis.aclose()
        if self._sentinel:
            await self._sentinel.aclose()


def client_limits(timeout_s: float) -> dict[str, Any]:
    """Returns the options of a connection pool."""
    return {
        "socket_timeout": timeout_s,
        "max_connections": MOST_CONNECTIONS,
        "retry": Retry(NoBackoff(), 0),  # `retry_through_outage` does that, for every kind of Redis
    }


def _with_tls(options: dict[str, Any]) -> dict[str, Any]:
    """Requests TLS by name, because sentinels choose the class of their connections themselves."""
    others = {name: it for name, it in options.items() if name != "connection_class"}
    return others | {"ssl": True} if "connection_class" in options else others


def _execute_command(redis: Redis, command: tuple[Argument, ...], options: dict[str, Any]) -> Any:
    return redis.execute_command(*command, **options)  # type: ignore[no-untyped-call]


async def read_channels(redis: Redis, channels: Sequence[str]) -> AsyncGenerator[tuple[str, str], None]:
    """Yields the channel and the text of each notice. A node that is silent must answer a ping."""
    pubsub = redis.pubsub()
    is_doubted = False
    try:
        await pubsub.subscribe(*channels)
        while True:
            notice = await pubsub.get_message(timeout=SILENCE_S)
            if notice is None and is_doubted:
                raise StoreUnavailable("no notices: Redis is silent")
            if notice is None:
                await pubsub.ping()
            elif notice["type"] == "message":
                yield notice["channel"].decode(), notice["data"].decode()
            is_doubted = notice is None
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"no notices: {error}") from error
    finally:
        await pubsub.aclose()  # type: ignore[no-untyped-call]


async def call(client: RedisClient, *command: Argument, **options: Any) -> Any:
    """See `RedisClient.call`."""
    return await client.call(*command, **options)


async def call_blocking(client: RedisClient, *command: Argument, **options: Any) -> Any:
    """See `RedisClient.call_blocking`."""
    return await client.call_blocking(*command, **options)


async def call_many(client: RedisClient, commands: Sequence[Sequence[Argument]]) -> list[Any]:
    """See `RedisClient.call_many`."""
    return await client.call_many(commands)


def as_pairs(answer: Any) -> list[tuple[Any, Any]]:
    """Returns a reply of names and values as pairs. redis-py gives it as a dict, as pairs or flat, by command
    and version.
    """
    if isinstance(answer, dict):
        return list(answer.items())
    if answer and isinstance(answer[0], tuple | list):
        return [(name, value) for name, value in answer]
    return list(zip(answer[::2], answer[1::2], strict=True))
