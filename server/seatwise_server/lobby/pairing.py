"""Pairing: queues first come, first served, and created matches."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace

import structlog

from seatwise_server.background_tasks import MOST_AWAITED_AT_ONCE, gather_limited
from seatwise_server.game_choice import GameKind, kind_of_game
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_pairing import AttendingBot
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.lobby.seating import (
    CREATED,
    QUEUES,
    Capacity,
    CreatedMatch,
    Kind,
    OwnerQuotas,
    Proposals,
    Queue,
    Seating,
    loop_time,
)
from seatwise_server.resource_names import new_match_name, unify_owner
from seatwise_server.store import OwnerLimits, Proposal, QueueEntry, Store, now_ms
from seatwise_server.store.errors import StoreUnavailable

PASS_S = 0.2
"""The longest time between two passes, in seconds."""
REST_S = 0.02
"""The shortest time between two passes: changes at the same time are handled together."""
UNFINISHED_S = 1.0
"""The time between two searches for proposals of lobbies that died. `PROPOSAL_ADOPT_MS` is much longer anyway."""
LOOK_AHEAD = 10_000
"""How many created matches one pass looks at, so that a match whose bots are busy does not block the next."""
SIDE_BY_SIDE = 4 * MOST_AWAITED_AT_ONCE
"""How many of them are searched for matches that can be seated together."""
SHARE = 20
"""Passes use at most one part in `SHARE` of the process's time."""
FORGOTTEN_S = 900.0
"""The time without a result, in seconds, after which a match counts as voided."""

log = structlog.get_logger()


