"""Sends the heartbeats of this referee, confirms its matches after it was silent, and receives orders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from seatwise_server.game_choice import GameKind
from seatwise_server.play.lease import Lease
from seatwise_server.play.match_ownership import MatchOwnership
from seatwise_server.store import AppendResult, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.timings import REFEREE_HEARTBEAT_S

BEAT_RETRY_S = 0.2
ORDERS_BLOCK_MS = 1000
CONFIRMATIONS_AT_ONCE = 64
"""The most fences that are confirmed at the same time."""

log = structlog.get_logger()


class HeartbeatOwner(Protocol):
    """The referee, as far as its heartbeat needs it."""

    @property
    def name(self) -> str:
        """The name of the referee, unique to this process."""
        ...

    @property
    def address(self) -> str:
        """The address at which bots reach the referee."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether the referee takes no new matches."""
        ...

    @property
    def free_tables(self) -> int:
        """The number of further matches that the referee can take."""
        ...

    @property
    def game_kinds(self) -> Sequence[GameKind]:
        """The kinds of games that it plays."""
        ...

    def obey_order(self, order: str) -> None:
        """Executes an order."""
        ...


class HeartbeatSender:
    """Sends the heartbeats of one referee process."""

    def __init__(self, owner: HeartbeatOwner, ownership: MatchOwnership, store: Store, lease: Lease) -> None:
        self._owner = owner
        self._ownership = ownership
        self._store = store
        self._lease = lease
        self._regaining: asyncio.Task[None] | None = None

    async def run_heartbeat(self) -> None:
        """Sends a heartbeat every second. Runs until cancelled."""
        try:
            while True:
                began = self._lease.now
                await self.send_heartbeat()
                await asyncio.sleep(max(BEAT_RETRY_S, REFEREE_HEARTBEAT_S - (self._lease.now - began)))
        finally:
            if self._regaining:
                self._regaining.cancel()

    async def send_heartbeat(self) -> None:
        """Sends one heartbeat. If the lease was lost, starts to confirm all matches, after which it holds again."""
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
        """Confirms every match, also those opened meanwhile, and then renews the lease."""
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
            if answer is not AppendResult.OK and self._ownership.owned_matches().get(match) == epoch:
                self._ownership.lose_match(match, answer)

        await asyncio.gather(*[ask(*each) for each in matches])

    async def listen_for_orders(self) -> None:
        """Executes orders as they come. Runs until cancelled."""
        last = "0"
        while True:
            try:
                for order in await self._store.processes.read_orders(self._owner.name, last, ORDERS_BLOCK_MS):
                    self._owner.obey_order(order.order.decode())
                    last = order.order_id
            except StoreUnavailable:
                await asyncio.sleep(REFEREE_HEARTBEAT_S)
