"""The pairing of ladders: by rating instead of first come, first served. Seating is the same as for queues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import structlog

from seatwise_server.bot_names import unify_owner
from seatwise_server.game_choice import kind_of_game
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_pairing import AttendingBot
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.lobby.capacity import Capacity
from seatwise_server.lobby.proposals import Proposals, loop_time
from seatwise_server.lobby.queue import Kind
from seatwise_server.match_names import new_match_name
from seatwise_server.store import Proposal, QueueEntry, Store, now_ms
from seatwise_server.together import gather_limited

SHARE = 20
"""Passes use at most one part in `SHARE` of the process's time."""
FORGOTTEN_S = 900.0
"""The time without a result, in seconds, after which a match counts as voided."""

log = structlog.get_logger()


class LadderPairing:
    """The pairing of the ladders that this process hosts."""

    def __init__(
        self, store: Store, ladder_host: LadderHost, proposals: Proposals, capacity: Capacity
    ) -> None:
        self._store = store
        self._ladder_host = ladder_host
        self._proposals = proposals
        self._capacity = capacity
        self._owners: dict[str, str] = {}
        """The owners of the bots that were seen here; they never change."""
        self._rests_until = 0.0

    async def pair_ladders(self, awaited: Collection[str]) -> None:
        """Pairs each ladder once, unless the last pass took so long that other work must go first.

        The `awaited` bots are left out: a created match waits for them, or their owners may play no more now.
        """
        if loop_time() < self._rests_until:
            return
        busy_s = 0.0
        for hosted in list(self._ladder_host.hosted.values()):
            busy_s += await self._pair_ladder(hosted, awaited)
        self._rests_until = loop_time() + SHARE * busy_s

    async def take_up_unfinished(self) -> None:
        """Adopts and seats the proposals of lobbies that died."""
        for hosted in list(self._ladder_host.hosted.values()):
            name = hosted.ladder.name
            for left in await self._store.queues.unfinished_proposals(name):
                if proposal := await self._proposals.adopt_proposal(name, left.match):
                    await self._seat_proposal(hosted.ladder, proposal)

    async def _pair_ladder(self, hosted: HostedLadder, awaited: Collection[str]) -> float:
        """Pairs one ladder; returns the seconds that choosing its tables took."""
        began = loop_time()
        waiting = [each for each in await self._read_playable_bots(hosted) if each.name not in awaited]
        ladder = hosted.ladder
        room = (
            await self._capacity.count_free_tables(kind_of_game(ladder.game))
            if len(waiting) >= ladder.seats
            else 0
        )
        if room <= 0:
            return 0.0
        await self._learn_owners([each.name for each in waiting])
        at_ms = await now_ms(self._store.client)
        attending = self._attending_bots(hosted, waiting, at_ms)
        tables = hosted.ladder.pairing_rules.pair_tables(attending, room)
        took_s = loop_time() - began
        await gather_limited(self._seat_table(hosted, table) for table in tables)
        return took_s

    async def _read_playable_bots(self, hosted: HostedLadder) -> list[QueueEntry]:
        """Returns the bots that wait, without those that may not play now.

        Bots that are off the ladder leave the queue. Bots on trial that sit at a table of the ladder are left
        out. The queue is read before the log: a bot that waits is free, so the log already has its last result.
        """
        name = hosted.ladder.name
        waiting = await self._store.queues.list_entries(name)
        if len(waiting) < hosted.ladder.seats:
            return waiting
        await hosted.state.catch_up()
        off = hosted.state.off_reasons
        for bot in [each.name for each in waiting if each.name in off]:
            await self._store.queues.leave_queue(name, bot)
        busy = await self._busy_on_trial(hosted, [each.name for each in waiting])
        return [each for each in waiting if each.name not in off and each.name not in busy]

    async def _busy_on_trial(self, hosted: HostedLadder, bots: Sequence[str]) -> set[str]:
        """Returns the busy bots on trial: bots that have never finished a match, or not their last one, play
        one at a time.

        So a broken bot does not spoil a hundred matches before that is noticed.
        """
        seated = {bot for table in hosted.open_tables.values() for bot in table}
        found = set()
        for bot in seated.intersection(bots):
            if hosted.state.forms.form_of(bot).is_on_trial:
                seats = await self._store.seats.held_seats(bot)  # no notice tells of a voided match
                if any(seat.match in hosted.open_tables for seat in seats):
                    found.add(bot)
        return found

    async def _learn_owners(self, bots: Sequence[str]) -> None:
        unknown = [bot for bot in bots if bot not in self._owners]
        owners = await self._store.bots.owners_of(unknown)
        self._owners.update({bot: unify_owner(owner) for bot, owner in owners.items()})

    def _attending_bots(
        self, hosted: HostedLadder, waiting: Sequence[QueueEntry], at_ms: int
    ) -> list[AttendingBot]:
        """Returns the bots that wait, and those at tables: the latter count among the opponents that a bot can
        meet again.
        """
        names = {each.name for each in waiting}
        at_tables: dict[str, Counter[str]] = defaultdict(Counter)
        for bots in hosted.open_tables.values():
            for bot in names.intersection(bots):
                at_tables[bot].update(other for other in bots if other != bot)
        free = [self._waiting_bot(hosted, each, at_ms, at_tables.get(each.name)) for each in waiting]
        busy = (
            {bot for bots in hosted.open_tables.values() for bot in bots}
            - names
            - hosted.state.off_reasons.keys()
        )
        return free + [self._busy_bot(hosted, bot) for bot in sorted(busy)]

    def _waiting_bot(
        self, hosted: HostedLadder, entry: QueueEntry, at_ms: int, at_tables: Counter[str] | None
    ) -> AttendingBot:
        seats, waited_s = hosted.ladder.seats, (at_ms - entry.since_ms) / 1000
        return replace(
            self._busy_bot(hosted, entry.name),
            waited_s=max(0.0, waited_s),
            free_matches=1,
            barred=hosted.state.meetings.barred_opponents(entry.name, seats, at_ms, at_tables),
        )

    def _busy_bot(self, hosted: HostedLadder, bot: str) -> AttendingBot:
        form, rating = hosted.state.forms.form_of(bot), hosted.state.ratings.rating_of(bot).mu
        owner = self._owners.get(bot, "")
        return AttendingBot(bot, rating, 0.0, owner, form.recent_opponents, form.seat_counts, free_matches=0)

    async def _seat_table(self, hosted: HostedLadder, table: Sequence[str]) -> None:
        """Takes these bots off the queue, if all of them still wait, and seats them in this order."""
        match = new_match_name()
        proposal = await self._store.queues.take_these(hosted.ladder.name, match, table)
        if proposal and await self._seat_proposal(hosted.ladder, proposal):
            hosted.note_table(match, table, loop_time() + FORGOTTEN_S)

    async def _seat_proposal(self, ladder: Ladder, proposal: Proposal) -> bool:
        kind = Kind(ladder.name, ladder.game, ladder.options, ladder.time_control, ladder.name)
        return await self._proposals.seat_proposal(kind, proposal, [each.name for each in proposal.entries])
