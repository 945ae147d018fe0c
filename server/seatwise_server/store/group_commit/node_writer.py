"""A writer: one task that sends appends to one Redis node, in group commits.

This process's CPU per append was measured with 50 appends in a batch. redis-py's pipeline takes 19 to 21 us;
its `pack_commands` with replies read one by one takes 8 to 14 us; commands packed by hiredis take 3.5 us. So a
writer has a connection of its own, which redis-py makes, writes each batch as one string and reads the replies itself.

The script `append` checks that a match is its owner's and that its journal has all entries before. From then on a single entry
goes without it, by XADD, which costs Redis half as much. Redis accepts that only if no claim came in between, and only into a
journal that exists (see the script). It cannot see entries that Redis has forgotten. That happens only in a failover, in which the
connection ends, or no write succeeds for a while. So each connection, and each such pause, begins with the script again, and so does
every append whose answer is in doubt.

If replicas are waited for, the batch ends with WAIT, and also with WAITAOF if every node knows it. WAITAOF
alone takes a second: a replica reports only once a second how far its disk is. After a WAIT it takes half a
millisecond: the replica is asked twice, and the second time its disk has what it had the first time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AskError, MovedError, NoPermissionError, NoScriptError, RedisError, TryAgainError

from seatwise_server.store import keys
from seatwise_server.store.group_commit.batch_connection import BatchConnection
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.address import NodeAddress
from seatwise_server.store.redis.client import is_outage, pack_command
from seatwise_server.store.redis.durability import ReplicaWait

LARGEST_BATCH = 1_000
"""More appends than this are split into several batches, so that each is answered in time."""

TURNS_OF_A_MESSAGE = 2
"""A message takes two turns of the event loop: the first wakes its reader, in the second its append is queued here."""

MOST_GATHERED = 4
"""The most times that a batch waits for more appends. Each wait lasts one round of the other tasks that are ready."""

LONGEST_PAUSE_S = 1.0
"""After a longer time without a successful write, each match is checked again. No node is replaced and put back within it."""

MOST_CHECKED = 20_000
"""The most matches to remember as checked. Matches that are over are not taken out one by one."""

APPEND = scripts.script_named("append")
TOUCH = scripts.script_named("touch")

_LOAD = [pack_command(("SCRIPT", "LOAD", script.source)) for script in (APPEND, TOUCH)]
ASKING = pack_command(("ASKING",))
"""Prefix of a command that makes a node answer for a slot that is still moving to it."""

_KEPT = (1, 2)
"""The answers of the script after which the match is the owner's, and its journal ends with the entries."""

_PING = pack_command(("PING",))

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TooFewReplicas(RedisError):
    """The entries are not on as many replicas as required."""


@dataclass(frozen=True, slots=True)
class AppendTimeouts:
    """The timeouts of appends, in seconds."""

    reply_s: float = 3.0
    """A batch that is not answered within this time is sent again on a new connection."""
    first_retry_s: float = 0.02
    longest_retry_s: float = 0.5
    probe_s: float = 1.0
    """The time between two checks by an idle writer that Redis is there."""
    gone_for_good_s: float = 60.0
    """After this time `on_lost` is called; the flusher keeps trying until it is closed."""
    replicas_s: float = 1.0
    """How long Redis waits for its replicas before it reports how many have the entries."""


@dataclass(slots=True, eq=False)
class PendingAppend:
    """One append that is not answered yet."""

    match: str
    epoch: int
    owner: str
    first_seq: int
    entries: Sequence[bytes]
    done: Callable[[Any], None]
    hops: int = 0
    """The number of times that it was redirected."""
    is_asking: bool = False
    """Whether the node is to answer for a slot that is still moving to it."""
    missing: Sequence[bytes] = ()
    """The entries before the first one that Redis has forgotten, and that are written again with it."""
    is_plain: bool = False
    """Whether it was sent without the script the last time."""

    def script_command(self) -> bytes:
        """Return the script that checks the match, and appends."""
        fence, journal = keys.append_keys(self.match)
        first = (self.epoch, self.owner, self.first_seq - len(self.missing))
        command = pack_command(
            ("EVALSHA", APPEND.sha, 2, fence, journal, *first, *self.missing, *self.entries)
        )
        return ASKING + command if self.is_asking else command

    def plain_command(self) -> bytes:
        """Return the command that appends the only entry to a match that was checked."""
        entry_id = b"%d-%d" % (self.first_seq, self.epoch - 1)
        return pack_command(
            ("XADD", keys.append_keys(self.match)[1], "NOMKSTREAM", entry_id, "e", self.entries[0])
        )


