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
from seatwise_server.store.group_commit.journal_tail import Held
from seatwise_server.store.group_commit.node_writer import APPEND, TOUCH, Parcel, Patience
from seatwise_server.store.group_commit.router import Dispatch, Listeners, safely
from seatwise_server.store.redis.client import Client
from seatwise_server.store.redis.replica_wait import ReplicaWait, pack_command
from seatwise_server.store.redis.topology import Routes

__all__ = ["Answer", "Done", "Flusher", "Listeners", "Patience"]


class Answer(IntEnum):
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
        return self in (Answer.OK, Answer.ALREADY)


Done: TypeAlias = Callable[[Answer], None]

_ANSWERS = tuple(Answer(number) for number in range(4))

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Flusher:
    """Carries appends to Redis, whoever owns the matches.

    `append` only queues. One courier for each node takes what is queued for it, sends it as one batch, awaits
    all replies, and repeats. Of one match one append is under way at a time, and `done` is called in their
    order. While a node is gone its appends wait; they are sent again to whoever has its slots then. The script
    knows its own repeats, so nothing is written twice.

    A match that is held is written again where Redis has forgotten entries: when an append finds its journal
    too short, after each outage, and after each change of who holds what.
    """

    def __init__(
        self,
        routes: Routes,
        listeners: Listeners | None = None,
        patience: Patience | None = None,
        wait: ReplicaWait | None = None,
    ) -> None:
        self._listeners = listeners or Listeners()
        self._wait = wait or ReplicaWait()
        self._lines: dict[str, list[Parcel] | None] = {}
        """Matches that have a parcel under way, and those that wait behind it."""
        self._held: dict[str, Held] = {}
        self._settled = asyncio.Event()
        self._dispatch = self._new_dispatch(routes, patience or Patience())
        self.mends = 0
        """How often a journal had lost entries and got them back."""

    @classmethod
    def of(
        cls,
        client: Client,
        listeners: Listeners | None = None,
        patience: Patience | None = None,
        wait: ReplicaWait | None = None,
    ) -> Flusher:
        """A flusher to the Redis of this client, on connections of its own."""
        return cls(client.routes, listeners, patience, wait)

    def _new_dispatch(self, routes: Routes, patience: Patience) -> Dispatch:
        listeners = replace(self._listeners, on_up=self._came_back)
        return Dispatch(routes, listeners, patience, self._wait, self._replied, self._mend_all)

    @property
    def healthy(self) -> bool:
        """Whether all nodes work, and all that an outage has held up is written."""
        return self._dispatch.down_since is None

    @property
    def down_since(self) -> float | None:
        """Monotonic seconds of the first failure of the present outage, None while all is well."""
        return self._dispatch.down_since

    def start(self) -> None:
        """Starts the tasks in the running loop."""
        self._dispatch.start()

    async def close(self, timeout_s: float = 5.0) -> bool:
        """Sends what is queued, then stops; says whether everything was answered in that time."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._lines:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            pass
        await self._dispatch.close()
        return not self._lines

    # Appending

    def append(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes], done: Done
    ) -> None:
        """Queues all entries of one command for the match's journal, from `first_seq` on (the first is 1).

        `done` is called once, in the event loop, when Redis has answered; never when the flusher is closed
        before that. It must be quick. No entries: only looks whether the journal reaches to `first_seq`.
        """
        self._take(Parcel(match, _command(match, epoch, owner, first_seq, entries), first_seq, entries, done))

    async def appended(
        self, match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes]
    ) -> Answer:
        """`append` for those who would rather wait."""
        answer, settle = _promise()
        self.append(match, epoch, owner, first_seq, entries, settle)
        return await answer

    async def replicated(self, match: str) -> None:
        """Returns when as many replicas as are waited for have what others than appends wrote about the match."""
        if self._wait.replicas:
            answer, settle = _promise()
            command = pack_command(("EVALSHA", TOUCH.sha, 1, keys.match_fence(match)))
            self._take(Parcel(match, command, 0, (), settle))
            await answer

    def _take(self, parcel: Parcel) -> None:
        if parcel.match not in self._lines:
            self._lines[parcel.match] = None
            self._dispatch.send(parcel)
            return
        line = self._lines[parcel.match] = self._lines[parcel.match] or []
        line.append(parcel)

    def _replied(self, parcel: Parcel, reply: Any) -> None:
        held = self._held.get(parcel.match)
        if isinstance(reply, ResponseError):
            _log.error("append_refused", match=parcel.match, error=str(reply))
            reply = Answer.FENCED
        if reply < 0:
            if held is not None and self._lengthen(parcel, held, -1 - reply):
                self._dispatch.send(parcel)
                return
            reply = Answer.FENCED
        answer = _ANSWERS[reply]
        if held is None:
            answer = Answer.FENCED if answer is Answer.LOST else answer
        elif answer.is_kept and parcel.first_seq == held.count + 1:
            held.add(parcel.entries)
        self._settle(parcel, answer)

    def _settle(self, parcel: Parcel, answer: Answer) -> None:
        line = self._lines[parcel.match]
        if line:
            self._dispatch.send(line.pop(0))
        else:
            del self._lines[parcel.match]
            if not self._lines:
                self._settled.set()
        safely(parcel.done, answer)

    # Journals that Redis has forgotten a part of

    def hold(self, match: str, epoch: int, owner: str, entries: Sequence[bytes]) -> None:
        """From now on keeps what is in the match's journal, so that it can be written again if Redis forgets it.

        `entries` is all that is there now; what is appended comes by itself.
        """
        self._held[match] = Held(epoch, owner, entries)

    def release(self, match: str) -> None:
        """Forgets what is in the match's journal; nothing happens when it is not held."""
        self._held.pop(match, None)

    def held(self, match: str) -> list[bytes]:
        """All that is in the match's journal, as this process knows; raises KeyError when it is not held."""
        return self._held[match].after(0)

    async def mend(self, match: str) -> Answer:
        """Returns when the journal has all that is held of it; raises KeyError when the match is not held."""
        answer, settle = _promise()
        self._look(match, settle)
        return await answer

    def _look(self, match: str, done: Done) -> None:
        held = self._held[match]
        self.append(match, held.epoch, held.owner, held.count + 1, (), done)

    def _mend_all(self) -> None:
        """Those that have an append under way mend themselves."""
        for match in self._held.keys() - self._lines.keys():
            self._look(match, _nothing)

    def _came_back(self, gap_s: float) -> None:
        safely(self._listeners.on_up, gap_s)
        self._mend_all()

    def _lengthen(self, parcel: Parcel, held: Held, last_seq: int) -> bool:
        """Puts in front of the parcel's entries those that the journal has lost; False when that cannot be."""
        tail = held.after(last_seq)
        if last_seq + len(tail) + 1 != parcel.first_seq:
            _log.error("journal_lost", match=parcel.match, last_seq=last_seq, held=held.count)
            return False
        _log.warning("journal_went_back", match=parcel.match, last_seq=last_seq, held=held.count)
        entries = [*tail, *parcel.entries]
        parcel.command = _command(parcel.match, held.epoch, held.owner, last_seq + 1, entries)
        self.mends += 1
        return True


def _command(match: str, epoch: int, owner: str, first_seq: int, entries: Sequence[bytes]) -> bytes:
    fence, journal = keys.append_keys(match)
    return pack_command(("EVALSHA", APPEND.sha, 2, fence, journal, epoch, owner, first_seq, *entries))


def _promise() -> tuple[asyncio.Future[Answer], Done]:
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def settle(it: Answer) -> None:
        if not answer.done():  # the waiter may have been cancelled
            answer.set_result(it)

    return answer, settle


def _nothing(_: Answer) -> None:
    """Nobody waits for it."""
