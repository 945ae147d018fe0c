"""Who plays whom: queues first come, first served, and matches that were created by name."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence

import structlog

from seatwise_server.lobby.capacity import Capacity
from seatwise_server.lobby.queue import CREATED, QUEUES, Queue, time_control_for
from seatwise_server.lobby.seating import Seating, new_match_name
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.queues import Proposal

PASS_S = 0.2
LOOK_AHEAD = 10_000
"""How many created matches one pass looks at: a match whose bots are busy does not block the next."""
FOR_EVER_MS = 10**15
OURS_S = 5.0
"""So long after it was made a proposal is surely its maker's alone."""
OLD_MS = 15_000
"""After this it is another's to take up: its maker is dead, or knows that it is too late."""

log = structlog.get_logger()


class Pairing:
    """The pairing of one lobby; several may run against one Redis."""

    def __init__(self, store: Store, seating: Seating, house: Mapping[str, Sequence[str]]) -> None:
        self._store = store
        self._seating = seating
        self._house = house
        """By game, the names of the house's bots that fill free places."""
        self._created: dict[str, tuple[str, ...]] = {}
        """The bots of the matches that wait for them, as far as they have been read."""
        self._capacity = Capacity(store)
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._wake.set()

    async def run(self) -> None:
        """Passes over everything, again and again. Runs until cancelled."""
        while True:
            self._wake.clear()
            try:
                await self.take_up_unfinished()
                for queue in QUEUES.values():
                    await self._pair(queue)
                await self._pair_created()
            except StoreUnavailable:
                log.debug("pairing_paused")
            await self._rest()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(PASS_S):
                await self._wake.wait()
        except TimeoutError:
            return

    async def take_up_unfinished(self) -> None:
        """Proposals that a lobby left when it died are seated now, by one of those who find them."""
        for queue in QUEUES.values():
            for left in await self._store.queues.unfinished(queue.name):
                began = _now()
                if proposal := await self._store.queues.adopt(queue.name, left.match, OLD_MS):
                    await self._seat(queue, proposal, began)
        for left in await self._store.queues.unfinished(CREATED):
            began = _now()
            if proposal := await self._store.queues.adopt(CREATED, left.match, OLD_MS):
                await self._seat_created(proposal, await self._bots_of(left.match), began)

    async def _pair(self, queue: Queue) -> None:
        """Tables as long as there are bots for them. Where the house cannot help out, patience does not end."""
        helps = len(self._house.get(queue.game, ())) >= queue.seats - 1
        patience_ms = queue.patience_ms if helps else FOR_EVER_MS
        while await self._capacity.look() > 0:
            began, match = _now(), new_match_name()
            proposal = await self._store.queues.take(queue.name, queue.seats, patience_ms, match)
            if proposal is None or not await self._seat(queue, proposal, began):
                return

    async def _seat(self, queue: Queue, proposal: Proposal, began: float) -> bool:
        """Whether the queue is shorter now; else there is no use in trying again at once."""
        bots = [waiting.bot for waiting in proposal.bots]
        bots += self._house.get(queue.game, ())[: queue.seats - len(bots)]
        secrets.SystemRandom().shuffle(bots)
        missing = await self._reserve(queue, proposal.match, bots)
        if missing:
            present = await self._store.attendances.present(bots) - {missing}
            back = [waiting for waiting in proposal.bots if waiting.bot in present]
            await self._seating.forget(proposal.match)
            await self._store.queues.dissolve(queue.name, proposal.match, back)
            return len(back) < len(proposal.bots)
        return await self._hand_over(queue.name, proposal.match, bots, began)

    async def _hand_over(self, queue: str, match: str, bots: Sequence[str], began: float) -> bool:
        """All seats are held: the match is a referee's from now on, unless it may be another lobby's by now."""
        if _now() - began > OURS_S:
            log.warning("proposal_left_to_others", match=match, queue=queue)
            return False
        await self._seating.hand_to_referee(match)
        await self._store.queues.seated(queue, match)
        log.info("match_paired", match=match, queue=queue, bots=list(bots))
        return True

    async def _reserve(self, queue: Queue, match: str, bots: list[str]) -> str | None:
        """Writes the match down before its seats are taken, so that no seat is held for a match unknown."""
        time_control = time_control_for(queue.game, **queue.time_control)
        setup = self._seating.setup(match, queue.game, bots, queue.options, time_control)
        await self._seating.create(setup, "SEATING", queue.name)
        written = await self._seating.setup_of(match)
        return await self._seating.reserve(match, written.bots if written else bots)

    async def _pair_created(self) -> None:
        """Matches by name, oldest first. Bots that are busy or absent keep theirs waiting, nobody else's."""
        busy: set[str] = set()
        waiting = await self._store.queues.front(CREATED, LOOK_AHEAD)
        self._created = {match: await self._bots_of(match) for match in waiting}
        for match, bots in self._created.items():
            if not busy.isdisjoint(bots):
                continue
            if await self._capacity.look() <= 0:
                return
            began = _now()
            proposal = await self._store.queues.pick(CREATED, match)
            missing = await self._seat_created(proposal, bots, began) if proposal else None
            if missing:
                busy.add(missing)

    async def _seat_created(self, proposal: Proposal, bots: Sequence[str], began: float) -> str | None:
        """The bot that is not to be had, for whom the match goes on waiting where it stood."""
        match = proposal.match
        missing = await self._seating.reserve(match, bots)
        if missing:
            await self._store.queues.dissolve(CREATED, match, proposal.bots)
        elif bots:
            await self._hand_over(CREATED, match, bots, began)
        else:
            await self._store.queues.seated(CREATED, match)
        return missing

    async def _bots_of(self, match: str) -> tuple[str, ...]:
        """Read once for each match; none if it is not known any more."""
        if match in self._created:
            return self._created[match]
        setup = await self._seating.setup_of(match)
        return setup.bots if setup else ()


def _now() -> float:
    return asyncio.get_running_loop().time()
