"""Ends a match that is to count for nobody, wherever it is in its life."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_server.lobby.queue import CREATED
from seatwise_server.lobby.seating import Seating
from seatwise_server.lobby.together import gather_limited
from seatwise_server.store import Store


@dataclass(frozen=True, slots=True)
class Aborting:
    """For all doors through which it may be asked."""

    store: Store
    seating: Seating

    async def abort_match(self, match: str, why: str = "") -> None:
        """Notes it for whoever owns the match next, and tells the owner there is; a new match gets an owner.

        It leaves the queue last: whoever dies before that has left the match to somebody who will end it.
        """
        await self.store.matches.ask_abort(match, why)
        fence = await self.store.journal.read_fence(match)
        if fence is None:
            await self.seating.hand_to_referee(match)
        elif not fence.is_retired:
            await self.store.processes.send_order(fence.owner, f"abort {match}".encode())
        await self.store.queues.leave_queue(CREATED, match)

    async def abort_waiting_for(self, bot: str, why: str) -> list[str]:
        """Aborts all matches by name that wait for this bot; returns their names."""
        waiting = [each.bot for each in await self.store.queues.waiting_bots(CREATED)]
        waiting += [each.match for each in await self.store.queues.unfinished_proposals(CREATED)]
        setups = await gather_limited(self.seating.setup_of(match) for match in waiting)
        found = sorted({setup.match for setup in setups if setup and bot in setup.bots})
        await gather_limited(self.abort_match(match, why) for match in found)
        return found
