"""Aborts a match, so that it ends without a result, in whatever state it is."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_server.lobby.queue import CREATED
from seatwise_server.lobby.seating import Seating
from seatwise_server.store import Store
from seatwise_server.together import gather_limited


@dataclass(frozen=True, slots=True)
class Aborting:
    """Aborts matches; used by all operations that can abort one."""

    store: Store
    seating: Seating

    async def abort_match(self, match: str, why: str = "") -> None:
        """Marks the match for its next owner, and notifies the present one; without an owner it gets one.
        It leaves the queue last: if this process dies before that, another one still gives the match to a
        referee, which aborts it.
        """
        await self.store.matches.ask_abort(match, why)
        fence = await self.store.journal.read_fence(match)
        if fence is None:
            setup = await self.seating.setup_of(match)
            await self.seating.hand_to_referee(match, setup.game if setup else "")
        elif not fence.is_retired:
            await self.store.processes.send_order(fence.owner, f"abort {match}".encode())
        await self.store.queues.leave_queue(CREATED, match)

    async def abort_waiting_for(self, bot: str, why: str) -> list[str]:
        """Aborts all created matches that wait for this bot; returns their names."""
        waiting = [each.name for each in await self.store.queues.list_entries(CREATED)]
        waiting += [each.match for each in await self.store.queues.unfinished_proposals(CREATED)]
        setups = await gather_limited(self.seating.setup_of(match) for match in waiting)
        found = sorted({setup.match for setup in setups if setup and bot in setup.bots})
        await gather_limited(self.abort_match(match, why) for match in found)
        return found
