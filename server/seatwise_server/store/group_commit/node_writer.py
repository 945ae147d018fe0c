"""A writer: one task that carries appends to one Redis node, in group commits.

Measured with 50 appends in a batch, this process's CPU per append: redis-py's pipeline 19 to 21 us, its
`pack_commands` with replies read one by one 8 to 14 us, commands packed by hiredis 3.5 us. So a writer
has a connection of its own, writes each batch as one string and reads the replies from it.

Where replicas are waited for, the batch ends with WAIT, and with WAITAOF where every node knows it. WAITAOF
alone takes a second: a replica tells by itself only once a second how far its disk is. Behind a WAIT it takes
half a millisecond: the replica is asked twice, and the second time its disk has what it had the first time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoPermissionError, NoScriptError, RedisError, ResponseError, TryAgainError

from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.address import NodeAddress
from seatwise_server.store.redis.outage import is_outage
from seatwise_server.store.redis.replica_wait import ReplicaWait, pack_command

LARGEST_BATCH = 1_000
"""More appends than this go in several batches, so that each is answered in time."""

TURNS_OF_A_MESSAGE = 2
"""The first wakes its reader, in the second what it brings is put here."""

MOST_GATHERED = 4
"""So often a batch waits for more; each time takes as long as what else there is to do at once."""

APPEND = scripts.script_named("append")
TOUCH = scripts.script_named("touch")

_LOAD = [pack_command(("SCRIPT", "LOAD", script.source)) for script in (APPEND, TOUCH)]
ASKING = pack_command(("ASKING",))
"""In front of a command: it wants to be answered by a node to which its slot is only moving."""

_PING = pack_command(("PING",))

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TooFewReplicas(RedisError):
    """What was written is not on as many replicas as it has to be."""


@dataclass(frozen=True, slots=True)
class AppendTimeouts:
    """How long who waits for what, in seconds."""

    reply_s: float = 3.0
    """A batch that is not answered within this is sent again on a new connection."""
    first_retry_s: float = 0.02
    longest_retry_s: float = 0.5
    probe_s: float = 1.0
    """How often an idle writer asks whether Redis is there."""
    gone_for_good_s: float = 60.0
    """After this `on_lost` is called; the flusher goes on trying until it is closed."""
    replicas_s: float = 1.0
    """How long Redis waits for its replicas before it says how few they are."""


@dataclass(slots=True, eq=False)
class PendingAppend:
    """One append on its way."""

    match: str
    command: bytes
    first_seq: int
    entries: Sequence[bytes]
    done: Callable[[Any], None]
    hops: int = 0
    """How often it was sent on."""


class WriterOwner(Protocol):
    """Whom a writer works for; called in the event loop."""

    def on_replies(
        self, writer: NodeWriter, appends: Sequence[PendingAppend], replies: Sequence[Any]
    ) -> None:
        """The node is well and has answered these, maybe with a ResponseError."""
        ...

    def on_failure(self, writer: NodeWriter, appends: list[PendingAppend], error: Exception) -> None:
        """The node does not answer, or refuses to write for now; these are for somebody to carry again."""
        ...


class NodeWriter:
    """Carries appends to one node, in one batch all that have come together."""

    def __init__(
        self,
        address: NodeAddress,
        new_connection: Callable[[], AbstractConnection],
        office: WriterOwner,
        patience: AppendTimeouts,
        wait: ReplicaWait,
    ) -> None:
        self.address = address
        self._new_connection = new_connection
        self._office = office
        self._patience = patience
        self._wait = wait
        self._behind = wait.commands(patience.replicas_s)
        self._queue: list[PendingAppend] = []
        self._batch: list[PendingAppend] = []
        self._wake = asyncio.Event()
        self._connection: AbstractConnection | None = None
        self._pause_s = patience.first_retry_s
        self._is_dismissed = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the task in the running loop."""
        self._task = asyncio.create_task(self._run(), name=f"writer to {self.address}")

    def queue_append(self, pending: PendingAppend) -> None:
        """Goes with the next batch."""
        self._queue.append(pending)
        self._wake.set()

    def wake_probe(self) -> None:
        """Notices that a node is gone for which there is nothing to carry: an empty batch is a PING."""
        self._wake.set()

    def stop_now(self) -> tuple[list[PendingAppend], asyncio.Task[None] | None]:
        """Stops at once; what was not answered, carried or not, and the task that is ending."""
        self._is_dismissed = True
        left, self._batch, self._queue = self._batch + self._queue, [], []
        if self._task is not None:
            self._task.cancel()
        return left, self._task

    async def _run(self) -> None:
        try:
            while not self._is_dismissed:  # the word alone is not enough: redis-py may swallow a cancellation
                if not self._queue:
                    await self._wake.wait()
                await self._gather_batch()
                self._wake.clear()
                self._batch, self._queue = self._queue[:LARGEST_BATCH], self._queue[LARGEST_BATCH:]
                await self._write_batch(self._batch)
        finally:
            await self._disconnect()

    async def _gather_batch(self) -> None:
        """Waits while turns of the loop bring more: a batch costs little more than one pending, here and at the bots."""
        for _ in range(MOST_GATHERED):
            before = len(self._queue)
            for _ in range(TURNS_OF_A_MESSAGE):
                await asyncio.sleep(0)
            if len(self._queue) == before:
                return

    async def _write_batch(self, batch: list[PendingAppend]) -> None:
        replies, trouble = await self._try_batch(batch)
        if self._is_dismissed:
            return
        self._batch = []
        if replies or trouble is None:
            self._office.on_replies(self, batch[: len(replies)], replies)
        if trouble is None:
            self._pause_s = self._patience.first_retry_s
            return
        left, self._queue = batch[len(replies) :] + self._queue, []
        self._office.on_failure(self, left, trouble)
        await self._disconnect()
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, self._patience.longest_retry_s)
        self._wake.set()

    async def _try_batch(self, batch: list[PendingAppend]) -> tuple[list[Any], Exception | None]:
        """The replies before the first that asks for another attempt, and that one.

        What comes behind it is sent again too: most of it would fare no better.
        """
        commands = [pending.command for pending in batch]
        try:
            replies = await self._exchange_loading_scripts(
                [*commands, *self._behind] if commands else [_PING]
            )
            if commands and self._behind:
                self._check_replicas(replies[len(commands) :])
                del replies[len(commands) :]
        except Exception as error:
            if not is_outage(error) and not isinstance(error, TooFewReplicas):
                _log.exception("flush_failed")
            return [], error
        for number, reply in enumerate(replies):
            if type(reply) is not int and _is_trouble(reply):
                return replies[:number], reply
        return replies[: len(batch)], None

    async def _exchange_loading_scripts(self, commands: list[bytes]) -> list[Any]:
        """The replies, after loading the scripts where the node does not know them."""
        replies = await self._exchange(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            replies = (await self._exchange([*_LOAD, *commands]))[len(_LOAD) :]
        return replies

    async def _exchange(self, commands: list[bytes]) -> list[Any]:
        """One reply or ResponseError for each command; raises when the connection fails or is silent."""
        replies: list[Any] = []
        async with asyncio.timeout(self._patience.reply_s):
            connection = self._connection or await self._connect()
            await connection.send_packed_command(b"".join(commands), check_health=False)
            for command in commands:
                if command.startswith(ASKING):  # goes with the command that it is for, and says only OK
                    await connection.read_response()
                try:
                    replies.append(await connection.read_response())
                except ResponseError as error:
                    replies.append(error)
        return replies

    def _check_replicas(self, replies: list[Any]) -> None:
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
            count = reply[1] if isinstance(reply, list) else reply
            if count < self._wait.replicas:
                raise TooFewReplicas(f"{count} of {self._wait.replicas} replicas have it")

    async def _connect(self) -> AbstractConnection:
        connection = self._new_connection()
        connection.socket_timeout = None  # one timeout for the batch, not one for each reply
        self._connection = connection
        await connection.connect()  # type: ignore[no-untyped-call]
        return connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(RedisError, OSError):
                await connection.disconnect(nowait=True)


def _is_trouble(reply: Any) -> bool:
    """Whether the node cannot do it now; that it cannot do it for one slot (TRYAGAIN) is another matter."""
    if isinstance(reply, TryAgainError):
        return False
    return is_outage(reply) or isinstance(reply, NoScriptError | NoPermissionError)
