"""The lease of a referee: while it holds, no other referee can have taken over its matches, so it may send messages.

Other processes call this one dead if they saw no change of its heartbeat for the whole lease. So its matches are certainly its
own until the lease, less a margin, has passed since its last confirmed heartbeat was *sent*. After that it sends nothing until
a heartbeat is confirmed again, and then every fence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import structlog

from seatwise_server.game_choice import GameKind
from seatwise_server.play.play_stream import PlayStreams
from seatwise_server.play.table import Table
from seatwise_server.store import AppendResult, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.timings import REFEREE_HEARTBEAT_S, REFEREE_LEASE_MARGIN_S, REFEREE_LEASE_S

STORE_RETRY_S = 0.5
"""After no answer of the store, the referee asks again after this time, in seconds."""


BEAT_RETRY_S = 0.2
ORDERS_BLOCK_MS = 1000
CONFIRMATIONS_AT_ONCE = 64
"""The most fences that are confirmed at the same time."""

log = structlog.get_logger()


class Lease:
    """The lease of one referee process. It holds from the first `renew_lease` on."""

    def __init__(self, clock: Callable[[], float], lease_s: float = REFEREE_LEASE_S) -> None:
        self._clock = clock
        self._certain_s = lease_s - REFEREE_LEASE_MARGIN_S
        self._until = clock()
        self._holds = False
        self.lapses = 0
        """The number of times that it was lost."""
        self.breaks = 0
        """The number of heartbeats that were confirmed only after the one before had expired, whether the lease
        was held or lost.
        """
        self.silent_since = clock()
        """When it was lost the last time, on its clock."""

    @property
    def now(self) -> float:
        """The present time on its clock."""
        return self._clock()

    @property
    def is_held(self) -> bool:
        """Whether it holds, as far as is known; `holds` makes sure."""
        return self._holds and self._clock() < self._until

    def holds(self) -> bool:
        """Whether the lease holds. Once lost it stays lost until `renew_lease`, whatever heartbeats are confirmed."""
        if self._holds and self._clock() >= self._until:
            self._holds = False
            self.lapses += 1
            self.silent_since = self._until
        return self._holds

    def note_confirmed(self, sent: float) -> None:
        """Notes that a heartbeat was confirmed that had been sent at `sent`."""
        self.holds()  # a heartbeat alone must not restore a lost lease
        self.breaks += self._clock() >= self._until
        self._until = max(self._until, sent + self._certain_s)

    def give_up(self) -> None:
        """Give the lease up, because others may now take the matches: nothing is sent any more."""
        if self.holds():
            self._holds = False
            self.lapses += 1
            self.silent_since = self._clock()

    def renew_lease(self) -> bool:
        """Restore the lease after all fences were confirmed; returns False if it has expired again meanwhile."""
        self._holds = self._clock() < self._until
        return self._holds


class MatchOwnership:
    """The matches of one referee, and its right to send messages for them."""

    def __init__(self, tables: Mapping[str, Table], streams: PlayStreams, lease: Lease) -> None:
        self._tables = tables
        self._streams = streams
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._resumed_at = self._loop.time()
        """Outages of the store up to this time were already taken off all charges."""

    def owned_matches(self) -> dict[str, int]:
        """Return the matches that are open here, with their epochs."""
        return {name: table.epoch for name, table in self._tables.items()}

    def lose_match(self, match: str, answer: AppendResult) -> None:
        """Give up a match that belongs to another owner, or that Redis has forgotten: nothing more is sent for it."""
        table = self._tables[match]
        if not table.is_closed:
            table.lose_ownership(answer)

    def on_lease_regained(self) -> None:
        """Write what waits. The time in which this referee was silent is charged to no bot."""
        now = self._loop.time()
        silent_s = self._lease.now - self._lease.silent_since
        self.on_store_back(min(silent_s, now - self._resumed_at))
        self._streams.wake_writers()

    def on_store_back(self, gap_s: float) -> None:
        """Take an outage of the store off the clocks of all tables."""
        self._resumed_at = self._loop.time()
        for table in list(self._tables.values()):
            table.resume_after_gap(max(0.0, gap_s))


class LeaseHolder(Protocol):
    """The referee, as far as its heartbeats and takeovers need it."""

    @property
    def name(self) -> str:
        """The name of the referee, unique to this process."""

    @property
    def address(self) -> str:
        """The address at which bots reach the referee."""

    @property
    def is_draining(self) -> bool:
        """Whether the referee takes no new matches."""

    @property
    def free_tables(self) -> int:
        """The number of further matches that the referee can take."""

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""

    def obey_order(self, order: str) -> None:
        """Execute an order."""


class HeartbeatSender:
    """Sends the heartbeats of one referee process."""

    def __init__(self, owner: LeaseHolder, ownership: MatchOwnership, store: Store, lease: Lease) -> None:
        self._owner = owner
        self._ownership = ownership
        self._store = store
        self._lease = lease
        self._regaining: asyncio.Task[None] | None = None

    async def run_heartbeat(self) -> None:
        """Send a heartbeat every second. Runs until cancelled."""
        try:
            while True:
                began = self._lease.now
                await self.send_heartbeat()
                await asyncio.sleep(max(BEAT_RETRY_S, REFEREE_HEARTBEAT_S - (self._lease.now - began)))
        finally:
            if self._regaining:
                self._regaining.cancel()

    async def send_heartbeat(self) -> None:
        """Send one heartbeat. If the lease was lost, starts to confirm all matches, after which it holds again."""
        owner, sent = self._owner, self._lease.now
        try:
            await self._store.processes.write_heartbeat(
                owner.name,
                owner.address,
                len(self._ownership.owned_matches()),
                owner.free_tables,
                is_draining=owner.is_draining,
                kinds=owner.game_kinds,
            )
        except StoreUnavailable:
            log.debug("heartbeat_missed")
            return
        self._lease.note_confirmed(sent)
        if not self._lease.holds() and (self._regaining is None or self._regaining.done()):
            self._regaining = asyncio.create_task(self._regain())

    async def _regain(self) -> None:
        """Confirm every match, also those opened meanwhile, and then renew the lease."""
        breaks, sure = self._lease.breaks, set[tuple[str, int]]()
        try:
            while unsure := self._ownership.owned_matches().items() - sure:
                await self._confirm_fences(unsure)
                sure |= unsure
        except StoreUnavailable:
            return  # the next heartbeat tries again
        if breaks == self._lease.breaks and self._lease.renew_lease():
            log.info("match_lease_taken", matches=len(self._ownership.owned_matches()))
            self._ownership.on_lease_regained()

    async def _confirm_fences(self, matches: set[tuple[str, int]]) -> None:
        turn = asyncio.Semaphore(CONFIRMATIONS_AT_ONCE)

        async def ask(match: str, epoch: int) -> None:
            async with turn:
                answer = await self._store.journal.confirm_fence(match, epoch, self._owner.name)
            if not answer.is_kept and self._ownership.owned_matches().get(match) == epoch:
                self._ownership.lose_match(match, answer)

        await asyncio.gather(*[ask(*each) for each in matches])

    async def listen_for_orders(self) -> None:
        """Execute orders as they come. Runs until cancelled."""
        last = "0"
        while True:
            try:
                for order in await self._store.processes.read_orders(self._owner.name, last, ORDERS_BLOCK_MS):
                    self._owner.obey_order(order.order.decode())
                    last = order.order_id
            except StoreUnavailable:
                await asyncio.sleep(REFEREE_HEARTBEAT_S)
