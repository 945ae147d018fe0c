"""From bots of a queue to a match that a referee owns: free tables, quotas of owners, seats. Every step may be repeated after a crash."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import structlog
from cachetools import TTLCache

from seatwise.kits import KITS
from seatwise_referee.ending import MatchState
from seatwise_referee.game import Options
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_referee.shuffle import SEED_BYTES
from seatwise_referee.time_control import TimeControl
from seatwise_server.background_tasks import gather_limited
from seatwise_server.game_choice import ALL_KINDS, GameKind, kind_of_game
from seatwise_server.store import (
    OWNERS_PREFIX,
    Heartbeat,
    OwnerCount,
    OwnerLimits,
    Proposal,
    Reservation,
    Store,
    Tables,
    counts_no_shows,
    now_ms,
)
from seatwise_server.store.errors import MatchRetired, NoFreeTable, ProposalExpired
from seatwise_server.store.matches import WAITED_SINCE, facets_of
from seatwise_server.timings import PROPOSAL_ADOPT_MS, PROPOSAL_OWN_MS, REFEREE_SILENT_MS
from seatwise_server.tracing import TRACING

CREATED = "~created"
"""The queue of created matches, which wait for their bots; no bot can name it."""
FRESH_S = 0.5
"""The longest age of the facts about referees, in seconds. The waiting jobs are counted again each time."""
MOST_KNOWN_OWNERS = 20_000
"""Bots whose owner is kept in memory."""
OWNER_KNOWN_S = 60.0
"""Seconds for which it is: a bot loses its owner when it is deleted or its owner is erased."""
LEFTOVER_SWEEP_S = 5.0
"""Seconds between two searches for matches that are counted for an owner and are over."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Kind:
    """The common properties of all matches of a queue, or of a ladder."""

    queue: str
    game: str
    options: Options
    time_control: TimeControl
    competition: str = ""
    """The competition that their results count for; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, in which bots wait for a match of one kind."""

    name: str
    game: str
    seats: int
    options: Options = field(default_factory=dict)
    time_control: Mapping[str, int] = field(default_factory=dict)
    """The differences from the default time control, except for free times."""
    free_ms: Mapping[str, int] = field(default_factory=dict)
    """The free times by pace that differ from the default."""
    patience_ms: int = 3000
    """After this time free seats go to house bots, if there are any for the game."""

    @property
    def kind(self) -> Kind:
        """The kind of match that is played."""
        limits = default_time_control(self.game, **self.time_control)
        limits = replace(limits, free_ms={**limits.free_ms, **self.free_ms})
        return Kind(self.name, self.game, self.options, limits)


QUEUES = {
    each.name: Queue(
        each.name, kit.name, each.seats, each.options, free_ms=each.free_ms, patience_ms=each.patience_ms
    )
    for kit in KITS.values()
    for each in kit.queues
}
"""All queues, by name."""


class Capacity:
    """The capacity as one lobby sees it: all tables of live referees that play such games, less their unfinished jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._referees: list[Heartbeat] = []
        self._until = 0.0

    async def count_free_tables(self, kind: GameKind) -> int:
        """Return the number of tables for games of this kind without a match, less the matches that wait for a referee."""
        tables = await self.find_tables(kind)
        return tables.count - await self._store.jobs.count_unfinished(tables.kinds)

    async def find_tables(self, kind: GameKind) -> Tables:
        """Return the tables for games of this kind, used or free."""
        now = loop_time()
        if now >= self._until:
            beats = await self._store.processes.read_heartbeats()
            self._referees = list_living(list(beats.values()), await now_ms(self._store.client))
            self._until = now + FRESH_S
        kinds = ALL_KINDS if any(len(beat.kinds) > 1 for beat in self._referees) else [kind]
        return Tables(count_tables(self._referees, kinds), kinds)


def list_living(beats: Sequence[Heartbeat], now_ms: int) -> list[Heartbeat]:
    """Return the heartbeats of referees that live; `now_ms` is the time on Redis's clock."""
    return [beat for beat in beats if not beat.has_left and now_ms - beat.beat_ms < REFEREE_SILENT_MS]


