"""Who plays whom: queues first come, first served, and matches that were created by name."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence, Set

import structlog

from seatwise_server.ladder.ladder_host import LadderHost
from seatwise_server.lobby.capacity import Capacity
from seatwise_server.lobby.ladders import LadderPairing
from seatwise_server.lobby.proposals import Proposals, loop_time
from seatwise_server.lobby.queue import CREATED, QUEUES, Queue
from seatwise_server.lobby.seating import Seating
from seatwise_server.lobby.together import MOST_AWAITED_AT_ONCE, gather_limited
from seatwise_server.match_names import new_match_name
from seatwise_server.store import Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.queues import Proposal

PASS_S = 0.2
"""A pass at least so often,"""
REST_S = 0.02
"""and at most: much that changes at the same time is one change."""
UNFINISHED_S = 1.0
"""How often is looked for what dead lobbies have left: nobody may take it up for much longer."""
LOOK_AHEAD = 10_000
"""How many created matches one pass looks at: a match whose bots are busy does not block the next."""
SIDE_BY_SIDE = 4 * MOST_AWAITED_AT_ONCE
"""Among how many of them those are looked for that can be seated together."""
FOR_EVER_MS = 10**15

log = structlog.get_logger()


class Pairing:
    """The pairing of one lobby; several may run against one Redis."""

    def __init__(
        self, store: Store, seating: Seating, house: Mapping[str, Sequence[str]], ladder_host: LadderHost
    ) -> None:
        self._store = store
        self._seating = seating
        self._house = house
        """By game, the names of the house's bots that fill free places."""
        self._created: dict[str, tuple[str, ...]] = {}
        """The bots of the matches that wait for them, as far as they have been read."""
        self._capacity = Capacity(store)
        self._proposals = Proposals(store, seating)
        self._ladders = LadderPairing(store, ladder_host, self._proposals, self._capacity)
        self._wake = asyncio.Event()
        self._unfinished_at = loop_time()
        """When to look next for what others have left."""

    def wake_pairing(self) -> None:
        """Something has changed: look at once."""
        self._wake.set()

    async def run_pairing(self) -> None:
        """Passes over everything, again and again. Runs until cancelled."""
        while True:
            self._wake.clear()
            is_more = False
            try:
                if loop_time() >= self._unfinished_at:
                    await self.take_up_unfinished()
                is_more = await self._run_pass()
            except StoreUnavailable:
                log.debug("pairing_paused")
            if not is_more:
                await self._wait_for_change()

    async def _run_pass(self) -> bool:
        """Once over everything; whether there may be more to do in a queue.

        Matches by name and ladders come before each wave: who waits in a queue too has all places taken there.
        """
        await self._pair_created()
        await self._ladders.pair()
        waves = [await self._pair_queue(queue) for queue in QUEUES.values()]
        return any(waves)

    async def _wait_for_change(self) -> None:
        await asyncio.sleep(REST_S)
        try:
            async with asyncio.timeout(PASS_S):
                await self._wake.wait()
        except TimeoutError:
            return

    async def take_up_unfinished(self) -> None:
        """Proposals that a lobby left when it died are seated now, by one of those who find them."""
        self._unfinished_at = loop_time() + UNFINISHED_S
        for queue in QUEUES.values():
            for left in await self._store.queues.unfinished_proposals(queue.name):
                if proposal := await self._proposals.adopt_proposal(queue.name, left.match):
                    await self._seat_proposal(queue, proposal)
        await self._ladders.take_up_unfinished()
        for left in await self._store.queues.unfinished_proposals(CREATED):
            if proposal := await self._proposals.adopt_proposal(CREATED, left.match):
                await self._proposals.seat_created(proposal, await self._bots_of(left.match))

    async def _pair_queue(self, queue: Queue) -> bool:
        """As many tables as there are bots for; whether the queue is shorter now.

        Where the house cannot help out, patience does not end.
        """
        count = await self._store.queues.count_waiting(queue.name)
        if not count:
            return False
        helps = len(self._house.get(queue.game, ())) >= queue.seats - 1
        patience_ms = queue.patience_ms if helps else FOR_EVER_MS
        tables = min(
            await self._capacity.count_free_tables(), MOST_AWAITED_AT_ONCE, max(1, count // queue.seats)
        )
        seated = await gather_limited(self._take_from_queue(queue, patience_ms) for _ in range(tables))
        return bool(seated) and all(seated)

    async def _take_from_queue(self, queue: Queue, patience_ms: int) -> bool:
        """Whether bots were seated; if not, there is no use in trying again at once."""
        match = new_match_name()
        proposal = await self._store.queues.propose_first(queue.name, queue.seats, patience_ms, match)
        return proposal is not None and await self._seat_proposal(queue, proposal)

    async def _seat_proposal(self, queue: Queue, proposal: Proposal) -> bool:
        """Where they sit is left to chance."""
        bots = [waiting.bot for waiting in proposal.bots]
        bots += self._house.get(queue.game, ())[: queue.seats - len(bots)]
        secrets.SystemRandom().shuffle(bots)
        return await self._proposals.seat_proposal(queue.kind, proposal, bots)

    async def _pair_created(self) -> None:
        """Matches by name, oldest first. Bots that are busy or absent keep theirs waiting, nobody else's."""
        busy: set[str] = set()
        waiting = await self._waiting_by_name()
        while waiting and (room := await self._capacity.count_free_tables()) > 0:
            wave, waiting = self._choose_wave(waiting, busy, min(room, MOST_AWAITED_AT_ONCE))
            missing = await gather_limited(self._seat_waiting(match) for match in wave)
            busy.update(filter(None, missing))

    async def _waiting_by_name(self) -> list[str]:
        """Created matches, oldest first; of each new one the bots are read."""
        waiting = await self._store.queues.front_of(CREATED, LOOK_AHEAD)
        unknown = [match for match in waiting if match not in self._created]
        found = await gather_limited(self._bots_of(match) for match in unknown)
        known = self._created | dict(zip(unknown, found, strict=True))
        self._created = {match: known[match] for match in waiting}
        return waiting

    def _choose_wave(self, waiting: Sequence[str], busy: Set[str], most: int) -> tuple[list[str], list[str]]:
        """The matches that can be seated together, and those that come after them.

        No two share a bot, and nobody's older match is left behind: a bot's last free place is the oldest's.
        """
        wave: list[str] = []
        later: list[str] = []
        taken: set[str] = set()
        for match in waiting[:SIDE_BY_SIDE]:
            bots = self._created[match]
            if not busy.isdisjoint(bots):
                continue
            (wave if taken.isdisjoint(bots) and len(wave) < most else later).append(match)
            taken.update(bots)
        return wave, [*later, *waiting[SIDE_BY_SIDE:]]

    async def _seat_waiting(self, match: str) -> str | None:
        """The bot that is not to be had; none if another lobby has taken the match.

        It is looked for first: seats that were taken for nothing are given back with a notice, which asks for another pass.
        """
        bots = self._created[match]
        if missing := await self._seating.missing_bot(bots):
            return missing
        proposal = await self._store.queues.propose_these(CREATED, match)
        if proposal is None or await self._proposals.close_if_handed_over(CREATED, proposal):
            return None
        return await self._proposals.seat_created(proposal, bots)

    async def _bots_of(self, match: str) -> tuple[str, ...]:
        """Read once for each match; none if it is not known any more."""
        if match in self._created:
            return self._created[match]
        setup = await self._seating.setup_of(match)
        return setup.bots if setup else ()
