"""From bots taken off a queue to a match that is a referee's. Every step may be repeated after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from seatwise_referee.match_state import MatchState
from seatwise_server.lobby.queue import CREATED, Kind
from seatwise_server.lobby.seating import Seating
from seatwise_server.store import Proposal, Store, counts_no_shows
from seatwise_server.store.errors import MatchRetired, ProposalExpired
from seatwise_server.timings import PROPOSAL_ADOPT_MS, PROPOSAL_OWN_MS

log = structlog.get_logger()


class Proposals:
    """Those of one lobby."""

    def __init__(self, store: Store, seating: Seating) -> None:
        self._store = store
        self._seating = seating

    async def seat_proposal(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        """Seats these, in this order; if one is not to be had those who are present go back to where they stood.

        Whether the queue is shorter now; else there is no use in trying again at once.
        """
        try:
            return await self._try_to_seat(kind, proposal, bots)
        except ProposalExpired:
            log.warning("proposal_left_to_others", match=proposal.match, queue=kind.queue)
            return False

    async def _try_to_seat(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> bool:
        try:
            missing = await self._reserve_seats(kind, proposal, bots)
        except MatchRetired:  # it was dropped by a lobby that died before it put the bots back
            return await self._give_up(kind.queue, proposal, "")
        if missing:
            return await self._give_up(kind.queue, proposal, missing)
        await asyncio.gather(
            self._hand_over(kind.queue, proposal, bots),
            self._wait_on(kind.queue, [waiting.bot for waiting in proposal.bots]),
        )
        return True

    async def seat_created(self, proposal: Proposal, bots: Sequence[str]) -> str | None:
        """The same for a match by name; the bot that is not to be had, for whom it goes on waiting where it stood."""
        try:
            return await self._seat_created(proposal, bots)
        except ProposalExpired:
            log.warning("proposal_left_to_others", match=proposal.match, queue=CREATED)
            return None

    async def _seat_created(self, proposal: Proposal, bots: Sequence[str]) -> str | None:
        match = proposal.match
        missing = await self._seating.reserve_seats(match, bots, _until_ms(proposal))
        if missing:
            await self._store.queues.dissolve_proposal(CREATED, match, proposal.bots)
        elif bots:
            await self._hand_over(CREATED, proposal, bots)
        else:
            await self._store.queues.close_proposal(CREATED, match)
        return missing

    async def _give_up(self, queue: str, proposal: Proposal, missing: str) -> bool:
        """Puts all bots but the missing one back, if they are present. Whether the queue is shorter now."""
        if not await self._seating.drop_unowned(proposal.match, _until_ms(proposal)):
            await self._close_proposal(queue, proposal)
            return False
        present = await self._store.attendances.present_bots([waiting.bot for waiting in proposal.bots])
        back = [waiting for waiting in proposal.bots if waiting.bot in present - {missing}]
        await self._store.queues.dissolve_proposal(queue, proposal.match, back)
        return len(back) < len(proposal.bots)

    async def adopt_proposal(self, queue: str, match: str) -> Proposal | None:
        """A proposal that another lobby has left, to be seated; None if it is too new, gone, or closed now."""
        proposal = await self._store.queues.adopt_proposal(queue, match, PROPOSAL_ADOPT_MS)
        if proposal and await self.close_if_handed_over(queue, proposal):
            return None
        return proposal

    async def close_if_handed_over(self, queue: str, proposal: Proposal) -> bool:
        """Closes the proposal if its match is, or was, a referee's: its lobby died before its last step."""
        if not await self._seating.is_handed_over(proposal.match):
            return False
        await self._close_proposal(queue, proposal)
        return True

    async def _close_proposal(self, queue: str, proposal: Proposal) -> None:
        """Touches no seat: those of a match that was handed over are its referee's to free."""
        if queue != CREATED:  # there a match waits, and no bot
            await self._wait_on(queue, [waiting.bot for waiting in proposal.bots])
        await self._store.queues.close_proposal(queue, proposal.match)
        log.info("proposal_closed", match=proposal.match, queue=queue)

    async def _wait_on(self, queue: str, bots: Sequence[str]) -> None:
        """Who has places left waits on: its lobby, which sees to that too, hears only when the seat is offered."""
        room = await self._store.seats.free_places(bots, queue)
        await self._store.queues.enter_all(queue, [bot for bot, free in zip(bots, room, strict=True) if free])

    async def _hand_over(self, queue: str, proposal: Proposal, bots: Sequence[str]) -> None:
        """All seats are held: the match is a referee's from now on."""
        await self._seating.hand_to_referee(proposal.match, _until_ms(proposal))
        await self._store.queues.close_proposal(queue, proposal.match)
        log.info("match_paired", match=proposal.match, queue=queue, bots=list(bots))

    async def _reserve_seats(self, kind: Kind, proposal: Proposal, bots: Sequence[str]) -> str | None:
        """Writes the match down before its seats are taken, so that no seat is held for a match unknown.

        The bot that is not to be had, or none. Raises MatchRetired if the match was dropped.
        """
        match, until_ms = proposal.match, _until_ms(proposal)
        args = (match, kind.game, bots, kind.options, kind.time_control, kind.competition)
        new = self._seating.new_setup(*args)
        since_ms = {each.bot: each.since_ms for each in proposal.bots} if counts_no_shows(kind.queue) else {}
        is_created = await self._seating.create_match(new, MatchState.SEATING, kind.queue, until_ms, since_ms)
        setup = new if is_created else await self._seating.setup_of(match)
        if setup is None:
            raise MatchRetired(match)
        return await self._seating.reserve_seats(match, setup.bots, until_ms, queued=since_ms)


def _until_ms(proposal: Proposal) -> int:
    """On Redis's clock."""
    return proposal.taken_ms + PROPOSAL_OWN_MS


def loop_time() -> float:
    """When an attempt begins."""
    return asyncio.get_running_loop().time()
