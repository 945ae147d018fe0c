"""A referee's books, on a real Redis, where two things happen to a match at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from matches.one_match import setup_of

from seatwise_referee.ending import VoidReason
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import Setup
from seatwise_server.play.delivery import Delivery, MatchEnd
from seatwise_server.play.match_claims import MatchClaims, UnownedMatch
from seatwise_server.play.match_clock import EventLoopLag
from seatwise_server.play.referee import HeartbeatSender, Referee
from seatwise_server.play.seat_offers import RefereeIdentity
from seatwise_server.store import Flusher, Store
from seatwise_server.store.errors import StoreUnavailable
from seatwise_server.store.journal import Journal


class Interrupted(Delivery):
    """When its match is retired, and before the referee knows that, it confirms the fences of its matches."""

    referee: Referee

    async def deliver_match(
        self,
        setup: Setup,
        epoch: int,
        owner: str,
        end: MatchEnd,
        on_stored: Callable[[], None] | None = None,
    ) -> bool:
        delivered = await super().deliver_match(setup, epoch, owner, end, on_stored)
        await HeartbeatSender(self.referee, self.store)._confirm_fences({(setup.match, epoch)})
        return delivered


async def at_work(store: Store, flusher: Flusher) -> Referee:
    """A referee that may speak, and has one match."""
    referee = new_referee(store, flusher)
    await referee.open_match(await unowned(store))
    return referee


def new_referee(store: Store, flusher: Flusher) -> Referee:
    """That may speak."""
    Interrupted.referee = referee = Referee(
        RefereeIdentity("a", "", 10),
        store,
        flusher,
        EventLoopLag(asyncio.get_running_loop()),
        Interrupted(store, 60),
    )
    referee.lease.note_confirmed(referee.lease.now)
    assert referee.lease.renew_lease()
    return referee


async def unowned(store: Store, **meta: str) -> UnownedMatch:
    """A match that nobody has yet."""
    setup = setup_of()
    await store.matches.create_match(
        setup.match, {"setup": canonical_json(setup.to_json()), "state": "SEATING", **meta}
    )
    await store.jobs.push_job(setup.match)
    [job] = await store.jobs.take_jobs("a", 1, 100)
    return UnownedMatch(job, "a", None)


async def wait_until_released(referee: Referee) -> None:
    """Waits until the referee has no table any more: the journal answers first, and only then is work begun."""
    async with asyncio.timeout(30):
        while referee.tables or referee.open_tables.work._tasks:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)


async def test_a_match_that_is_retired_and_missed_at_once_is_done_with_and_cuts_no_stream(
    store: Store, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee, cut = await at_work(store, flusher), list[str]()
    monkeypatch.setattr(referee.streams, "cut_streams", lambda table: cut.append(table.name))
    [table] = referee.tables.values()
    table.void_match(VoidReason.ABORTED)
    await wait_until_released(referee)
    assert cut == [], "its bots play other matches through the same streams"
    assert (referee.tables, referee.open_tables._jobs, await store.jobs.count_unfinished()) == ({}, {}, 0)


async def test_a_match_that_another_took_over_while_it_was_delivered_cuts_the_streams_of_its_bots(
    store: Store, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee, cut = await at_work(store, flusher), list[str]()
    monkeypatch.setattr(referee.streams, "cut_streams", lambda table: cut.append(table.name))
    [(match, table)] = referee.tables.items()

    async def taken(*_: object) -> None:
        await store.journal.claim_match(match, "b", 1)

    monkeypatch.setattr(Delivery, "_note_absence", taken)
    monkeypatch.setattr(Interrupted, "deliver_match", Delivery.deliver_match)  # without a look at the fences
    table.void_match(VoidReason.ABORTED)
    await wait_until_released(referee)
    assert cut == [match], "or they wait here for an end that nobody tells"


async def test_an_old_table_that_is_let_go_takes_no_new_one_with_it(store: Store, flusher: Flusher) -> None:
    referee = await at_work(store, flusher)
    [(match, old)] = referee.tables.items()
    new = referee.tables[match] = type(old)(
        old.match, 2, "a", old._journal, old._clock._lag, lambda _: None, lambda _: None
    )
    referee.open_tables.release_table(old)
    assert (old.is_closed, new.is_closed, referee.tables) == (True, False, {match: new})


async def test_an_end_that_is_asked_for_while_a_match_is_claimed_is_heard_of(
    store: Store, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee, found = new_referee(store, flusher), await unowned(store)
    claim, match = MatchClaims.claim_match, found.job.match

    async def claimed(opening: MatchClaims, unowned: UnownedMatch) -> Any:
        owned = await claim(opening, unowned)
        await store.matches.ask_abort(match, "now")
        referee.obey_order(f"abort {match}")
        return owned

    monkeypatch.setattr(MatchClaims, "claim_match", claimed)
    await referee.open_match(found)
    await wait_until_released(referee)
    meta = await store.matches.get_meta(match)
    assert meta is not None
    assert meta.state == "VOIDED"


async def test_a_match_is_not_forgotten_when_the_store_goes_while_it_is_made_sure_of(
    store: Store, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee, found = new_referee(store, flusher), await unowned(store)
    monkeypatch.setattr(referee.lease, "holds", lambda: False)
    monkeypatch.setattr(Journal, "confirm_fence", gone)
    with pytest.raises(StoreUnavailable):
        await referee.open_match(found)
    assert not referee.has_match(found.job.match)
    monkeypatch.undo()
    fence = await store.journal.read_fence(found.job.match)
    await referee.open_match(found._replace(fence=fence))
    assert referee.open_tables.owned_matches() == {found.job.match: 2}
    await referee.hand_over_matches()


async def gone(*_: Any) -> None:
    raise StoreUnavailable("gone")


async def test_a_match_of_another_version_is_given_back_once_and_keeps_nobody_from_stopping(
    store: Store, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise_server.play.seat_offers.GIVE_BACK_S", 300.0)
    referee, found = new_referee(store, flusher), await unowned(store, format="seatwise.journal/99")
    await referee.open_match(found)
    await referee.open_match(found)
    assert (
        referee.has_match(found.job.match),
        len(referee._leaving),
        referee.open_matches,
    ) == (True, 1, 0)
    async with asyncio.timeout(30):
        await referee.hand_over_matches()
    assert await store.jobs.count_unfinished() == 1
