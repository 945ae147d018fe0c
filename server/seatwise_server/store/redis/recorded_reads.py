"""Records what an operation reads of Redis. If the same reads have the same replies later, its response is the same too.

An operation that only reads computes its response from the request, the caller and these replies. So a caller that asks
whether a response has changed is answered after one message to Redis, without the work of computing the response again.
"""

from __future__ import annotations

import hashlib
import marshal
import struct
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from redis.exceptions import ResponseError

from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.address import RedisMode
from seatwise_server.store.redis.client import Argument, RedisClient
from seatwise_server.store.redis.topology import Topology

_READS = frozenset(
    (
        *("EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HLEN", "HMGET", "SMEMBERS"),
        *("XLEN", "XRANGE", "XREVRANGE", "ZCARD", "ZRANGE", "ZREVRANGE"),
    )
)
"""Commands that change nothing, and whose replies follow from what is stored."""
_READING_SCRIPTS = scripts.reading_scripts()
_REPEATED_AT_ONCE = range(2, 257)
"""The numbers of reads that one script repeats: a page of 50 bots needs 101. More would keep Redis from other work for too long."""

ScriptArguments: TypeAlias = tuple[list[str], bytes]


class ReadRecording:
    """The reads of one operation, each once, in order."""

    def __init__(self) -> None:
        self._replies: dict[Sequence[Argument], Any] = {}
        """By command."""
        self._client: RedisClient | None = None
        self._is_open = self._is_repeatable = True
        self.commands: list[Sequence[Argument]] = []
        """The commands, once the recording has ended."""
        self._digest = b""
        self._script_call: ScriptArguments | None = None
        """Keys and argument of the script that repeats all reads; None if they are repeated one by one."""

    def note_read(self, client: RedisClient, command: Sequence[Argument], reply: Any) -> None:
        """Notes a command and its reply, unless the recording has ended."""
        if self._is_open:
            self._client = client
            noted = self._replies.setdefault(tuple(command), reply)
            if not _is_read(command) or (noted is not reply and noted != reply):
                self._is_repeatable = False

    def end(self) -> None:
        """Ends the recording. Tasks that the operation has started may go on."""
        self._is_open = False
        self.commands = list(self._replies)
        if self._is_repeatable:
            self._digest = _digest_of(list(self._replies.values()))
            self._script_call = self._arguments_of_script()
        self._replies = {}

    def _arguments_of_script(self) -> ScriptArguments | None:
        """Returns keys and argument of the script that repeats the reads; None if it could not, or with other replies.

        In a cluster the keys of a script are on one node. redis-py turns some replies into dicts, sets or floats, but none of a script.
        """
        if len(self.commands) not in _REPEATED_AT_ONCE or (
            self._client and self._client.mode is RedisMode.CLUSTER
        ):
            return None
        if not all(command[0] in _READS for command in self.commands):
            return None
        if not all(map(_is_plain, self._replies.values())):
            return None
        keys = dict.fromkeys(str(command[1]) for command in self.commands)
        return list(keys), _pack_commands(self.commands)

    @property
    def is_repeatable(self) -> bool:
        """Whether the operation did nothing but read, and nothing changed meanwhile."""
        return self._is_repeatable and not self._is_open

    async def is_unchanged(self) -> bool:
        """Repeats the reads, in one message, as one command where that is possible, and returns whether all replies are the same. Raises StoreUnavailable."""
        if self._client is None:  # nothing was read
            return True
        try:
            return _digest_of(await self._read_again(self._client)) == self._digest
        except ResponseError:  # e.g. Redis has lost a script
            return False

    async def _read_again(self, client: RedisClient) -> list[Any]:
        if len(self.commands) == 1:  # a single command costs less than a message of many
            return [await client.call(*self.commands[0])]
        if self._script_call:
            keys, packed = self._script_call
            replies: list[Any] = await scripts.run_script(client, "repeat_reads", keys, packed)
            return replies
        return await client.call_many(self.commands)


_recording: ContextVar[ReadRecording | None] = ContextVar("read_recording", default=None)


@contextmanager
def recording_reads() -> Iterator[ReadRecording]:
    """Records what this task reads through a `RecordingClient` inside this block."""
    recording = ReadRecording()
    reset = _recording.set(recording)
    try:
        yield recording
    finally:
        _recording.reset(reset)
        recording.end()


class RecordingClient:
    """A client whose reads can be recorded. It does nothing else."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    @property
    def mode(self) -> RedisMode:
        """See `RedisClient`."""
        return self._client.mode

    @property
    def routes(self) -> Topology:
        """See `RedisClient`."""
        return self._client.routes

    async def call(self, *command: Argument, **options: Any) -> Any:
        """See `RedisClient`."""
        reply = await self._client.call(*command, **options)
        if recording := _recording.get():
            recording.note_read(self._client, command, reply)
        return reply

    async def call_blocking(self, *command: Argument, **options: Any) -> Any:
        """See `RedisClient`. A command that waits cannot be repeated."""
        if recording := _recording.get():
            recording.note_read(self._client, ("WAIT",), None)
        return await self._client.call_blocking(*command, **options)

    async def call_many(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """See `RedisClient`."""
        replies = await self._client.call_many(commands)
        if recording := _recording.get():
            for command, reply in zip(commands, replies, strict=True):
                recording.note_read(self._client, command, reply)
        return replies

    def listen_to(self, *channels: str) -> AsyncGenerator[tuple[str, str], None]:
        """See `RedisClient`."""
        return self._client.listen_to(*channels)

    async def close_connections(self) -> None:
        """See `RedisClient`."""
        await self._client.close_connections()


def _is_read(command: Sequence[Argument]) -> bool:
    return command[0] in _READS or (command[0] == "EVALSHA" and command[1] in _READING_SCRIPTS)


def _is_plain(reply: Any) -> bool:
    """Whether redis-py gives the reply as Redis has sent it."""
    if isinstance(reply, list):
        return all(map(_is_plain, reply))
    return reply is None or type(reply) in (bytes, int)


def _pack_commands(commands: Iterable[Sequence[Argument]]) -> bytes:
    """Returns the commands in MessagePack, with 32-bit lengths: a list of lists of texts."""
    return _pack_list([_pack_list(list(map(_pack_text, command))) for command in commands])


def _pack_list(packed: Sequence[bytes]) -> bytes:
    return struct.pack(">BI", 0xDD, len(packed)) + b"".join(packed)


def _pack_text(argument: Argument) -> bytes:
    text = argument if isinstance(argument, bytes) else str(argument).encode()
    return struct.pack(">BI", 0xDB, len(text)) + text


def _digest_of(replies: list[Any]) -> bytes:
    """A digest for this process alone. Equal replies may have different digests, e.g. sets: then the work is done again."""
    return hashlib.blake2b(marshal.dumps(replies, 2), digest_size=16).digest()
