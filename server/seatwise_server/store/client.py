"""The way to Redis: connecting, the one door for commands, and what a Redis must promise before we use it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    ClusterDownError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from seatwise_server.store.errors import StoreRefused, StoreUnavailable

Argument: TypeAlias = bytes | str | int

REPLY_TIMEOUT_S = 10.0
"""No command waits longer for its reply; blocking reads ask for at most half of it."""

LONGEST_BLOCK_MS = 5_000
"""The longest a blocking read may ask for; callers ask again."""

AT_ONCE = 64
"""Commands of one client under way at once; more wait their turn instead of opening connections in a storm."""

OLDEST = (7, 0)

_turns: WeakKeyDictionary[Redis, asyncio.Semaphore] = WeakKeyDictionary()

# Errors that redis-py knows lose their first word and are told by class, the others by that word.
_OUTAGE_CLASSES = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
    ClusterDownError,
    TryAgainError,
    OSError,  # and with it the TimeoutError of asyncio
)
_OUTAGE_WORDS = ("BUSY ", "MISCONF", "NOREPLICAS", "NOAUTH", "UNBLOCKED", "READONLY", "OOM", "MASTERDOWN")


def connect(url: str) -> Redis:
    """A client for redis://, rediss:// or unix://, not yet connected; raises ValueError for another URL.

    It bridges about 10 s of outage by itself. A command whose reply was lost is sent again, so only send
    what may run twice.
    """
    return Redis.from_url(
        url,
        protocol=2,
        decode_responses=False,
        socket_timeout=REPLY_TIMEOUT_S,
        socket_connect_timeout=3.0,
        health_check_interval=0,
        max_connections=1_000,
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.5), retries=14),
    )


def is_outage(error: BaseException) -> bool:
    """Whether the same command may work later, without anybody changing the command."""
    if isinstance(error, _OUTAGE_CLASSES):
        return True
    return isinstance(error, ResponseError) and str(error).startswith(_OUTAGE_WORDS)


async def call(client: Redis, *command: Argument, **options: Any) -> Any:
    """Redis's answer to one command; raises StoreUnavailable when there is none in time.

    The options are redis-py's own, for how it reads the answer.
    Errors of the command itself come through as redis-py's ResponseError.
    """
    async with _turn(client):
        return await call_blocking(client, *command, **options)


async def call_blocking(client: Redis, *command: Argument, **options: Any) -> Any:
    """Like `call` for a command that waits in Redis: it has a connection to itself and takes nobody's turn."""
    with _outages_named():
        return await client.execute_command(*command, **options)  # type: ignore[no-untyped-call]


async def call_many(client: Redis, commands: Sequence[Sequence[Argument]]) -> list[Any]:
    """Redis's answers to several commands sent at once; they are not one change, and may name any keys."""
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    async with _turn(client):
        with _outages_named():
            return await pipeline.execute()


def _turn(client: Redis) -> asyncio.Semaphore:
    return _turns.setdefault(client, asyncio.Semaphore(AT_ONCE))


@contextlib.contextmanager
def _outages_named() -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        if is_outage(error):
            raise StoreUnavailable(f"Redis does not answer: {error}") from error
        raise


def pairs(answer: Any) -> list[tuple[Any, Any]]:
    """A reply of names and values: redis-py makes a dict, pairs or nothing at all of it, by command and version."""
    if isinstance(answer, dict):
        return list(answer.items())
    if answer and isinstance(answer[0], tuple | list):
        return [(name, value) for name, value in answer]
    return list(zip(answer[::2], answer[1::2], strict=True))


async def now_ms(client: Redis) -> int:
    """Milliseconds on Redis's own clock, the only clock that all processes share."""
    seconds, micros = await call(client, "TIME")
    return int(seconds) * 1000 + int(micros) // 1000


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the Redis behind a URL promises."""

    software: str
    """"redis" or "valkey"."""
    version: str
    """The version of the Redis command set; Valkey names the one it follows."""
    appendonly: bool
    appendfsync: str
    """"always", "everysec", "no", or "unknown" when CONFIG is not ours to read."""
    maxmemory_policy: str
    run_id: str
    """Changes with every start of the server process."""

    @property
    def is_lossless(self) -> bool:
        """Whether what Redis has acknowledged survives its kill."""
        return self.appendonly and self.appendfsync == "always"


async def check_server(client: Redis, *, allow_loss: bool) -> ServerFacts:
    """What this Redis promises; raises StoreRefused when that is not enough, naming the line that would be."""
    facts = await _read_facts(client)
    _refuse_old(facts)
    _refuse_eviction(facts)
    if not allow_loss:
        _refuse_loss(facts)
    return facts


async def _read_facts(client: Redis) -> ServerFacts:
    info = _parse_info(await call(client, "INFO"))
    return ServerFacts(
        software=info.get("server_name", "redis"),
        version=info.get("redis_version", "0"),
        appendonly=info.get("aof_enabled") == "1",
        appendfsync=await _setting(client, "appendfsync"),
        maxmemory_policy=info.get("maxmemory_policy", "unknown"),
        run_id=info.get("run_id", ""),
    )


def _parse_info(answer: Any) -> dict[str, str]:
    """redis-py parses INFO for some commands and not for others: take both."""
    if isinstance(answer, dict):
        return {str(name): str(value) for name, value in answer.items()}
    lines = (line.partition(":") for line in answer.decode().splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}


async def _setting(client: Redis, name: str) -> str:
    try:
        answer = await call(client, "CONFIG GET", name)
    except ResponseError:  # hosted services keep CONFIG to themselves
        return "unknown"
    for _, value in pairs(answer):
        return value.decode() if isinstance(value, bytes) else str(value)
    return "unknown"


def _refuse_old(facts: ServerFacts) -> None:
    major, minor = (int(part) for part in re.findall(r"\d+", facts.version + ".0")[:2])
    if (major, minor) < OLDEST:
        raise StoreRefused(
            f"This {facts.software} speaks version {facts.version} of the Redis command set; "
            "Seatwise needs 7.0 or newer (or any Valkey)."
        )


def _refuse_eviction(facts: ServerFacts) -> None:
    if facts.maxmemory_policy != "noeviction":
        raise StoreRefused(
            f"This {facts.software} may throw matches away when memory is short: maxmemory-policy is "
            f'"{facts.maxmemory_policy}". Set: CONFIG SET maxmemory-policy noeviction'
        )


def _refuse_loss(facts: ServerFacts) -> None:
    if not facts.appendonly:
        raise StoreRefused(
            f"This {facts.software} keeps no append-only file, so its restart would lose acknowledged moves. "
            "Set: CONFIG SET appendonly yes appendfsync always  (or accept the loss with --allow-loss)"
        )
    if facts.appendfsync != "always":
        raise StoreRefused(
            f'This {facts.software} may lose acknowledged moves: appendfsync is "{facts.appendfsync}". '
            "Set: CONFIG SET appendfsync always  (or accept the loss with --allow-loss)"
        )
