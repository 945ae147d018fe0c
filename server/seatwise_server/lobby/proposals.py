"""From bots taken off a queue to a match that is a referee's. Every step may be repeated after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from seatwise_server.lobby.queue import CREATED, Kind
from seatwise_server.lobby.seating import Seating
from seatwise_server.store import Proposal, Store
from seatwise_server.store.errors import MatchRetired

OURS_S = 5.0
"""So long after it was made a proposal is surely its maker's alone."""
OLD_MS = 15_000
"""After this it is another's to take up: its maker is dead, or knows that it is too late."""

log = structlog.get_logger()


class Proposals:
    """Those of one lobby."""

    def __init__(self, store: Store, seating: Seating) -> None:
        self._store = store
        self._seating = seating

    async def seat(self, kind: Kind, proposal: Proposal, bots: Sequence[str], began: float) -> bool:
        """Seats these, in this order; if one is not to be had those who are present go back to where they stood.

        Whether the queue is shorter now; else there is no use in trying again at once.
        """
        try:
            missing = await self._reserve(kind, proposal.match, bots)
        except MatchRetired:  # it was dropped by a lobby that died before it put the bots back
            return await self._give_up(kind.queue, proposal, "")
        if missing:
            return await self._give_up(kind.queue, proposal, missing)
        is_handed_over, _ = await asyncio.gather(
            self.hand_over(kind.queue, proposal.match, bots, began),
            self._wait_on(kind.queue, [waiting.bot for waiting in proposal.bots]),
        )
        return is_handed_over

    async def _give_up(self, queue: str, proposal: Proposal, missing: str) -> bool:
        """Puts all bots but the missing one back, if they are present. Whether the queue is shorter now."""
        if not await self._seating.drop_unowned(proposal.match):
            await self._close(queue, proposal)
            return False
        present = await self._store.attendances.present([waiting.bot for waiting in proposal.bots])
        back = [waiting for waiting in proposal.bots if waiting.bot in present - {missing}]
        await self._store.queues.dissolve(queue, proposal.match, back)
        return len(back) < len(proposal.bots)

    async def adopt(self, queue: str, match: str) -> Proposal | None:
        """A proposal that another lobby has left, to be seated; None if it is too new, gone, or closed now."""
        proposal = await self._store.queues.adopt(queue, match, OLD_MS)
        if proposal and await self.close_if_owned(queue, proposal):
            return None
        return proposal

    async def close_if_owned(self, queue: str, proposal: Proposal) -> bool:
        """Closes the proposal if a referee has, or has had, its match: its lobby died before its last step."""
        if not await self._seating.is_owned(proposal.match):
            return False
        await self._close(queue, proposal)
        return True

    async def _close(self, queue: str, proposal: Proposal) -> None:
        """Touches no seat: those of a match that has had an owner are its referee's to free."""
        if queue != CREATED:  # there a match waits, and no bot
            await self._wait_on(queue, [waiting.bot for waiting in proposal.bots])
        await self._store.queues.seated(queue, proposal.match)
        log.info("proposal_closed", match=proposal.match, queue=queue)

    async def _wait_on(self, queue: str, bots: Sequence[str]) -> None:
        """Who has places left waits on: its lobby, which sees to that too, hears only when the seat is offered."""
        room = await self._store.seats.room(bots, queue)
        await self._store.queues.enter_all(queue, [bot for bot, free in zip(bots, room, strict=True) if free])

    async def hand_over(self, queue: str, match: str, bots: Sequence[str], began: float) -> bool:
        """All seats are held: the match is a referee's from now on, unless it may be another lobby's by now."""
        if now() - began > OURS_S:
            log.warning("proposal_left_to_others", match=match, queue=queue)
            return False
        await self._seating.hand_to_referee(match)
        await self._store.queues.seated(queue, match)
        log.info("match_paired", match=match, queue=queue, bots=list(bots))
        return True

    async def _reserve(self, kind: Kind, match: str, bots: Sequence[str]) -> str | None:
        """Writes the match down before its seats are taken, so that no seat is held for a match unknown.

        The bot that is not to be had, or none. Raises MatchRetired if the match was dropped.
        """
        args = (match, kind.game, bots, kind.options, kind.time_control, kind.competition)
        new = self._seating.setup(*args)
        is_created = await self._seating.create(new, "SEATING", kind.queue)
        setup = new if is_created else await self._seating.setup_of(match)
        if setup is None:
            raise MatchRetired(match)
        return await self._seating.reserve(match, setup.bots)


def now() -> float:
    """When an attempt begins."""
    return asyncio.get_running_loop().time()
