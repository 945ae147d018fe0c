"""The flusher: writes the appends of all matches, in order for each match, and again if Redis has lost them."""

from __future__ import annotations

import asyncio
import marshal
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, TypeAlias

import structlog
from redis.exceptions import ResponseError

from seatwise_server.store.group_commit.node_writer import AppendTimeouts, PendingAppend, PendingTouch
from seatwise_server.store.group_commit.router import AppendRouter, Listeners, call_safely, ignore_event
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.durability import ReplicaWait

PACKED_FROM = 4_096
"""The number of bytes of entries that are packed together. A smaller number would compress worse; a larger one would leave more unpacked."""
_WINDOW_BITS, _MEMORY_LEVEL = 12, 5
"""Suited to 4 kB: zlib takes 10 us for a pack so, and else 56 us, most of them to clear its memory (measured)."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class JournalTail:
    """All entries of one match, most of them compressed: they take about a quarter of their size in Redis."""

    __slots__ = ("_packs", "_recent", "_size", "count", "epoch", "owner")

    def __init__(self, epoch: int, owner: str, entries: Sequence[bytes] = ()) -> None:
        self.epoch = epoch
        self.owner = owner
        self.count = 0
        """The number of entries, and so the number of the last one."""
        self._packs: list[tuple[int, bytes]] = []
        self._recent: list[bytes] = []
        self._size = 0
        self.add_entries(entries)

    def add_entries(self, entries: Sequence[bytes]) -> None:
        """Add the next entries."""
        self._recent += entries
        self.count += len(entries)
        self._size += sum(map(len, entries))
        if self._size > PACKED_FROM:
            packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
            packed = packer.compress(marshal.dumps(self._recent)) + packer.flush()
            self._packs.append((len(self._recent), packed))
            self._recent, self._size = [], 0

    def entries_after(self, seq: int) -> list[bytes]:
        """Return the entries after that number."""
        found = self._recent
        first = self.count - len(found)
        for count, packed in reversed(self._packs):
            if first <= seq:
                break
            found = marshal.loads(zlib.decompress(packed)) + found
            first -= count
        return found[max(0, seq - first) :]


class AppendResult(IntEnum):
    """Redis's answer to a fenced write."""

    FENCED = 0
    """The match is not ours, or its journal is not as expected: give the match up."""
    OK = 1
    ALREADY = 2
    """The same bytes are already in the journal, because a reply was lost: as good as OK."""
    LOST = 3
    """Redis has forgotten in a failover that the match is ours: call `Journal.reclaim_match`, or give the match up.

    Only for a match whose tail is kept; for others the answer is FENCED.
    """

    def __init__(self, _: int) -> None:
        self.is_kept = self.name in ("OK", "ALREADY")
        """Whether the entries are written. Each move asks, and a property is slow."""


Done: TypeAlias = Callable[[AppendResult], None]

_RESULTS = tuple(AppendResult(number) for number in range(4))


