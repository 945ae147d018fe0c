"""Finds for each parcel the courier to the node that holds its match, now and through failovers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from redis.exceptions import AskError, MovedError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from seatwise_server.store import keys
from seatwise_server.store.group_commit.node_writer import ASKING, Courier, Parcel, Patience
from seatwise_server.store.redis.address import Address
from seatwise_server.store.redis.replica_wait import ReplicaWait
from seatwise_server.store.redis.topology import SLOTS, Routes, Span

LOOK_EVERY_S = 0.05
"""How often at most it is asked who holds what."""

MOST_HOPS = 3
"""A parcel that was sent on more often than this waits for a fresh look at the cluster."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def _nothing(*_: object) -> None:
    """For those who do not listen."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of Redis coming and going; called in the event loop, must be quick."""

    on_down: Callable[[], None] = _nothing
    on_up: Callable[[float], None] = _nothing
    """Gets the seconds that Redis was gone, as this process saw it."""
    on_lost: Callable[[BaseException], None] = _nothing


class Dispatch:
    """The office of all couriers.

    Redis is *down* from the first failure of any node until no node fails and everything that was held up is
    answered. A node that was replaced is dismissed, and what it had goes to its successor.
    """

    def __init__(
        self,
        routes: Routes,
        listeners: Listeners,
        patience: Patience,
        wait: ReplicaWait,
        on_reply: Callable[[Parcel, Any], None],
        on_moved: Callable[[], None],
    ) -> None:
        self._routes = routes
        self._listeners = listeners
        self._patience = patience
        self._wait = wait
        self._on_reply = on_reply
        self._on_moved = on_moved
        self._spans: tuple[Span, ...] = ()
        self._couriers: dict[Address, Courier] = {}
        self._by_slot: list[Courier | None] = [None] * SLOTS
        self._only: Courier | None = None
        """The courier of all slots, where there is one node."""
        self._homeless: list[Parcel] = []
        """Parcels that wait for a fresh look at who holds what."""
        self._is_stale = asyncio.Event()
        self._down: set[Address] = set()
        self._troubled: set[Parcel] = set()
        """Parcels that a node in trouble gave back, and that nobody has answered since."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_lost = False
        self.down_since: float | None = None
        """Monotonic seconds of the first failure of the present outage, None while all is well."""

    def start(self) -> None:
        """Starts the tasks in the running loop."""
        self._is_stale.set()
        self._spawn(self._look_around(), "flusher")
        self._spawn(self._probe(), "flusher-probe")

    def send(self, parcel: Parcel) -> None:
        """Gives the parcel to the courier of its slot."""
        courier = self._only or self._by_slot[keys.match_slot(parcel.match)]
        if courier is not None:
            courier.put(parcel)
            return
        self._homeless.append(parcel)
        self._is_stale.set()
        if self._spans:
            self._troubled.add(parcel)
            self._note_down(RedisConnectionError(f"no node holds {parcel.match}"))

    # From the couriers

    def answered(self, courier: Courier, parcels: Sequence[Parcel], replies: Sequence[Any]) -> None:
        """See Office."""
        own = list(zip(parcels, replies, strict=True))
        sent_on = [it for it in own if type(it[1]) is not int and isinstance(it[1], AskError | TryAgainError)]
        if sent_on:
            own = [it for it in own if it not in sent_on]
            for parcel, reply in sent_on:
                self._send_on(courier, parcel, reply)
        if self.down_since is not None:
            self._down.discard(courier.address)
            self._troubled.difference_update(parcel for parcel, _ in own)
            self._note_up()
        for parcel, reply in own:
            self._on_reply(parcel, reply)

    def failed(self, courier: Courier, parcels: list[Parcel], error: Exception) -> None:
        """See Office."""
        self._down.add(courier.address)
        self._troubled.update(parcels)
        self._keep(parcels)
        self._note_down(error)

    def _send_on(self, courier: Courier, parcel: Parcel, reply: AskError | TryAgainError) -> None:
        """MOVED, ASK or TRYAGAIN: the slot is somebody else's, or on its way there."""
        if isinstance(reply, MovedError):
            self._is_stale.set()
        parcel.hops += 1
        if isinstance(reply, TryAgainError) or parcel.hops > MOST_HOPS:
            self._keep([parcel])
            return
        parcel.command = parcel.command.removeprefix(ASKING)
        if not isinstance(reply, MovedError):
            parcel.command = ASKING + parcel.command
        self._courier_to(Address(reply.host or courier.address.host, int(reply.port))).put(parcel)

    def _keep(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            parcel.command, parcel.hops = parcel.command.removeprefix(ASKING), 0
        self._homeless += parcels
        self._is_stale.set()

    # Who holds what

    async def _look_around(self) -> None:
        while True:
            await self._is_stale.wait()
            self._is_stale.clear()
            try:
                self._arrange(await self._routes.read(self._down))
            except (RedisError, OSError) as error:
                self._is_stale.set()
                self._note_down(error)
            await asyncio.sleep(LOOK_EVERY_S)

    def _arrange(self, spans: tuple[Span, ...]) -> None:
        has_moved = bool(self._spans) and spans != self._spans
        if spans != self._spans:
            self._rearrange(spans)
        homeless, self._homeless = self._homeless, []
        for parcel in homeless:
            self.send(parcel)
        if has_moved:
            self._on_moved()
        self._note_up()

    def _rearrange(self, spans: tuple[Span, ...]) -> None:
        self._spans = spans
        wanted = {span.primary for span in spans}
        for address in self._couriers.keys() - wanted:
            self._down.discard(address)
            self._keep(self._dismiss(self._couriers.pop(address)))
        self._by_slot = [None] * SLOTS
        for first, last, address in spans:
            self._by_slot[first : last + 1] = [self._courier_to(address)] * (last + 1 - first)
        is_one = len(spans) == 1 and spans[0][:2] == (0, SLOTS - 1)
        self._only = self._by_slot[0] if is_one else None

    def _courier_to(self, address: Address) -> Courier:
        if address not in self._couriers:
            courier = self._couriers[address] = self._new_courier(address)
            courier.start()
            if self.down_since is not None:  # who takes over in an outage has to show that it ends
                self._down.add(address)
                courier.look()
        return self._couriers[address]

    def _new_courier(self, address: Address) -> Courier:
        return Courier(address, lambda: self._routes.connection(address), self, self._patience, self._wait)

    def _dismiss(self, courier: Courier) -> list[Parcel]:
        parcels, task = courier.dismiss()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return parcels

    # Outages

    async def _probe(self) -> None:
        """Notices that a node is gone when there is nothing to send."""
        while True:
            await asyncio.sleep(self._patience.probe_s)
            for courier in self._couriers.values():
                courier.look()

    def _note_down(self, error: Exception) -> None:
        now = time.monotonic()
        if self.down_since is None:
            self.down_since = now
            _log.warning("redis_lost", error=str(error) or type(error).__name__)
            safely(self._listeners.on_down)
        if not self._is_lost and now - self.down_since > self._patience.gone_for_good_s:
            self._is_lost = True
            safely(self._listeners.on_lost, error)

    def _note_up(self) -> None:
        if self.down_since is None or self._down or self._troubled:
            return
        gap_s = time.monotonic() - self.down_since
        self.down_since, self._is_lost = None, False
        _log.info("redis_regained", gap_s=round(gap_s, 3))
        safely(self._listeners.on_up, gap_s)

    # The end

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stops at once, whatever is under way."""
        for courier in self._couriers.values():
            self._dismiss(courier)
        self._couriers.clear()
        left = set(self._tasks)
        while left:  # again and again: redis-py may swallow a cancellation
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.1)


def safely(callback: Callable[..., None], *args: object) -> None:
    """One caller's mistake must not cost the others their answers."""
    try:
        callback(*args)
    except Exception:
        _log.exception("flusher_callback_failed")
