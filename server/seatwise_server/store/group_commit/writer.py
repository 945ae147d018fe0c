"""The flusher: all appends of all matches, in the order of each match, and again where Redis has forgotten them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, TypeAlias

import structlog
from redis.exceptions import ResponseError

from seatwise_server.store import keys
from seatwise_server.store.group_commit.journal_tail import JournalTail
from seatwise_server.store.group_commit.node_writer import APPEND, TOUCH, AppendTimeouts, PendingAppend
from seatwise_server.store.group_commit.router import AppendRouter, Listeners, call_safely
from seatwise_server.store.redis.client import RedisClient
from seatwise_server.store.redis.replica_wait import ReplicaWait, pack_command
from seatwise_server.store.redis.topology import Topology

__all__ = ["AppendResult", "AppendTimeouts", "Done", "Flusher", "Listeners"]


class AppendResult(IntEnum):
    """What Redis says to a fenced write."""

    FENCED = 0
    """The match is not ours, or its journal is not where we think: let go of it."""
    OK = 1
    ALREADY = 2
    """The same bytes stand there already, a reply was lost: as good as OK."""
    LOST = 3
    """In a failover Redis has forgotten that the match is ours: `Journal.reclaim` it, or let go of it.

    Only for a match that is held; for others that is FENCED.
    """

    @property
    def is_kept(self) -> bool:
        """Whether it is written."""
        return self in (AppendResult.OK, AppendResult.ALREADY)


Done: TypeAlias = Callable[[AppendResult], None]

_RESULTS = tuple(AppendResult(number) for number in range(4))

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Flusher:
    """Carries appends to Redis, whoever owns the matches.

    `append` only queues. One writer for each node takes what is queued for it, sends it as one batch, awaits
    all replies, and repeats. Of one match one append is under way at a time, and `done` is called in their
    order. While a node is gone its appends wait; they are sent again to whoever has its slots then. The script
    knows its own repeats, so nothing is written twice.

    A match that is held is written again where Redis has forgotten entries: when an append finds its journal
    too short, after each outage, and after each change of who holds what.
    """

    def __init__(
        self,
        routes: Topology,
        listeners: Listeners | None = None,
        patience: AppendTimeouts | None = None,
        wait: ReplicaWait | None = None,
    ) -> None:
        self._listeners = listeners or Listeners()
        self._wait = wait or ReplicaWait()
        self._lines: dict[str, list[PendingAppend] | None] = {}
        """Matches that have a pending under way, and those that wait behind it."""
        self._held: dict[str, JournalTail] = {}
        self._settled = asyncio.Event()
        self._router = self._new_router(routes, patience or AppendTimeouts())
        self.mends = 0
        """How often a journal had lost entries and got them back."""

    @classmethod
    def of(
        cls,
        client: RedisClient,
        listeners: Listeners | None = None,
        patience: AppendTimeouts | None = None,
        wait: ReplicaWait | None = None,
    ) -> Flusher:
        """A flusher to the Redis of this client, on connections of its own."""
        return cls(client.routes, listeners, patience, wait)

    def _new_router(self, routes: Topology, patience: AppendTimeouts) -> AppendRouter:
        listeners = replace(self._listeners, on_up=self._on_recovery)
        return AppendRouter(routes, listeners, patience, self._wait, self._on_reply, self._check_all_tails)

    @property
    def healthy(self) -> bool:
        """Whether all nodes work, and all that an outage has held up is written."""
        return self._router.down_since is None

    @property
    def down_since(self) -> float | None:
        """Monotonic seconds of the first failure of the present outage, None while all is well."""
        return self._router.down_since

    def start(self) -> None:
        """Starts the tasks in the running loop."""
        self._router.start()

    async def close(self, timeout_s: float = 5.0) -> bool:
        """Sends what is queued, then stops; says whether everything was answered in that time."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._lines:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            pass
        await self._router.close()
        return not self._lines

    # Appending

    def append_entries(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes], done: Done
    ) -> None:
        """Queues all entries of one command for the match's journal, from `first_seq` on (the first is 1).

        `done` is called once, in the event loop, when Redis has answered; never when the flusher is closed
        before that. It must be quick. No entries: only looks whether the journal reaches to `first_seq`.
        """
        self._accept_append(
            PendingAppend(
                match, _append_command(match, epoch, owner, first_seq, entries), first_seq, entries, done
            )
        )

    async def append_and_wait(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes]
    ) -> AppendResult:
        """`append` for those who would rather wait."""
        answer, settle = _future_answer()
        self.append_entries(match, epoch, owner, first_seq, entries, settle)
        return await answer

    async def wait_for_replicas(self, match: str) -> None:
        """Returns when as many replicas as are waited for have what others than appends wrote about the match."""
        if self._wait.replicas:
            answer, settle = _future_answer()
            command = pack_command(("EVALSHA", TOUCH.sha, 1, keys.match_fence(match)))
            self._accept_append(PendingAppend(match, command, 0, (), settle))
            await answer

    def _accept_append(self, pending: PendingAppend) -> None:
        if pending.match not in self._lines:
            self._lines[pending.match] = None
            self._router.send_append(pending)
            return
        line = self._lines[pending.match] = self._lines[pending.match] or []
        line.append(pending)

    def _on_reply(self, pending: PendingAppend, reply: Any) -> None:
        held = self._held.get(pending.match)
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
        line = self._lines[pending.match]
        if line:
            self._router.send_append(line.pop(0))
        else:
            del self._lines[pending.match]
            if not self._lines:
                self._settled.set()
        call_safely(pending.done, answer)

    # Journals that Redis has forgotten a part of

    def keep_tail(self, match: str, epoch: int, owner: str, entries: Sequence[bytes]) -> None:
        """From now on keeps what is in the match's journal, so that it can be written again if Redis forgets it.

        `entries` is all that is there now; what is appended comes by itself.
        """
        self._held[match] = JournalTail(epoch, owner, entries)

    def drop_tail(self, match: str) -> None:
        """Forgets what is in the match's journal; nothing happens when it is not held."""
        self._held.pop(match, None)

    def tail_entries(self, match: str) -> list[bytes]:
        """All that is in the match's journal, as this process knows; raises KeyError when it is not held."""
        return self._held[match].entries_after(0)

    async def rewrite_missing(self, match: str) -> AppendResult:
        """Returns when the journal has all that is held of it; raises KeyError when the match is not held."""
        answer, settle = _future_answer()
        self._check_tail(match, settle)
        return await answer

    def _check_tail(self, match: str, done: Done) -> None:
        held = self._held[match]
        self.append_entries(match, held.epoch, held.owner, held.count + 1, (), done)

    def _check_all_tails(self) -> None:
        """Those that have an append under way mend themselves."""
        for match in self._held.keys() - self._lines.keys():
            self._check_tail(match, _ignore_answer)

    def _on_recovery(self, gap_s: float) -> None:
        call_safely(self._listeners.on_up, gap_s)
        self._check_all_tails()

    def _prepend_missing(self, pending: PendingAppend, held: JournalTail, last_seq: int) -> bool:
        """Puts in front of the pending's entries those that the journal has lost; False when that cannot be."""
        tail = held.entries_after(last_seq)
        if last_seq + len(tail) + 1 != pending.first_seq:
            _log.error("journal_lost", match=pending.match, last_seq=last_seq, held=held.count)
            return False
        _log.warning("journal_went_back", match=pending.match, last_seq=last_seq, held=held.count)
        entries = [*tail, *pending.entries]
        pending.command = _append_command(pending.match, held.epoch, held.owner, last_seq + 1, entries)
        self.mends += 1
        return True


def _append_command(match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes]) -> bytes:
    fence, journal = keys.append_keys(match)
    return pack_command(("EVALSHA", APPEND.sha, 2, fence, journal, epoch, owner, first_seq, *entries))


def _future_answer() -> tuple[asyncio.Future[AppendResult], Done]:
    answer: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()

    def settle(it: AppendResult) -> None:
        if not answer.done():  # the waiter may have been cancelled
            answer.set_result(it)

    return answer, settle


def _ignore_answer(_: AppendResult) -> None:
    """Nobody waits for it."""