class Pairing:
    """The pairing of one lobby; several lobbies may run against one Redis."""

    def __init__(
        self,
        store: Store,
        seating: Seating,
        house: Mapping[str, Sequence[str]],
        ladder_host: LadderHost,
        owner_limits: OwnerLimits | None = None,
    ) -> None:
        """`owner_limits` are the quotas of owners that have none of their own."""
        self._store = store
        self._seating = seating
        self._house = house
        """For each game the names of the house bots, which fill free seats."""
        self._created: dict[str, CreatedMatch] = {}
        """Each created match that waits for its bots and was read before."""
        self._capacity = Capacity(store)
        self._quotas = OwnerQuotas(store, owner_limits or OwnerLimits())
        self._proposals = Proposals(store, seating, self._capacity, self._quotas)
        self._ladders = LadderPairing(store, ladder_host, self._proposals, self._capacity)
        self._wake = asyncio.Event()
        self._unfinished_at = loop_time()
        """The loop time of the next search for unfinished proposals."""

    def wake_pairing(self) -> None:
        """Start a pass at once, because something has changed."""
        self._wake.set()

    async def run_pairing(self) -> None:
        """Repeat passes over all queues. Runs until cancelled."""
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
        """Make one pass; returns whether there may be more to do in a queue.

        Created matches and ladders come first. Otherwise the queues would take all places of a bot that waits in them too.
        """
        await self._quotas.find_room()
        created, counts = await asyncio.gather(
            self._store.queues.front_of(CREATED, LOOK_AHEAD),
            self._store.queues.count_all_waiting(list(QUEUES)),
        )
        awaited = await self._pair_created(created)
        await self._ladders.pair_ladders(awaited | self._quotas.left_in_queues)
        queues = zip(QUEUES.values(), counts, strict=True)
        waves = [await self._pair_queue(queue, count, awaited) for queue, count in queues if count]
        return any(waves)

    async def _wait_for_change(self) -> None:
        await asyncio.sleep(REST_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(PASS_S):
                await self._wake.wait()

    async def take_up_unfinished(self) -> None:
        """Adopt and seat the proposals of lobbies that died. Of several lobbies that find one, only one adopts it."""
        self._unfinished_at = loop_time() + UNFINISHED_S
        names = [*QUEUES, CREATED]
        *in_queues, created = await gather_limited(map(self._store.queues.unfinished_proposals, names))
        for queue, unfinished in zip(QUEUES.values(), in_queues, strict=True):
            for left in unfinished:
                if proposal := await self._proposals.adopt_proposal(queue.name, left.match):
                    await self._seat_proposal(queue, proposal)
        await self._ladders.take_up_unfinished()
        for left in created:
            if proposal := await self._proposals.adopt_proposal(CREATED, left.match):
                await self._proposals.seat_created(proposal, await self._read_created(left.match))

    async def _pair_queue(self, queue: Queue, count: int, awaited: Collection[str]) -> bool:
        """Seat as many tables as there are bots for; returns whether the queue is shorter now.

        At the start of the pass `count` bots waited. The `awaited` ones are left there.
        Without enough house bots, a table waits for all its bots without a limit.
        """
        helps = len(self._house.get(queue.game, ())) >= queue.seats - 1
        patience_ms = queue.patience_ms if helps else 10**15
        free = await self._capacity.count_free_tables(kind_of_game(queue.game))
        tables = min(free, MOST_AWAITED_AT_ONCE, max(1, count // queue.seats))
        seated = await gather_limited(
            self._seat_from_queue(queue, patience_ms, awaited) for _ in range(tables)
        )
        return bool(seated) and all(seated)

    async def _seat_from_queue(self, queue: Queue, patience_ms: int, awaited: Collection[str]) -> bool:
        """Return whether a repeat at once is useful: bots were seated, or have to be left in the queue from now on."""
        match, left = new_match_name(), self._quotas.left_in_queues
        proposal = await self._store.queues.propose_first(
            queue.name, queue.seats, patience_ms, match, left.union(awaited)
        )
        if proposal is None:
            return False
        return await self._seat_proposal(queue, proposal) or self._quotas.left_in_queues != left

    async def _seat_proposal(self, queue: Queue, proposal: Proposal) -> bool:
        """Seat the bots of a proposal, and house bots for free seats, in random order."""
        bots = [entry.name for entry in proposal.entries]
        bots += self._house.get(queue.game, ())[: queue.seats - len(bots)]
        secrets.SystemRandom().shuffle(bots)
        return await self._proposals.seat_proposal(queue.kind, proposal, bots)

    async def _pair_created(self, matches: list[str]) -> frozenset[str]:
        """Seat the created matches that wait, oldest first. Busy or absent bots delay only their own matches.

        Return the bots that are awaited: see `_awaited_bots`.
        """
        busy: set[str] = set()
        await self._read_new_created(matches)
        for kind in GameKind:
            waiting = [match for match in matches if kind_of_game(self._created[match].game) is kind]
            while waiting and (room := await self._capacity.count_free_tables(kind)) > 0:
                wave, waiting = self._choose_wave(waiting, busy, min(room, MOST_AWAITED_AT_ONCE))
                missing = await gather_limited(self._seat_created(match) for match in wave)
                busy.update(filter(None, missing))
        tables = (bots for _, bots in self._created.values() if not busy.isdisjoint(bots))
        return await self._awaited_bots([bots for bots in tables if not self._quotas.find_full(bots)])

    async def _awaited_bots(self, tables: Sequence[Sequence[str]]) -> frozenset[str]:
        """Return the bots of created matches that wait only until a match of one of their bots is over.

        Queues and ladders leave these bots alone. Otherwise they would take each place as soon as it is free, and the
        bots of such a match might never have a free place at the same time.
        """
        tables = tables[:SIDE_BY_SIDE]
        most = await self._store.attendances.most_matches({bot for bots in tables for bot in bots})
        seatable = (bots for bots in tables if all(most.get(bot, 0) >= bots.count(bot) for bot in bots))
        return frozenset(bot for bots in seatable for bot in bots)

    async def _read_new_created(self, waiting: list[str]) -> None:
        unknown = [match for match in waiting if match not in self._created]
        found = await gather_limited(self._read_created(match) for match in unknown)
        known = self._created | dict(zip(unknown, found, strict=True))
        self._created = {match: known[match] for match in waiting}

    def _choose_wave(self, waiting: Sequence[str], busy: Set[str], most: int) -> tuple[list[str], list[str]]:
        """Return the matches that can be seated together, and those that come after them.

        No two of a wave share a bot. The last free place of a bot goes to its oldest match.
        """
        wave: list[str] = []
        later: list[str] = []
        taken: set[str] = set()
        for match in waiting[:SIDE_BY_SIDE]:
            bots = self._created[match].bots
            if not busy.isdisjoint(bots):
                continue
            (wave if taken.isdisjoint(bots) and len(wave) < most else later).append(match)
            taken.update(bots)
        return wave, [*later, *waiting[SIDE_BY_SIDE:]]

    async def _seat_created(self, match: str) -> str | None:
        """Return the bot that is missing; None if the match was seated, or if another lobby has taken it.

        It is looked for first: releasing seats that were reserved in vain publishes a notice, which triggers another pass.
        """
        created = self._created[match]
        if full := self._quotas.find_full(created.bots):
            return full
        if missing := await self._seating.missing_bot(created.bots):
            return missing
        proposal = await self._store.queues.propose_these(CREATED, match)
        if proposal is None or await self._proposals.close_if_handed_over(CREATED, proposal):
            return None
        return await self._proposals.seat_created(proposal, created)

    async def _read_created(self, match: str) -> CreatedMatch:
        """Return the game and the bots of a match, which are read only once; no bots if the match is not known any more."""
        if match in self._created:
            return self._created[match]
        setup = await self._seating.setup_of(match)
        return CreatedMatch(setup.game, setup.bots) if setup else CreatedMatch("", ())


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
        """Pair each ladder once, unless the last pass took so long that other work must go first.

        The `awaited` bots are left out: a created match waits for them, or their owners may play no more now.
        """
        if loop_time() < self._rests_until:
            return
        busy_s = 0.0
        for hosted in list(self._ladder_host.hosted.values()):
            if not hosted.is_closed:
                busy_s += await self._pair_ladder(hosted, awaited)
        self._rests_until = loop_time() + SHARE * busy_s

    async def take_up_unfinished(self) -> None:
        """Adopt and seat the proposals of lobbies that died."""
        for hosted in list(self._ladder_host.hosted.values()):
            name = hosted.ladder.name
            for left in await self._store.queues.unfinished_proposals(name):
                if proposal := await self._proposals.adopt_proposal(name, left.match):
                    await self._seat_proposal(hosted.ladder, proposal)

    async def _pair_ladder(self, hosted: HostedLadder, awaited: Collection[str]) -> float:
        """Pair one ladder; returns the seconds that choosing its tables took."""
        began = loop_time()
        waiting = [each for each in await self._read_playable_bots(hosted) if each.name not in awaited]
        ladder = hosted.ladder
        room = 0
        if len(waiting) >= ladder.seats:
            room = await self._capacity.count_free_tables(kind_of_game(ladder.game))
        if room <= 0:
            return 0.0
        await self._learn_owners([each.name for each in waiting])
        at_ms = await now_ms(self._store.client)
        tables = ladder.pairing_rules.pair_tables(self._attending_bots(hosted, waiting, at_ms), room)
        took_s = loop_time() - began
        await gather_limited(self._seat_table(hosted, table) for table in tables)
        return took_s

    async def _read_playable_bots(self, hosted: HostedLadder) -> list[QueueEntry]:
        """Return the bots that wait, without those that may not play now.

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
        """Return the busy bots on trial: bots that have never finished a match, or not their last one, play one at a time.

        So a broken bot does not spoil a hundred matches before that is noticed.
        """
        seated = {bot for table in hosted.open_tables.values() for bot in table}
        on_trial = [bot for bot in seated.intersection(bots) if hosted.state.forms.form_of(bot).is_on_trial]
        # Of a voided match no notice tells.
        seats = {bot: await self._store.seats.held_seats(bot) for bot in on_trial}
        return {bot for bot in on_trial if any(seat.match in hosted.open_tables for seat in seats[bot])}

    async def _learn_owners(self, bots: Sequence[str]) -> None:
        unknown = [bot for bot in bots if bot not in self._owners]
        owners = await self._store.bots.owners_of(unknown)
        self._owners.update({bot: unify_owner(owner) for bot, owner in owners.items()})

    def _attending_bots(
        self, hosted: HostedLadder, waiting: Sequence[QueueEntry], at_ms: int
    ) -> list[AttendingBot]:
        """Return the bots that wait, and those at tables: the latter count among the opponents that a bot can meet again."""
        names = {each.name for each in waiting}
        at_tables: dict[str, Counter[str]] = defaultdict(Counter)
        for bots in hosted.open_tables.values():
            for bot in names.intersection(bots):
                at_tables[bot].update(other for other in bots if other != bot)
        free = [self._waiting_bot(hosted, each, at_ms, at_tables.get(each.name)) for each in waiting]
        seated = {bot for bots in hosted.open_tables.values() for bot in bots}
        busy = sorted(seated - names - hosted.state.off_reasons.keys())
        return free + [self._busy_bot(hosted, bot) for bot in busy]

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
        """Take these bots off the queue, if all of them still wait, and seat them in this order."""
        match = new_match_name()
        proposal = await self._store.queues.take_these(hosted.ladder.name, match, table)
        if proposal and await self._seat_proposal(hosted.ladder, proposal):
            hosted.note_table(match, table, loop_time() + FORGOTTEN_S)

    async def _seat_proposal(self, ladder: Ladder, proposal: Proposal) -> bool:
        kind = Kind(ladder.name, ladder.game, ladder.options, ladder.time_control, ladder.name)
        return await self._proposals.seat_proposal(kind, proposal, [each.name for each in proposal.entries])
