"""Access to Redis: one client type for one server, for sentinels and for a cluster. It bridges outages and shares messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

import hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ClusterError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.redis.address import (
    RedisMode,
    RedisTarget,
    SharedSentinel,
    SingleNodeTopology,
    Topology,
)

T = TypeVar("T")

pack_command: Callable[[tuple[object, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub allows one-tuples only

BRIDGED_S = 10.0
"""An outage that is shorter than this is hidden from the callers."""

_FIRST_PAUSE_S = 0.02
_LONGEST_RETRY_PAUSE_S = 1.0

# redis-py strips the first word of the errors that it knows, so these are told by their class, the others by
# that word.
_CLASSES = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
    ClusterError,  # CLUSTERDOWN, and endless redirections
    SlotNotCoveredError,
    TryAgainError,
    OSError,  # among them asyncio's TimeoutError
)
_OUTAGE_WORDS = (
    "BUSY ", "MISCONF", "NOREPLICAS", "NOAUTH", "UNBLOCKED", "READONLY", "OOM", "MASTERDOWN", "CLUSTERDOWN"
)  # fmt: skip
_CLUSTER_WORDS = ("Redis Cluster cannot be connected", "All slots are not covered")

Argument: TypeAlias = bytes | str | int
Command: TypeAlias = Sequence[Argument]
"""The words of a command."""

MOST_COMMANDS_A_MESSAGE = 128
"""The most commands of one message; more than that go into several messages at once."""

REPLY_TIMEOUT_S = 10.0
"""The longest that a command waits for its reply, in seconds; blocking reads ask for at most half of it."""

FAILOVER_REPLY_TIMEOUT_S = 3.0
"""The same where another node can take over: a node that does not answer is given up sooner."""

SENTINEL_TIMEOUT_S = 1.0
"""A sentinel that does not answer within this time is skipped."""

LONGEST_BLOCK_MS = 5_000
"""The longest wait that a blocking read may ask for; callers repeat it."""

MOST_COMMANDS_AT_ONCE = 64
"""The most messages of one client at the same time, in a cluster the most commands: a burst does not open many connections."""

MOST_CONNECTIONS = 1_000
SILENCE_S = 5.0
"""The time without a notice, in seconds, after which a channel is checked with a ping."""


def is_outage(error: object) -> bool:
    """Whether the same command may succeed later, without a change to the command."""
    if isinstance(error, _CLASSES):
        return True
    if isinstance(error, RedisClusterException):  # redis-py raises it for mistakes of the caller, too
        return str(error).startswith(_CLUSTER_WORDS)
    return isinstance(error, ResponseError) and str(error).startswith(_OUTAGE_WORDS)


async def retry_through_outage(ask: Callable[[], Awaitable[T]], bridge_s: float = BRIDGED_S) -> T:
    """Call `ask` and return its answer; repeats it during an outage, for at most `bridge_s` seconds.

    Raises StoreUnavailable if the outage lasts longer. A command whose reply was lost is sent again: `ask` only
    for commands that may run twice.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + bridge_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            return await ask()
        except Exception as error:
            if not is_outage(error):
                raise
            if loop.time() + pause >= deadline:
                raise StoreUnavailable(f"Redis does not answer: {error}") from error
        await asyncio.sleep(random.uniform(pause / 2, pause))
        pause = min(pause * 2, _LONGEST_RETRY_PAUSE_S)


@dataclass(frozen=True, slots=True)
class _Request:
    """The commands of one caller, which stay together and in order."""

    commands: Sequence[Command]
    answers: asyncio.Future[list[Any]]