class PendingTouch(PendingAppend):
    """A command that changes nothing, so that a WAIT after it waits for the earlier writes to the match."""

    __slots__ = ()

    def script_command(self) -> bytes:
        """Return the script."""
        command = pack_command(("EVALSHA", TOUCH.sha, 1, keys.match_fence(self.match)))
        return ASKING + command if self.is_asking else command


class NodeWriter:
    """Sends appends to one node; all that arrived together go in one batch."""

    def __init__(
        self,
        address: NodeAddress,
        new_connection: Callable[[], AbstractConnection],
        on_replies: Callable[[NodeWriter, Sequence[PendingAppend], Sequence[Any]], None],
        on_failure: Callable[[NodeWriter, list[PendingAppend], Exception], None],
        patience: AppendTimeouts,
        wait: ReplicaWait,
    ) -> None:
        self.address = address
        self._new_connection = new_connection
        self._on_replies = on_replies
        self._on_failure = on_failure
        self._patience = patience
        self._wait = wait
        self._wait_commands = wait.commands(patience.replicas_s)
        self._queue: list[PendingAppend] = []
        self._batch: list[PendingAppend] = []
        self._wake = asyncio.Event()
        self._connection: AbstractConnection | None = None
        self._checked: dict[str, tuple[int, int]] = {}
        """For each match that this connection has checked: the epoch of its owner, and the number of the next entry."""
        self._written_s = 0.0
        """The time of the last successful write, on the clock of the loop."""
        self._batches: BatchConnection | None = None
        """The same connection, without the streams of redis-py."""
        self._was_alone = False
        """Whether the last batch had only one append."""
        self._pause_s = patience.first_retry_s
        self._is_dismissed = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task in the running loop."""
        self._task = asyncio.create_task(self._run(), name=f"writer to {self.address}")

    def queue_append(self, pending: PendingAppend) -> None:
        """Queue the append for the next batch."""
        self._queue.append(pending)
        self._wake.set()

    def wake_probe(self) -> None:
        """Check that the node is there although nothing is queued: an empty batch is a PING."""
        self._wake.set()

    def stop_now(self) -> tuple[list[PendingAppend], asyncio.Task[None] | None]:
        """Stop at once; returns all appends that are not answered, sent or not, and the task that is ending."""
        self._is_dismissed = True
        left, self._batch, self._queue = self._batch + self._queue, [], []
        if self._task is not None:
            self._task.cancel()
        return left, self._task

    async def _run(self) -> None:
        try:
            while not self._is_dismissed:  # a cancellation is not enough: redis-py may swallow it
                if not self._queue:
                    await self._wake.wait()
                await self._gather_batch()
                self._wake.clear()
                self._batch, self._queue = self._queue[:LARGEST_BATCH], self._queue[LARGEST_BATCH:]
                self._was_alone = len(self._batch) < 2
                await self._write_batch(self._batch)
        finally:
            await self._disconnect()

    async def _gather_batch(self) -> None:
        """Wait while turns of the loop bring more appends: a batch costs little more than one append, here and at the bots.

        Where few moves come nothing is gained, and each turn costs more than it does at full load.
        """
        if self._was_alone and len(self._queue) < 2:
            return
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
            self._on_replies(self, *self._settle_replies(batch[: len(replies)], replies))
        if trouble is None:
            self._pause_s = self._patience.first_retry_s
            return
        left, self._queue = batch[len(replies) :] + self._queue, []
        self._on_failure(self, left, trouble)
        await self._disconnect()
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, self._patience.longest_retry_s)
        self._wake.set()

    async def _try_batch(self, batch: list[PendingAppend]) -> tuple[list[Any], Exception | None]:
        """Return the replies before the first one that requires another attempt, and that one.

        All appends after that one are sent again too, because most of them would fail as well.
        """
        silent_s = asyncio.get_running_loop().time() - self._written_s
        if silent_s > LONGEST_PAUSE_S or len(self._checked) > MOST_CHECKED:
            self._checked.clear()
        commands = [self._command_of(pending) for pending in batch]
        try:
            replies = await self._exchange_loading_scripts(
                [*commands, *self._wait_commands] if commands else [_PING]
            )
            if commands and self._wait_commands:
                self._check_replicas(replies[len(commands) :])
                del replies[len(commands) :]
        except Exception as error:
            if not is_outage(error) and not isinstance(error, TooFewReplicas):
                _log.exception("flush_failed")
            return [], error
        for number, reply in enumerate(replies):
            if isinstance(reply, Exception) and _is_trouble(reply):
                return replies[:number], reply
        return replies[: len(batch)], None

    def _command_of(self, it: PendingAppend) -> bytes:
        is_next = self._checked.pop(it.match, None) == (it.epoch, it.first_seq)
        it.is_plain = is_next and len(it.entries) == 1 and not (it.missing or it.is_asking)
        return it.plain_command() if it.is_plain else it.script_command()

    def _settle_replies(
        self, batch: Sequence[PendingAppend], replies: Sequence[Any]
    ) -> tuple[list[PendingAppend], list[Any]]:
        """Return the appends that are answered, with their answers. The others are queued again, and go by the script.

        An XADD is answered with its id. No id or an error means that the match is another owner's, that the entry is there already or
        that Redis has lost the journal: the script says which.
        """
        answered: list[PendingAppend] = []
        answers: list[Any] = []
        in_doubt: list[PendingAppend] = []
        checked = self._checked
        for pending, reply in zip(batch, replies, strict=True):
            if type(reply) is bytes:
                reply = 1
            if reply in _KEPT and pending.entries:
                checked[pending.match] = pending.epoch, pending.first_seq + len(pending.entries)
            elif isinstance(reply, MovedError):
                checked.clear()
            elif pending.is_plain and not isinstance(reply, AskError | TryAgainError):
                in_doubt.append(pending)
                continue
            answered.append(pending)
            answers.append(reply)
        if answered:
            self._written_s = asyncio.get_running_loop().time()
        if in_doubt:
            self._queue = in_doubt + self._queue
            self._wake.set()
        return answered, answers

    async def _exchange_loading_scripts(self, commands: list[bytes]) -> list[Any]:
        """Return the replies, after loading the scripts if the node does not know them."""
        replies = await self._exchange(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            replies = (await self._exchange([*_LOAD, *commands]))[len(_LOAD) :]
        return replies

    async def _exchange(self, commands: list[bytes]) -> list[Any]:
        """Return one reply or ResponseError for each command; raises if the connection fails or is silent."""
        batches = self._batches or await self._connect()
        asks = [number for number, command in enumerate(commands) if command.startswith(ASKING)]
        wanted = len(commands) + len(asks)
        replies = await batches.send_batch(b"".join(commands), wanted, self._patience.reply_s)
        for number in asks:  # ASKING belongs to the command after it, and is answered with OK
            del replies[number]
        return replies

    def _check_replicas(self, replies: list[Any]) -> None:
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
            count = reply[1] if isinstance(reply, list) else reply
            if count < self._wait.replicas:
                raise TooFewReplicas(f"{count} of {self._wait.replicas} replicas have it")

    async def _connect(self) -> BatchConnection:
        connection: Any = self._new_connection()
        self._connection = connection
        async with asyncio.timeout(self._patience.reply_s):
            await connection.connect()
        self._batches = BatchConnection(connection._writer.transport)  # redis-py gives it no name
        return self._batches

    async def _disconnect(self) -> None:
        connection, self._connection, self._batches = self._connection, None, None
        self._checked.clear()
        if connection is not None:
            with contextlib.suppress(RedisError, OSError):
                await connection.disconnect(nowait=True)


def _is_trouble(reply: Any) -> bool:
    """Whether the node cannot execute any append now. TRYAGAIN is different: it concerns only one slot."""
    if isinstance(reply, TryAgainError):
        return False
    return is_outage(reply) or isinstance(reply, NoScriptError | NoPermissionError)