class Flusher:
    """Writes appends to Redis for all matches of a process.

    Each match has one append under way at a time, and `done` is called in their order. While a node is gone its appends
    wait; then they are sent again to the node that has its slots. The script recognises repeats, so nothing is written twice.

    If Redis has forgotten entries of a match whose tail is kept, they are written again. This happens when an
    append finds the journal too short, after each outage, and after each change of the topology.
    """

    def __init__(
        self,
        client: RedisClient,
        listeners: Listeners | None = None,
        patience: AppendTimeouts | None = None,
        wait: ReplicaWait | None = None,
    ) -> None:
        """The flusher has connections of its own to the Redis of this client."""
        self._listeners = listeners or Listeners()
        self._wait = wait or ReplicaWait()
        self._pending: dict[str, list[PendingAppend] | None] = {}
        """Matches with an append under way, each with the appends that wait behind it."""
        self._tails: dict[str, JournalTail] = {}
        self._settled = asyncio.Event()
        self._router = AppendRouter(
            client.routes,
            replace(self._listeners, on_up=self._on_recovery),
            patience or AppendTimeouts(),
            self._wait,
            self._on_reply,
            self._check_all_tails,
        )
        self.mends = 0
        """The number of times that lost entries of a journal were written again."""

    @property
    def healthy(self) -> bool:
        """Whether all nodes work, and everything that an outage delayed is written."""
        return self._router.down_since is None

    @property
    def down_since(self) -> float | None:
        """Monotonic seconds of the first failure of the present outage; None if there is none."""
        return self._router.down_since

    def start(self) -> None:
        """Start the tasks in the running loop."""
        self._router.start()

    async def close(self, timeout_s: float = 5.0) -> bool:
        """Send what is queued, then stops; returns whether everything was answered within the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._pending:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            pass
        await self._router.close()
        return not self._pending

    # Appending

    def append_entries(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes], done: Done
    ) -> None:
        """Queue all entries of one command for the match's journal, from number `first_seq` on (the first is 1).

        `done` is called once, in the event loop, when Redis has answered. It is never called if the flusher is closed before
        that. It must be quick. Without entries this only checks that the journal reaches up to `first_seq`.
        """
        self._accept_append(PendingAppend(match, epoch, owner, first_seq, entries, done))

    async def append_and_wait(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes]
    ) -> AppendResult:
        """Like `append_entries`, but waits for the answer."""
        answer, settle = _future_answer()
        self.append_entries(match, epoch, owner, first_seq, entries, settle)
        return await answer

    async def wait_for_replicas(self, match: str) -> None:
        """Wait until enough replicas have the writes to the match that are not appends."""
        if self._wait.replicas:
            answer, settle = _future_answer()
            self._accept_append(PendingTouch(match, 0, "", 0, (), settle))
            await answer

    def _accept_append(self, pending: PendingAppend) -> None:
        if pending.match not in self._pending:
            self._pending[pending.match] = None
            self._router.send_append(pending)
            return
        line = self._pending[pending.match] = self._pending[pending.match] or []
        line.append(pending)

    def _on_reply(self, pending: PendingAppend, reply: Any) -> None:
        held = self._tails.get(pending.match)
        if isinstance(reply, ResponseError):
            _log.error("append_refused", match=pending.match, error=str(reply))
            reply = AppendResult.FENCED
        if reply < 0:
            if held is not None and self._prepend_missing(pending, held, -1 - reply):
                self._router.send_append(pending)
                return
            reply = AppendResult.FENCED
        answer = _RESULTS[reply]
        if held is None:
            answer = AppendResult.FENCED if answer is AppendResult.LOST else answer
        elif answer.is_kept and pending.first_seq == held.count + 1:
            held.add_entries(pending.entries)
        self._settle_append(pending, answer)

    def _settle_append(self, pending: PendingAppend, answer: AppendResult) -> None:
        line = self._pending[pending.match]
        if line:
            self._router.send_append(line.pop(0))
        else:
            del self._pending[pending.match]
            if not self._pending:
                self._settled.set()
        call_safely(pending.done, answer)

    # Journals of which Redis has forgotten a part

    def keep_tail(self, match: str, epoch: int, owner: str, entries: Sequence[bytes]) -> None:
        """Keep these entries of the match's journal, and all later ones, to write them again if Redis forgets them."""
        self._tails[match] = JournalTail(epoch, owner, entries)

    def drop_tail(self, match: str) -> None:
        """Stop keeping the entries of the match's journal; nothing happens if they are not kept."""
        self._tails.pop(match, None)

    def tail_entries(self, match: str) -> list[bytes]:
        """Return the entries of the match's journal, as this process knows them; raises KeyError if they are not kept."""
        return self._tails[match].entries_after(0)

    async def rewrite_missing(self, match: str) -> AppendResult:
        """Wait until the journal has all kept entries; raises KeyError if none are kept for the match."""
        answer, settle = _future_answer()
        self._check_tail(match, settle)
        return await answer

    def _check_tail(self, match: str, done: Done) -> None:
        held = self._tails[match]
        self.append_entries(match, held.epoch, held.owner, held.count + 1, (), done)

    def _check_all_tails(self) -> None:
        """Check all journals except those with an append under way: that append does it."""
        for match in self._tails.keys() - self._pending.keys():
            self._check_tail(match, ignore_event)

    def _on_recovery(self, gap_s: float) -> None:
        call_safely(self._listeners.on_up, gap_s)
        self._check_all_tails()

    def _prepend_missing(self, pending: PendingAppend, held: JournalTail, last_seq: int) -> bool:
        """Add the entries that the journal has lost before those of the append; returns False if that is impossible."""
        tail = held.entries_after(last_seq)
        if last_seq + len(tail) + 1 != pending.first_seq:
            _log.error("journal_lost", match=pending.match, last_seq=last_seq, held=held.count)
            return False
        _log.warning("journal_entries_written_again", match=pending.match, last_seq=last_seq, held=held.count)
        pending.epoch, pending.owner, pending.missing = held.epoch, held.owner, tail
        self.mends += 1
        return True


def _future_answer() -> tuple[asyncio.Future[AppendResult], Done]:
    answer: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()

    def settle(it: AppendResult) -> None:
        if not answer.done():  # the waiting task may have been cancelled
            answer.set_result(it)

    return answer, settle