class SharedMessages:
    """Sends the commands of many callers to one Redis.

    No caller waits for the message of another turn: each message has a connection of its own while it is under way.
    """

    def __init__(self, redis: Redis, most_at_once: int) -> None:
        self._redis = redis
        self._turns = asyncio.Semaphore(most_at_once)
        self._queued: list[_Request] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def send_commands(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answer to each command; an error of a command itself is its answer.

        Raises redis-py's error if the message is lost. A caller that is cancelled does not stop its commands.
        """
        loop = asyncio.get_running_loop()
        request = _Request(commands, loop.create_future())
        if not self._queued:
            loop.call_soon(loop.call_soon, self._send_queued)  # one turn later than this one
        self._queued.append(request)
        return await request.answers

    async def close_messages(self) -> None:
        """Cancel the messages that are under way and waits until they have let their connections go."""
        while self._queued or self._under_way:
            for task in list(self._under_way):
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            await asyncio.sleep(0)  # what is queued is sent in the next turn of the loop

    def _send_queued(self) -> None:
        queued, self._queued = self._queued, []
        while queued:
            count, size = 0, 0
            while count < len(queued) and (
                not count or size + len(queued[count].commands) <= MOST_COMMANDS_A_MESSAGE
            ):
                size += len(queued[count].commands)
                count += 1
            self._send_message(queued[:count])
            queued = queued[count:]

    def _send_message(self, requests: Sequence[_Request]) -> None:
        task = asyncio.create_task(self._exchange_message(requests))
        self._under_way.add(task)
        task.add_done_callback(lambda task: self._on_message_ended(task, requests))

    def _on_message_ended(self, task: asyncio.Task[None], requests: Sequence[_Request]) -> None:
        self._under_way.discard(task)
        if task.cancelled():  # maybe before its first step
            _fail_requests(requests, asyncio.CancelledError())

    async def _exchange_message(self, requests: Sequence[_Request]) -> None:
        commands = [command for request in requests for command in request.commands]
        try:
            async with self._turns:
                answers = await self._ask_redis(commands)
        except BaseException as error:
            _fail_requests(requests, error)
            if not isinstance(error, Exception):
                raise
        else:
            _answer_requests(requests, answers)

    async def _ask_redis(self, commands: Sequence[Command]) -> list[Any]:
        """Do what a pipeline of redis-py does, for half its CPU (measured: 67 us, not 133, for one command)."""
        pool = self._redis.connection_pool
        connection: Any = await pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            # Its `send_packed_command` would make a task, for a timeout that the reading has anyway.
            connection._writer.write(b"".join([pack_command(tuple(it)) for it in commands]))
            answers = [await self._read_answer(connection, command[0]) for command in commands]
        except BaseException:
            # The next message would take unread answers for its own.
            try:
                await connection.disconnect()
            finally:  # also if this task is cancelled once more meanwhile: the pool has a limit
                await asyncio.shield(pool.release(connection))
            raise
        await pool.release(connection)
        return answers

    async def _read_answer(self, connection: Any, name: Any) -> Any:
        """Return the answer to the command of this name, or the error that is its answer."""
        try:
            return await self._redis.parse_response(connection, name)
        except ResponseError as error:
            return error


def _answer_requests(requests: Sequence[_Request], answers: Sequence[Any]) -> None:
    left = iter(answers)
    for request in requests:
        own = list(islice(left, len(request.commands)))
        if not request.answers.done():  # else its caller was cancelled
            request.answers.set_result(own)


def _fail_requests(requests: Sequence[_Request], error: BaseException) -> None:
    for request in requests:
        if request.answers.done():
            continue
        if isinstance(error, Exception):
            request.answers.set_exception(error)
        else:
            request.answers.cancel()


class RedisClient(Protocol):
    """A client of Redis. It may send a command twice, because it repeats a command whose reply was lost.

    It retries for about 10 s through an outage or a failover. After that its methods raise StoreUnavailable.
    Errors of the command itself are raised as redis-py's ResponseError.
    """

    @property
    def mode(self) -> RedisMode:
        """How the Redis behind the client is built."""

    @property
    def routes(self) -> Topology:
        """The topology, for users that need a connection of their own."""

    async def call(self, *command: Argument) -> Any:
        """Send one command and return its answer. In a cluster its first key decides the node: every command of the store has one."""

    async def call_blocking(self, *command: Argument) -> Any:
        """Like `call`, for a command that waits in Redis. It has a connection of its own and does not delay other commands."""

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answers to several commands; they are not atomic. Commands on the same key keep their order."""

    def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        """Yield the channel and the text of everything that is published on these channels from now on.

        Raises StoreUnavailable if the node is gone. Notices until the caller listens again are lost.
        """

    async def close_connections(self) -> None:
        """Close all connections."""


class SingleClient:
    """One server; with sentinels, the server that they name when a connection is made."""

    def __init__(
        self,
        target: RedisTarget,
        quick: Redis,
        patient: Redis,
        bridge_s: float,
        sentinel: SharedSentinel | None = None,
    ) -> None:
        self.mode = target.mode
        self.routes = SingleNodeTopology(quick.connection_pool.make_connection, target.options)
        self._quick = quick
        self._patient = patient
        """For commands that wait in Redis; it has connections of its own."""
        self._bridge_s = bridge_s
        self._messages = SharedMessages(quick, MOST_COMMANDS_AT_ONCE)
        self._sentinel = sentinel

    @classmethod
    def connect_to(cls, target: RedisTarget, bridge_s: float) -> SingleClient:
        """Return a client for redis://, rediss:// or unix://."""
        quick, patient = (
            Redis.from_pool(ConnectionPool(**client_limits(REPLY_TIMEOUT_S), **target.options))
            for _ in range(2)
        )
        return cls(target, quick, patient, bridge_s)

    @classmethod
    def connect_by_sentinels(cls, target: RedisTarget, bridge_s: float) -> SingleClient:
        """Return a client for the primary that the sentinels name."""
        sentinel = SharedSentinel(  # type: ignore[no-untyped-call]
            target.hosts,
            sentinel_kwargs=_with_tls(target.sentinel_options) | client_limits(SENTINEL_TIMEOUT_S),
        )
        quick, patient = (
            sentinel.master_for(target.service, **_with_tls(target.options), **client_limits(timeout_s))
            for timeout_s in (FAILOVER_REPLY_TIMEOUT_S, REPLY_TIMEOUT_S)
        )
        return cls(target, quick, patient, bridge_s, sentinel)

    async def call(self, *command: Argument) -> Any:
        [answer] = await self.call_many([command])
        return answer

    async def call_blocking(self, *command: Argument) -> Any:
        execute: Any = self._patient.execute_command
        return await retry_through_outage(lambda: execute(*command), self._bridge_s)

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """See `RedisClient`. All commands are sent in one message, with those of other callers of this turn of the loop."""
        return await retry_through_outage(lambda: self._send_all(commands), self._bridge_s)

    async def _send_all(self, commands: Sequence[Command]) -> list[Any]:
        """Return all answers; raises the first error among them, after all commands were executed."""
        answers = await self._messages.send_commands(commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        return read_channels(self._patient, channels)

    async def close_connections(self) -> None:
        await self._messages.close_messages()
        for redis in (self._quick, self._patient):
            await redis.aclose()
        if self._sentinel:
            await self._sentinel.aclose()


def client_limits(timeout_s: float) -> dict[str, Any]:
    """Return the options of a connection pool."""
    return {
        "socket_timeout": timeout_s,
        "max_connections": MOST_CONNECTIONS,
        "retry": Retry(NoBackoff(), 0),  # `retry_through_outage` does that, for every kind of Redis
    }


def _with_tls(options: dict[str, Any]) -> dict[str, Any]:
    """Request TLS by name, because sentinels choose the class of their connections themselves."""
    others = {name: it for name, it in options.items() if name != "connection_class"}
    return others | {"ssl": True} if "connection_class" in options else others


async def read_channels(redis: Redis, channels: Sequence[str]) -> AsyncGenerator[tuple[str, str], None]:
    """Yield the channel and the text of each notice. A node that is silent must answer a ping."""
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


def as_pairs(answer: Any) -> list[tuple[Any, Any]]:
    """Return a reply of names and values as pairs. redis-py gives it as a dict, as pairs or flat, by command and version."""
    if isinstance(answer, dict):
        return list(answer.items())
    if answer and isinstance(answer[0], tuple | list):
        return [(name, value) for name, value in answer]
    return list(zip(answer[::2], answer[1::2], strict=True))
