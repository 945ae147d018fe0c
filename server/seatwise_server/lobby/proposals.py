"""From bots taken off a queue to a match that is a referee's. Every step may be repeated after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from seatwise_server.lobby.queue import Kind
from seatwise_server.lobby.seating import Seating
from seatwise_server.store import Proposal, Store

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
        missing = await self._reserve(kind, proposal.match, bots)
        if missing:
            present = await self._store.attendances.present(bots) - {missing}
            back = [waiting for waiting in proposal.bots if waiting.bot in present]
            await self._seating.forget(proposal.match)
            await self._store.queues.dissolve(kind.queue, proposal.match, back)
            return len(back) < len(proposal.bots)
        is_handed_over, _ = await asyncio.gather(
            self.hand_over(kind.queue, proposal.match, bots, began),
            self._wait_on(kind.queue, [waiting.bot for waiting in proposal.bots]),
        )
        return is_handed_over

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
        """Writes the match down before its seats are taken, so that no seat is held for a match unknown."""
        args = (match, kind.game, bots, kind.options, kind.time_control, kind.competition)
        setup = self._seating.setup(*args)
        if not await self._seating.create(setup, "SEATING", kind.queue):
            setup = await self._seating.setup_of(match) or setup
        return await self._seating.reserve(match, setup.bots)


def now() -> float:
    """When an attempt begins."""
    return asyncio.get_running_loop().time()
