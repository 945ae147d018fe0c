"""The way from bots taken off a queue to a match that a referee owns. Every step may be repeated after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from seatwise_referee.match_state import MatchState
from seatwise_server.game_choice import kind_of_game
from seatwise_server.lobby.capacity import Capacity
from seatwise_server.lobby.owner_quotas import OwnerQuotas
from seatwise_server.lobby.queue import CREATED, Kind
from seatwise_server.lobby.seating import Seating
from seatwise_server.store import OwnerLimits, Proposal, Store, counts_no_shows
from seatwise_server.store.errors import MatchRetired, NoFreeTable, ProposalExpired
from seatwise_server.timings import PROPOSAL_ADOPT_MS, PROPOSAL_OWN_MS

log = structlog.get_logger()


class CreatedMatch(NamedTuple):
    """A created match that waits for its bots, as far as a lobby knows it."""

    game: str
    bots: tuple[str, ...]
    """Empty if the match is not known any more."""


class Proposals:
    """The proposals of one lobby."""

    def __init__(
        self, store: Store, seating: Seating, capacity: Capacity, quotas: OwnerQuotas | None = None
    ) -> None:
        self._store = store
        self._seating = seating
        self._capacity = capacity
        self._quotas = quotas or OwnerQuotas(store, OwnerLimits())

    async def seat_proposal(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        """Seats these bots, in this order; if one is missing, the present ones go back to their places in the
        queue. So do all of them if the owner of one has reached a limit.

        Returns whether the queue is shorter now; if not, a repeat at once is useless.
        """
        try:
            return await self._try_to_seat(kind, proposal, bots)
        except ProposalExpired:
            log.warning("proposal_left_to_others", match=proposal.match, queue=kind.queue)
            return False

    async def _try_to_seat(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        if await self._quotas.count_match(proposal.match, bots, _until_ms(proposal)):
            await self._give_up(kind.queue, proposal, "")
            return False
        try:
            missing = await self._reserve_seats(kind, proposal, bots)
        except MatchRetired:  # a lobby dropped it and died before it put the bots back
            return await self._give_up(kind.queue, proposal, "")
        if missing:
            return await self._give_up(kind.queue, proposal, missing)
        if not await self._hand_over(proposal, kind.game):
            return await self._give_up(kind.queue, proposal, "")
        await asyncio.gather(
            self._store.queues.close_proposal(kind.queue, proposal.match),
            self._requeue_bots(kind.queue, [entry.name for entry in proposal.entries]),
        )
        log.info("match_paired", match=proposal.match, queue=kind.queue, bots=list(bots))
        return True

    async def seat_created(self, proposal: Proposal, created: CreatedMatch) -> str | None:
        """Seats a created match. If a bot is missing, returns it, and the match keeps its place in the queue."""
        try:
            return await self._seat_created(proposal, created)
        except ProposalExpired:
            log.warning("proposal_left_to_others", match=proposal.match, queue=CREATED)
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

    async def _give_up(self, queue: str, proposal: Proposal, missing: str) -> bool:
        """Puts all bots except the missing one back, if they are present. Returns whether the queue is shorter now."""
        if not await self._seating.drop_unowned(proposal.match, _until_ms(proposal)):
            await self._close_proposal(queue, proposal)
            return False
        bots = [entry.name for entry in proposal.entries]
        await self._quotas.uncount_match(proposal.match, bots, _until_ms(proposal))
        present = await self._store.attendances.present_bots(bots)
        back = [entry for entry in proposal.entries if entry.name in present - {missing}]
        await self._store.queues.dissolve_proposal(queue, proposal.match, back)
        return len(back) < len(proposal.entries)

    async def adopt_proposal(self, queue: str, match: str) -> Proposal | None:
        """Adopts a proposal that another lobby has left, to be seated; None if it is too new, gone, or closed now."""
        proposal = await self._store.queues.adopt_proposal(queue, match, PROPOSAL_ADOPT_MS)
        if proposal and await self.close_if_handed_over(queue, proposal):
            return None
        return proposal

    async def close_if_handed_over(self, queue: str, proposal: Proposal) -> bool:
        """Closes the proposal if its match was handed over: its lobby died before its last step."""
        if not await self._seating.is_handed_over(proposal.match):
            return False
        await self._close_proposal(queue, proposal)
        return True

    async def _close_proposal(self, queue: str, proposal: Proposal) -> None:
        """Frees no seat: the seats of a match that was handed over belong to its referee."""
        if queue != CREATED:  # there matches wait, not bots
            await self._requeue_bots(queue, [entry.name for entry in proposal.entries])
        await self._store.queues.close_proposal(queue, proposal.match)
        log.info("proposal_closed", match=proposal.match, queue=queue)

    async def _requeue_bots(self, queue: str, bots: Sequence[str]) -> None:
        """Puts bots with free places back into the queue. Their lobby does it too, but only after a notice of the offer."""
        room = await self._store.seats.free_places(bots, queue)
        await self._store.queues.enter_all(queue, [bot for bot, free in zip(bots, room, strict=True) if free])

    async def _hand_over(self, proposal: Proposal, game: str) -> bool:
        """Hands the match to a referee, now that all its seats are reserved.

        Returns False, and releases the seats, if another lobby has seated a match at the last free table.
        """
        match, until_ms, kind = proposal.match, _until_ms(proposal), kind_of_game(game)
        try:
            await self._store.jobs.push_new_job(match, kind, until_ms, await self._capacity.find_tables(kind))
        except NoFreeTable:
            await self._seating.release_seats(match, until_ms)
            return False
        return True

    async def _reserve_seats(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> str | None:
        """Writes the match before its seats are reserved, so that no seat belongs to an unknown match.

        Returns the bot that is missing, or None. Raises MatchRetired if the match was dropped.
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


def _until_ms(proposal: Proposal) -> int:
    """Returns the time until which this lobby may seat the proposal, in milliseconds of Redis's clock."""
    return proposal.taken_ms + PROPOSAL_OWN_MS


def loop_time() -> float:
    """Returns the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()
