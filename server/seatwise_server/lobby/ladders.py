"""The pairing of ladders: by rating, in place of first come, first served. The path after it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import structlog

from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_pairing import AttendingBot
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.lobby.capacity import Capacity
from seatwise_server.lobby.proposals import Proposals, now
from seatwise_server.lobby.queue import Kind
from seatwise_server.lobby.seating import new_match_name
from seatwise_server.lobby.together import together
from seatwise_server.store import Proposal, Store, Waiting, now_ms

SHARE = 20
"""Passes take at most one part in so many of the process's time."""
FORGOTTEN_S = 900.0
"""A match whose result has not come by then was voided."""

log = structlog.get_logger()


class LadderPairing:
    """The pairing of those ladders that this process holds."""

    def __init__(self, store: Store, holding: LadderHost, proposals: Proposals, capacity: Capacity) -> None:
        self._store = store
        self._holding = holding
        self._proposals = proposals
        self._capacity = capacity
        self._owners: dict[str, str] = {}
        """Of the bots that were seen here; they never change."""
        self._rests_until = 0.0

    async def pair(self) -> None:
        """One pass over each ladder, unless the last one took so long that others must have their turn."""
        if now() < self._rests_until:
            return
        busy_s = 0.0
        for held in list(self._holding.hosted.values()):
            busy_s += await self._pair(held)
        self._rests_until = now() + SHARE * busy_s

    async def take_up_unfinished(self) -> None:
        """Proposals that a lobby left when it died."""
        for held in list(self._holding.hosted.values()):
            name = held.ladder.name
            for left in await self._store.queues.unfinished(name):
                if proposal := await self._proposals.adopt(name, left.match):
                    await self._seat(held.ladder, proposal)

    async def _pair(self, held: HostedLadder) -> float:
        """The seconds that it took to lay the tables."""
        began = perf_counter()
        waiting = await self._who_waits(held)
        room = await self._capacity.look() if len(waiting) >= held.ladder.seats else 0
        if room <= 0:
            return 0.0
        await self._learn_owners([each.bot for each in waiting])
        at_ms = await now_ms(self._store.client)
        attending = self._attending(held, waiting, at_ms)
        tables = held.ladder.pairing_rules.pair_tables(attending, room)
        took_s = perf_counter() - began
        await together(self._call(held, table) for table in tables)
        return took_s

    async def _who_waits(self, held: HostedLadder) -> list[Waiting]:
        """Without those who are off the ladder, who leave the queue, and those on trial that sit at a table of it.

        First the queue is read and then the log: who waits is free, so its last result is there.
        """
        name = held.ladder.name
        waiting = await self._store.queues.waiting(name)
        if len(waiting) < held.ladder.seats:
            return waiting
        await held.state.catch_up()
        off = held.state.off_reasons
        for bot in [each.bot for each in waiting if each.bot in off]:
            await self._store.queues.leave(name, bot)
        busy = await self._busy_on_trial(held, [each.bot for each in waiting])
        return [each for each in waiting if each.bot not in off and each.bot not in busy]

    async def _busy_on_trial(self, held: HostedLadder, bots: Sequence[str]) -> set[str]:
        """Bots that have never seen a match through, or not their last one, play one at a time.

        So one that is broken does not spoil a hundred tables before it is found out.
        """
        seated = {bot for table in held.open_tables.values() for bot in table}
        found = set()
        for bot in seated.intersection(bots):
            if held.state.forms.form_of(bot).is_on_trial:
                seats = await self._store.seats.held(bot)  # of a match that was voided nobody tells
                if any(seat.match in held.open_tables for seat in seats):
                    found.add(bot)
        return found

    async def _learn_owners(self, bots: Sequence[str]) -> None:
        unknown = [bot for bot in bots if bot not in self._owners]
        self._owners.update(await self._store.bots.owners(unknown))

    def _attending(self, held: HostedLadder, waiting: Sequence[Waiting], at_ms: int) -> list[AttendingBot]:
        """Those who wait, and those at tables: they are among the others when it comes to whom one meets again."""
        free = [self._one(held, each.bot, (at_ms - each.since_ms) / 1000, 1) for each in waiting]
        names = {each.bot for each in waiting}
        busy = (
            {bot for bots in held.open_tables.values() for bot in bots}
            - names
            - held.state.off_reasons.keys()
        )
        return free + [self._one(held, bot, 0.0, 0) for bot in sorted(busy)]

    def _one(self, held: HostedLadder, bot: str, waited_s: float, free: int) -> AttendingBot:
        form = held.state.forms.form_of(bot)
        rating = held.state.ratings.rating_of(bot).mu
        owner = self._owners.get(bot, "")
        return AttendingBot(
            bot, rating, max(0.0, waited_s), owner, form.recent_opponents, form.seat_counts, free
        )

    async def _call(self, held: HostedLadder, table: Sequence[str]) -> None:
        """Takes these off the queue, if all of them are still there, and seats them in this order."""
        match = new_match_name()
        proposal = await self._store.queues.take_these(held.ladder.name, match, table)
        if proposal and await self._seat(held.ladder, proposal):
            held.note_table(match, table, now() + FORGOTTEN_S)

    async def _seat(self, ladder: Ladder, proposal: Proposal) -> bool:
        kind = Kind(ladder.name, ladder.game, ladder.options, ladder.time_control, ladder.name)
        return await self._proposals.seat(kind, proposal, [each.bot for each in proposal.bots])