def count_tables(referees: Sequence[Heartbeat], kinds: Sequence[GameKind]) -> int:
    """Return the number of tables, used or free, of the referees that play one of these kinds of games."""
    return sum(beat.tables + beat.free for beat in referees if set(kinds) & set(beat.kinds))


class OwnerQuotas:
    """Counts the matches of owners for one lobby, and knows which owners have reached a limit.

    A match is counted before its seats are reserved. So no partner is kept for a bot that may not play. The bots of an owner
    that has reached a limit keep their places in the queues and are left there until the owner has room again.
    """

    def __init__(self, store: Store, limits: OwnerLimits) -> None:
        self._store = store
        self._limits = limits
        self._owners: TTLCache[str, str] = TTLCache(MOST_KNOWN_OWNERS, OWNER_KNOWN_S, timer=loop_time)
        """The owner of each bot that was seen here; empty for a bot that has not been registered by one."""
        self._full: dict[str, frozenset[str]] = {}
        """The bots of each owner that plays as many matches at once as it may."""
        self._spent: dict[str, frozenset[str]] = {}
        """The bots of each owner that has begun as many matches in 24 hours as it may."""
        self._sweep_at = 0.0

    @property
    def left_in_queues(self) -> frozenset[str]:
        """The bots that are not paired in queues and ladders now, because of their owners."""
        return _union(self._full) | _union(self._spent)

    def find_full(self, bots: Collection[str]) -> str | None:
        """Return one of these bots whose owner plays as many matches at once as it may; None if there is none."""
        full = _union(self._full)
        return next((bot for bot in bots if bot in full), None)

    async def count_match(
        self, match: str, bots: Sequence[str], until_ms: int, *, counts_day: bool = True
    ) -> str | None:
        """Count the match for the owners of these bots; repeatable. Return a bot whose owner has reached a limit, or None.

        If there is one, the caller gives the match up and calls `uncount_match`. Without `counts_day` only the limit of matches
        at once applies. Raises ProposalExpired at `until_ms` of Redis's clock or later.
        """
        owners = await self._owners_of(bots)
        named = sorted({owner for owner in owners.values() if owner})
        if not named:
            return None
        count = self._store.owner_matches.open_match
        answers = await count(match, named, until_ms, self._limits, counts_day=counts_day)
        answered = zip(named, answers, strict=True)
        at_limit = {owner: why for owner, why in answered if why is not OwnerCount.COUNTED}
        for owner, why in at_limit.items():
            await self._note_limit(owner, why, (bot for bot in bots if owners[bot] == owner))
        return next((bot for bot in bots if owners[bot] in at_limit), None)

    async def uncount_match(self, match: str, bots: Sequence[str], until_ms: int) -> None:
        """Take `count_match` back for a match that nobody will play. Raises ProposalExpired, so that the proposal is left to others."""
        owners = {owner for owner in (await self._owners_of(bots)).values() if owner}
        await self._store.owner_matches.close_match(match, owners, is_void=True, until_ms=until_ms)

    async def find_room(self) -> None:
        """Forget the owners that may play one match more by now. Costs nothing where no owner has reached a limit."""
        owners = sorted(self._full.keys() | self._spent.keys())
        if not owners:
            return
        if loop_time() >= self._sweep_at:
            self._sweep_at = loop_time() + LEFTOVER_SWEEP_S
            for owner in owners:
                await self._store.owner_matches.close_leftovers(owner)
        rooms = await self._store.owner_matches.measure_room(owners, self._limits)
        for owner, room in zip(owners, rooms, strict=True):
            if not room.is_full:
                self._full.pop(owner, None)
            if not room.is_spent:
                self._spent.pop(owner, None)

    async def _note_limit(self, owner: str, why: OwnerCount, bots: Iterable[str]) -> None:
        noted = self._full if why is OwnerCount.FULL else self._spent
        noted[owner] = frozenset([*bots, *await self._store.owners.list_bots(owner)])
        log.debug("owner_at_limit", why=why.name)

    async def _owners_of(self, bots: Sequence[str]) -> dict[str, str]:
        found = {bot: owner for bot in bots if (owner := self._owners.get(bot)) is not None}
        unknown = [bot for bot in bots if bot not in found]
        read = await self._store.bots.owners_of(unknown) if unknown else {}
        new = {bot: owner if owner.startswith(OWNERS_PREFIX) else "" for bot, owner in read.items()}
        self._owners.update(new)
        return found | new


