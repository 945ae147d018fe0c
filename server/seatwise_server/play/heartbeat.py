"""Shows that this referee lives, makes sure of its matches after it was silent, and obeys orders."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from seatwise_server.play.lease import Lease
from seatwise_server.store import AppendResult, Store
from seatwise_server.store.errors import StoreUnavailable

BEAT_S = 1.0
RETRY_S = 0.2
ORDERS_BLOCK_MS = 1000
AT_ONCE = 64
"""Fences that are confirmed at the same time."""

log = structlog.get_logger()


class Owner(Protocol):
    """A referee, as its presence sees it."""

    @property
    def name(self) -> str:
        """Unique to this process."""
        ...

    @property
    def address(self) -> str:
        """Where bots reach it."""
        ...

    @property
    def is_draining(self) -> bool:
        """It takes no new matches."""
        ...

    @property
    def free(self) -> int:
        """How many more matches it takes."""
        ...

    def owned(self) -> dict[str, int]:
        """Its matches, with their epochs."""
        ...

    def lose(self, match: str, answer: AppendResult) -> None:
        """It is another's, or forgotten."""
        ...

    def beat_confirmed(self) -> None:
        """Others know that it lives, and it may speak."""
        ...

    def speak_again(self) -> None:
        """The lease holds again."""
        ...

    def obey(self, order: str) -> None:
        """An order has come."""
        ...


class Presence:
    """One for each referee process."""

    def __init__(self, owner: Owner, store: Store, lease: Lease) -> None:
        self._owner = owner
        self._store = store
        self._lease = lease
        self._regaining: asyncio.Task[None] | None = None

    async def beat(self) -> None:
        """A heartbeat a second. Runs until cancelled."""
        try:
            while True:
                began = self._lease.now
                await self.beat_once()
                await asyncio.sleep(max(RETRY_S, BEAT_S - (self._lease.now - began)))
        finally:
            if self._regaining:
                self._regaining.cancel()

    async def beat_once(self) -> None:
        """Shows that we live; if we were silent, begins to find out whether we may speak again."""
        owner, sent = self._owner, self._lease.now
        try:
            await self._store.processes.beat(
                owner.name, owner.address, len(owner.owned()), owner.free, is_draining=owner.is_draining
            )
        except StoreUnavailable:
            log.debug("heartbeat_missed")
            return
        self._lease.confirmed(sent)
        if self._lease.holds():
            owner.beat_confirmed()
        elif self._regaining is None or self._regaining.done():
            self._regaining = asyncio.create_task(self._regain())

    async def _regain(self) -> None:
        """Asks of every match whether it is still ours, those that come in between too; then speaks again."""
        breaks, sure = self._lease.breaks, set[tuple[str, int]]()
        try:
            while unsure := self._owner.owned().items() - sure:
                await self._make_sure(unsure)
                sure |= unsure
        except StoreUnavailable:
            return  # the next heartbeat begins anew
        if breaks == self._lease.breaks and self._lease.renew():
            log.info("lease_held", matches=len(self._owner.owned()))
            self._owner.speak_again()

    async def _make_sure(self, matches: set[tuple[str, int]]) -> None:
        turn = asyncio.Semaphore(AT_ONCE)

        async def ask(match: str, epoch: int) -> None:
            async with turn:
                answer = await self._store.journal.confirm(match, epoch, self._owner.name)
            if answer is not AppendResult.OK and self._owner.owned().get(match) == epoch:
                self._owner.lose(match, answer)

        await asyncio.gather(*[ask(*each) for each in matches])

    async def listen(self) -> None:
        """Obeys orders as they come. Runs until cancelled."""
        last = "0"
        while True:
            try:
                for order in await self._store.processes.orders(self._owner.name, last, ORDERS_BLOCK_MS):
                    self._owner.obey(order.order.decode())
                    last = order.order_id
            except StoreUnavailable:
                await asyncio.sleep(BEAT_S)
