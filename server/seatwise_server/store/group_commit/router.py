"""Routes each append to the writer of the node that has its match, also through failovers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from redis.exceptions import AskError, MovedError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from seatwise_server.background_tasks import BackgroundTasks
from seatwise_server.store import keys
from seatwise_server.store.group_commit.node_writer import AppendTimeouts, NodeWriter, PendingAppend
from seatwise_server.store.redis.address import SLOTS, NodeAddress, Span, Topology
from seatwise_server.store.redis.durability import ReplicaWait

TOPOLOGY_READ_EVERY_S = 0.05
"""The shortest time between two reads of the topology, in seconds."""

MOST_HOPS = 3
"""An append that was redirected more often than this waits for a new read of the topology."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def ignore_event(*_: object) -> None:
    """Do nothing, where nobody waits for the event."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks for when Redis goes down and comes back. They are called in the event loop, and must be quick."""

    on_down: Callable[[], None] = ignore_event
    on_up: Callable[[float], None] = ignore_event
    """Gets the seconds for which Redis was down, as this process saw it."""
    on_lost: Callable[[BaseException], None] = ignore_event


class AppendRouter:
    """Owns the writers of all nodes and routes each append to one of them.

    Redis is *down* from the first failure of any node until no node fails and every delayed append is answered.
    The writer of a node that was replaced is stopped, and its appends go to the writer of the new node.
    """

    def __init__(
        self,
        routes: Topology,
        listeners: Listeners,
        patience: AppendTimeouts,
        wait: ReplicaWait,
        on_reply: Callable[[PendingAppend, Any], None],
        on_moved: Callable[[], None],
    ) -> None:
        self._routes = routes
        self._listeners = listeners
        self._patience = patience
        self._wait = wait
        self._on_reply = on_reply
        self._on_moved = on_moved
        self._spans: tuple[Span, ...] = ()
        self._writers: dict[NodeAddress, NodeWriter] = {}
        self._by_slot: list[NodeWriter | None] = [None] * SLOTS
        self._only_writer: NodeWriter | None = None
        """The writer of all slots, if there is only one node."""
        self._unrouted: list[PendingAppend] = []
        """Appends that wait for a new read of the topology."""
        self._is_stale = asyncio.Event()
        self._down: set[NodeAddress] = set()
        self._troubled: set[PendingAppend] = set()
        """Appends that a failing node returned, and that are not answered since."""
        self._tasks = BackgroundTasks()
        self._is_lost = False
        self.down_since: float | None = None
        """Monotonic seconds of the first failure of the present outage; None if there is none."""

    def start(self) -> None:
        """Start the tasks in the running loop."""
        self._is_stale.set()
        self._tasks.start_task(self._watch_topology(), "flusher")
        self._tasks.start_task(self._probe_nodes(), "flusher-probe")

    def send_append(self, pending: PendingAppend) -> None:
        """Queue the append at the writer of its slot."""
        writer = self._only_writer or self._by_slot[keys.match_slot(pending.match)]
        if writer is not None:
            writer.queue_append(pending)
            return
        self._unrouted.append(pending)
        self._is_stale.set()
        if self._spans:
            self._troubled.add(pending)
            self._note_outage(RedisConnectionError(f"no node holds {pending.match}"))

    # Called by the writers

    def on_replies(
        self, writer: NodeWriter, appends: Sequence[PendingAppend], replies: Sequence[Any]
    ) -> None:
        """The node works and has answered these appends, possibly with a ResponseError."""
        own = list(zip(appends, replies, strict=True))
        sent_on = [it for it in own if type(it[1]) is not int and isinstance(it[1], AskError | TryAgainError)]
        if sent_on:
            own = [it for it in own if it not in sent_on]
            for pending, reply in sent_on:
                self._redirect_append(writer, pending, reply)
        if self.down_since is not None:
            self._down.discard(writer.address)
            self._troubled.difference_update(pending for pending, _ in own)
            self._note_recovery()
        for pending, reply in own:
            self._on_reply(pending, reply)

    def on_failure(self, writer: NodeWriter, appends: list[PendingAppend], error: Exception) -> None:
        """The node does not answer, or refuses to write for now: send these appends again."""
        self._down.add(writer.address)
        self._troubled.update(appends)
        self._keep_unrouted(appends)
        self._note_outage(error)

    def _redirect_append(
        self, writer: NodeWriter, pending: PendingAppend, reply: AskError | TryAgainError
    ) -> None:
        """Follow a MOVED, ASK or TRYAGAIN: the slot belongs to another node, or is moving there."""
        if isinstance(reply, MovedError):
            self._is_stale.set()
        pending.hops += 1
        if isinstance(reply, TryAgainError) or pending.hops > MOST_HOPS:
            self._keep_unrouted([pending])
            return
        pending.is_asking = not isinstance(reply, MovedError)
        self._writer_to(NodeAddress(reply.host or writer.address.host, int(reply.port))).queue_append(pending)

    def _keep_unrouted(self, appends: Sequence[PendingAppend]) -> None:
        for pending in appends:
            pending.is_asking, pending.hops = False, 0
        self._unrouted += appends
        self._is_stale.set()

    # The topology

    async def _watch_topology(self) -> None:
        while True:
            await self._is_stale.wait()
            self._is_stale.clear()
            try:
                self._set_routes(await self._routes.read_spans(self._down))
            except (RedisError, OSError) as error:
                self._is_stale.set()
                self._note_outage(error)
            await asyncio.sleep(TOPOLOGY_READ_EVERY_S)

    def _set_routes(self, spans: tuple[Span, ...]) -> None:
        has_moved = bool(self._spans) and spans != self._spans
        if spans != self._spans:
            self._change_routes(spans)
        unrouted, self._unrouted = self._unrouted, []
        for pending in unrouted:
            self.send_append(pending)
        if has_moved:
            self._on_moved()
        self._note_recovery()

    def _change_routes(self, spans: tuple[Span, ...]) -> None:
        self._spans = spans
        wanted = {span.primary for span in spans}
        for address in self._writers.keys() - wanted:
            self._down.discard(address)
            self._keep_unrouted(self._stop_writer(self._writers.pop(address)))
        self._by_slot = [None] * SLOTS
        for first, last, address in spans:
            self._by_slot[first : last + 1] = [self._writer_to(address)] * (last + 1 - first)
        is_one = len(spans) == 1 and spans[0][:2] == (0, SLOTS - 1)
        self._only_writer = self._by_slot[0] if is_one else None

    def _writer_to(self, address: NodeAddress) -> NodeWriter:
        if address not in self._writers:
            writer = self._writers[address] = NodeWriter(
                address,
                lambda: self._routes.new_connection(address),
                self.on_replies,
                self.on_failure,
                self._patience,
                self._wait,
            )
            writer.start()
            if self.down_since is not None:  # the new node of an outage must show that the outage is over
                self._down.add(address)
                writer.wake_probe()
        return self._writers[address]

    def _stop_writer(self, writer: NodeWriter) -> list[PendingAppend]:
        appends, task = writer.stop_now()
        if task is not None:
            self._tasks.keep_task(task)
        return appends

    # Outages

    async def _probe_nodes(self) -> None:
        """Find out that a node is gone when there is nothing to send."""
        while True:
            await asyncio.sleep(self._patience.probe_s)
            for writer in self._writers.values():
                writer.wake_probe()

    def _note_outage(self, error: Exception) -> None:
        now = time.monotonic()
        if self.down_since is None:
            self.down_since = now
            _log.warning("appends_paused", error=str(error) or type(error).__name__)
            call_safely(self._listeners.on_down)
        if not self._is_lost and now - self.down_since > self._patience.gone_for_good_s:
            self._is_lost = True
            call_safely(self._listeners.on_lost, error)

    def _note_recovery(self) -> None:
        if self.down_since is None or self._down or self._troubled:
            return
        gap_s = time.monotonic() - self.down_since
        self.down_since, self._is_lost = None, False
        _log.info("appends_resumed", gap_s=round(gap_s, 3))
        call_safely(self._listeners.on_up, gap_s)

    # Closing

    async def close(self) -> None:
        """Stop at once, without waiting for appends under way."""
        for writer in self._writers.values():
            self._stop_writer(writer)
        self._writers.clear()
        await self._tasks.cancel_all()


def call_safely(callback: Callable[..., None], *args: object) -> None:
    """Call a callback, and log its errors: one failing callback must not cost other callers their answers."""
    try:
        callback(*args)
    except Exception:
        _log.exception("flusher_callback_failed")
