"""A referee's books, on a real Redis, where two things happen to a match at once."""

from __future__ import annotations

import asyncio

from one_match import setup_of

from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import canonical
from seatwise_referee.setup import Setup
from seatwise_server.play.delivery import Delivery, End
from seatwise_server.play.inheritance import Estate
from seatwise_server.play.lag import Lag
from seatwise_server.play.referee import Place, Referee
from seatwise_server.store import Answer, Flusher, Store


class Interrupted(Delivery):
    """While its match is retired, the referee asks for its fence, and is told that there is none of its own."""

    referee: Referee

    async def deliver(self, setup: Setup, epoch: int, owner: str, end: End) -> bool:
        delivered = await super().deliver(setup, epoch, owner, end)
        self.referee.lose(setup.match, Answer.FENCED)
        await asyncio.sleep(0.01)
        return delivered


async def at_work(store: Store, flusher: Flusher) -> Referee:
    """A referee that may speak, and has one match."""
    Interrupted.referee = referee = Referee(
        Place("a", "", 10), store, flusher, Lag(asyncio.get_running_loop()), Interrupted(store, 60)
    )
    referee.lease.confirmed(referee.lease.now)
    assert referee.lease.renew()
    setup = setup_of()
    await store.matches.create(setup.match, {"setup": canonical(setup.to_json()), "state": "SEATING"})
    await store.jobs.push(setup.match)
    [job] = await store.jobs.take("a", 1, 100)
    await referee.open(Estate(job, "a", None))
    return referee


async def test_a_match_that_is_retired_and_missed_at_once_is_done_with(
    store: Store, flusher: Flusher
) -> None:
    referee = await at_work(store, flusher)
    [table] = referee.tables.values()
    table.void(VoidReason.ABORTED)
    async with asyncio.timeout(5):
        while referee._work:
            await asyncio.wait(set(referee._work))
    assert (referee.tables, referee._jobs, await store.jobs.waiting()) == ({}, {}, 0)


async def test_an_old_table_that_is_let_go_takes_no_new_one_with_it(store: Store, flusher: Flusher) -> None:
    referee = await at_work(store, flusher)
    [(match, old)] = referee.tables.items()
    new = referee.tables[match] = type(old)(
        old.match, 2, "a", old._journal, old._lag, lambda _: None, lambda _: None
    )
    referee._let_go(old)
    assert (old.is_closed, new.is_closed, referee.tables) == (True, False, {match: new})