def _union(bots: dict[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*bots.values())


class Seating:
    """Seats bots in new matches."""

    def __init__(self, store: Store, durability: str) -> None:
        self._store = store
        self._durability = durability

    def new_setup(
        self,
        match: str,
        game: str,
        bots: Sequence[str],
        options: Options,
        time_control: TimeControl,
        competition: str = "",
    ) -> Setup:
        """Return the setup of a match with a new seed. Raises `BadOptions` if the game does not have these options."""
        rules = GAMES[game]
        return Setup(
            match=match,
            game=game,
            rules_version=rules.rules_version,
            options=rules.complete_options(options),
            bots=tuple(bots),
            time_control=time_control,
            seed=secrets.token_bytes(SEED_BYTES),
            durability=self._durability,
            competition=competition,
        )

    async def create_match(
        self,
        setup: Setup,
        state: MatchState,
        queue: str,
        until_ms: int | None = None,
        since_ms: Mapping[str, int] | None = None,
    ) -> bool:
        """Write the match to the store; returns False if it exists already: then its first seed stays.

        `since_ms` tells since when its bots have waited, in a queue in which no-shows count. Raises
        MatchRetired if the match was dropped, and ProposalExpired at `until_ms` of Redis's clock or later.
        """
        meta: dict[str, bytes | str | int] = {
            "format": JOURNAL_FORMAT,
            "setup": canonical_json(setup.to_json()),
            "state": state,
            "queue": queue,
        }
        if since_ms:
            meta[WAITED_SINCE] = json.dumps(since_ms)
        return await self._store.matches.create_match(setup.match, meta, until_ms, facets_of(setup))

    async def is_handed_over(self, match: str) -> bool:
        """Whether the match has a job, or has had one that a referee took.

        The job is read first: when it is done, its referee has already left a fence.
        """
        has_job = await self._store.jobs.is_open(match)
        return has_job or await self._store.journal.read_fence(match) is not None

    async def missing_bot(self, bots: Sequence[str]) -> str | None:
        """Return a bot that has fewer free places than it has seats among these; None if all of them could be seated."""
        room = await self._store.seats.free_places(bots)
        found = zip(bots, room, strict=True)
        return min((bot for bot, free in found if free < bots.count(bot)), default=None)

    async def reserve_seats(
        self, match: str, bots: Sequence[str], until_ms: int, queued: Collection[str] = ()
    ) -> str | None:
        """Reserve all seats or none: if a bot is missing, releases the other seats and returns that bot.

        Seats are reserved in the order of the bots' names, so that of two lobbies that want the same bots one succeeds. The
        `queued` bots come from a queue in which no-shows count.

        Raises ProposalExpired at `until_ms` of Redis's clock or later: then another lobby may reserve and release these seats.
        """
        wanted = sorted((bot, seat) for seat, bot in enumerate(bots))
        answers = await self._store.seats.reserve_all(match, wanted, until_ms, queued)
        answered = list(zip((bot for bot, _ in wanted), answers, strict=True))
        missing = next((bot for bot, why in answered if not why.holds), None)
        if missing is None:
            held = [bot for bot, why in answered if why is Reservation.ALREADY]
            missing = await self._absent_bot(held)
        if missing is None:
            return None
        await self._store.seats.release_all(match, bots, until_ms)
        log.debug("seat_not_reserved", match=match, bot=missing, why=dict(answered)[missing].name)
        return missing

    async def release_seats(self, match: str, until_ms: int) -> None:
        """Release the seats that were reserved. A lobby that died may have reserved them in another order of the bots.

        Raises ProposalExpired at `until_ms` of Redis's clock or later.
        """
        if setup := await self.setup_of(match):
            await self._store.seats.release_all(match, setup.bots, until_ms)

    async def _absent_bot(self, bots: Sequence[str]) -> str | None:
        """Return one of these bots that is not present. A lobby that died reserved its seat, and the bot has left since."""
        if not bots:
            return None
        present = await self._store.attendances.present_bots(bots)
        return next((bot for bot in bots if bot not in present), None)

    async def abort_match(self, match: str, why: str = "") -> None:
        """Mark the match for its next owner, and notify the present one; without an owner it gets one.

        It leaves the queue last: if this process dies before that, another one gives it to a referee, which aborts it.
        """
        await self._store.matches.ask_abort(match, why)
        fence = await self._store.journal.read_fence(match)
        if fence is None:
            setup = await self.setup_of(match)
            await self._store.jobs.push_job(match, kind_of_game(setup.game if setup else ""))
        elif not fence.is_retired:
            await self._store.processes.send_order(fence.owner, f"abort {match}".encode())
        await self._store.queues.leave_queue(CREATED, match)

    async def abort_waiting_for(self, bot: str, why: str) -> list[str]:
        """Abort all created matches that wait for this bot; returns their names."""
        waiting = [each.name for each in await self._store.queues.list_entries(CREATED)]
        waiting += [each.match for each in await self._store.queues.unfinished_proposals(CREATED)]
        setups = await gather_limited(self.setup_of(match) for match in waiting)
        found = sorted({setup.match for setup in setups if setup and bot in setup.bots})
        await gather_limited(self.abort_match(match, why) for match in found)
        return found

    async def setup_of(self, match: str) -> Setup | None:
        """Return the setup with which the match was created; None if the match is not known."""
        meta = await self._store.matches.get_meta(match)
        if meta is None or "setup" not in meta.fields:
            return None
        return Setup.from_json(json.loads(meta.fields["setup"]))


class CreatedMatch(NamedTuple):
    """A created match that waits for its bots, as far as a lobby knows it."""

    game: str
    bots: tuple[str, ...]
    """Empty if the match is not known any more."""


class Proposals:
    """The proposals of one lobby."""

    def __init__(self, store: Store, seating: Seating, capacity: Capacity, quotas: OwnerQuotas) -> None:
        self._store = store
        self._seating = seating
        self._capacity = capacity
        self._quotas = quotas

    async def seat_proposal(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        """Seat these bots, in this order; if one is missing, the present ones go back to their places in the
        queue. So do all of them if the owner of one has reached a limit.

        Return whether the queue is shorter now; if not, a repeat at once is useless.
        """
        with _seating_in_time(proposal, kind.queue):
            return await self._try_to_seat(kind, proposal, bots)
        return False

    async def _try_to_seat(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        if await self._quotas.count_match(proposal.match, bots, _until_ms(proposal)):
            await self._give_up(kind.queue, proposal)
            return False
        try:
            missing = await self._reserve_seats(kind, proposal, bots)
        except MatchRetired:  # a lobby dropped it and died before it put the bots back
            return await self._give_up(kind.queue, proposal)
        if missing or not await self._hand_over(proposal, kind.game):
            return await self._give_up(kind.queue, proposal, missing)
        await asyncio.gather(
            self._store.queues.close_proposal(kind.queue, proposal.match),
            self._requeue_bots(kind.queue, [entry.name for entry in proposal.entries]),
        )
        log.info("match_paired", match=proposal.match, queue=kind.queue, bots=list(bots))
        return True

    async def seat_created(self, proposal: Proposal, created: CreatedMatch) -> str | None:
        """Seat a created match. If a bot is missing, returns it, and the match keeps its place in the queue."""
        with _seating_in_time(proposal, CREATED):
            return await self._seat_created(proposal, created)
        return None

    async def _seat_created(self, proposal: Proposal, created: CreatedMatch) -> str | None:
        match, (game, bots) = proposal.match, created
        until_ms = _until_ms(proposal)
        if full := await self._quotas.count_match(match, bots, until_ms, counts_day=False):
            await self._quotas.uncount_match(match, bots, until_ms)
            await self._store.queues.dissolve_proposal(CREATED, match, proposal.entries)
            return full
        missing = await self._seating.reserve_seats(match, bots, until_ms)
        if missing or (bots and not await self._hand_over(proposal, game)):
            await self._store.queues.dissolve_proposal(CREATED, match, proposal.entries)
            return missing
        await self._store.queues.close_proposal(CREATED, match)
        if bots:
            log.info("match_paired", match=match, queue=CREATED, bots=list(bots))
        return None

    async def _give_up(self, queue: str, proposal: Proposal, missing: str | None = None) -> bool:
        """Put all bots except the missing one back, if they are present. Return whether the queue is shorter now."""
        if not await self._store.matches.drop_unowned(proposal.match, _until_ms(proposal)):
            await self._close_proposal(queue, proposal)
            return False
        bots = [entry.name for entry in proposal.entries]
        await self._quotas.uncount_match(proposal.match, bots, _until_ms(proposal))
        present = await self._store.attendances.present_bots(bots)
        back = [entry for entry in proposal.entries if entry.name in present - {missing}]
        await self._store.queues.dissolve_proposal(queue, proposal.match, back)
        return len(back) < len(proposal.entries)

    async def adopt_proposal(self, queue: str, match: str) -> Proposal | None:
        """Adopt a proposal that another lobby has left, to be seated; None if it is too new, gone, or closed now."""
        proposal = await self._store.queues.adopt_proposal(queue, match, PROPOSAL_ADOPT_MS)
        if proposal and await self.close_if_handed_over(queue, proposal):
            return None
        return proposal

    async def close_if_handed_over(self, queue: str, proposal: Proposal) -> bool:
        """Close the proposal if its match was handed over: its lobby died before its last step."""
        if not await self._seating.is_handed_over(proposal.match):
            return False
        await self._close_proposal(queue, proposal)
        return True

    async def _close_proposal(self, queue: str, proposal: Proposal) -> None:
        """Free no seat: the seats of a match that was handed over belong to its referee."""
        if queue != CREATED:  # there matches wait, not bots
            await self._requeue_bots(queue, [entry.name for entry in proposal.entries])
        await self._store.queues.close_proposal(queue, proposal.match)
        log.info("proposal_closed", match=proposal.match, queue=queue)

    async def _requeue_bots(self, queue: str, bots: Sequence[str]) -> None:
        """Put bots with free places back into the queue. Their lobby does it too, but only after a notice of the offer."""
        room = await self._store.seats.free_places(bots, queue)
        await self._store.queues.enter_all(queue, [bot for bot, free in zip(bots, room, strict=True) if free])

    async def _hand_over(self, proposal: Proposal, game: str) -> bool:
        """Hand the match to a referee, now that all its seats are reserved.

        Return False, and releases the seats, if another lobby has seated a match at the last free table.
        """
        match, until_ms, kind = proposal.match, _until_ms(proposal), kind_of_game(game)
        try:
            await self._store.jobs.push_new_job(match, kind, until_ms, await self._capacity.find_tables(kind))
        except NoFreeTable:
            await self._seating.release_seats(match, until_ms)
            return False
        return True

    async def _reserve_seats(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> str | None:
        """Write the match before its seats are reserved, so that no seat belongs to an unknown match.

        Return the bot that is missing, or None. Raises MatchRetired if the match was dropped.
        """
        match, until_ms = proposal.match, _until_ms(proposal)
        args = (match, kind.game, bots, kind.options, kind.time_control, kind.competition)
        new = self._seating.new_setup(*args)
        entries = proposal.entries if counts_no_shows(kind.queue) else ()
        since_ms = {entry.name: entry.since_ms for entry in entries}
        is_created = await self._seating.create_match(new, MatchState.SEATING, kind.queue, until_ms, since_ms)
        setup = new if is_created else await self._seating.setup_of(match)
        if setup is None:
            raise MatchRetired(match)
        return await self._seating.reserve_seats(match, setup.bots, until_ms, queued=since_ms)


@contextmanager
def _seating_in_time(proposal: Proposal, queue: str) -> Iterator[None]:
    """Trace the steps, and leave the proposal to other lobbies if the time of this one ends meanwhile."""
    try:
        with TRACING.open_span("seating", match=proposal.match, queue=queue):
            yield
    except ProposalExpired:
        log.warning("proposal_left_to_others", match=proposal.match, queue=queue)


def _until_ms(proposal: Proposal) -> int:
    """Return the time until which this lobby may seat the proposal, in milliseconds of Redis's clock."""
    return proposal.taken_ms + PROPOSAL_OWN_MS


def loop_time() -> float:
    """Return the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()
