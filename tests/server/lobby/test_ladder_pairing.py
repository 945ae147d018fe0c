"""The pairing of a ladder against a real store: who is taken off its queue, and where they end up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from harness.free_tables import FreeTables

from seatwise_referee.games.registry import default_time_control
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_pairing import AttendingBot, PairingRules
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.lobby.pairing import LadderPairing
from seatwise_server.lobby.seating import OwnerQuotas, Proposals, Seating
from seatwise_server.store import Attendance, OwnerLimits, Store

LADDER = Ladder("ladders/main", "ugo", 3, {"rounds": 1}, default_time_control("ugo"))


class Floor:
    """A ladder with bots that wait for it, each of an owner of its own."""

    def __init__(self, store: Store, ladder: Ladder = LADDER, room: int = 100) -> None:
        self.store = store
        self.ladder = ladder
        self.host = LadderHost(store, "me")
        self.hosted = self.host.hosted[ladder.name] = HostedLadder(ladder, LadderState(store, ladder.name))
        seating = Seating(store, "fsync")
        tables: Any = FreeTables(room)
        proposals = Proposals(store, seating, tables, OwnerQuotas(store, OwnerLimits()))
        self.pairing = LadderPairing(store, self.host, proposals, tables)

    async def come(self, *names: str, owner: str = "", limit: int = 1) -> list[str]:
        """These attend and wait."""
        bots = [(await self.store.bots.register_bot(name, "1", owner or name, "")).bot for name in names]
        for bot in bots:
            await self.store.attendances.write_attendance(
                bot, Attendance("lobby", bot, limit, (self.ladder.name,)), 60_000
            )
            await self.store.queues.enter_queue(self.ladder.name, bot)
        return bots

    async def waiting(self) -> set[str]:
        return {each.name for each in await self.store.queues.list_entries(self.ladder.name)}

    async def tables(self) -> list[tuple[str, ...]]:
        """By seat, those whose match is a referee's now."""
        found = []
        for job in await self.store.jobs.take_jobs("referee", 100, 50):
            setup = await Seating(self.store, "fsync").setup_of(job.match)
            assert setup
            assert setup.competition == self.ladder.name
            found.append(setup.bots)
        return found


async def test_those_who_wait_are_seated_and_hold_their_seats(store: Store) -> None:
    floor = Floor(store)
    bots = await floor.come("a", "b", "c", "d")
    await floor.pairing.pair_ladders(())
    [table] = await floor.tables()
    assert len(set(table) & set(bots)) == 3
    assert await floor.waiting() == set(bots) - set(table)
    for seat, bot in enumerate(table):
        assert [each.seat for each in await store.seats.held_seats(bot)] == [seat]
    assert list(floor.hosted.open_tables.values()) == [table]
    assert await store.queues.unfinished_proposals(LADDER.name) == []


async def test_the_last_result_counts_before_its_bots_are_paired_again(store: Store) -> None:
    """Also where nobody has read the log since."""
    floor = Floor(store)
    good = await floor.come("a", "b", "c")
    [bad] = await floor.come("bad")
    for number in range(3):
        endings = ("NEVER_SAT", "COMPLETED")
        result = LoggedResult(0, f"matches/{number}", (bad, good[0]), (0, 0), (2, 1), endings)
        await store.results.append_result(LADDER.name, result)
    await floor.pairing.pair_ladders(())
    [table] = await floor.tables()
    assert set(table) == set(good)
    assert await floor.waiting() == set()  # who is off the ladder waits no more


async def test_where_they_sit_is_what_the_pairing_says(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = Floor(store)
    bots = await floor.come("a", "b", "c")
    order = (bots[2], bots[0], bots[1])

    def tables(_: PairingRules, attending: Sequence[AttendingBot], room: int) -> list[tuple[str, ...]]:
        assert (len(attending), room) == (3, 100)
        return [order]

    monkeypatch.setattr(PairingRules, "pair_tables", tables)
    await floor.pairing.pair_ladders(())
    assert await floor.tables() == [order]


async def test_a_bot_that_has_gone_costs_the_others_nothing_but_a_pass(store: Store) -> None:
    floor = Floor(store)
    [gone] = await floor.come("gone")
    await asyncio.sleep(0.002)  # it has waited longest
    here = await floor.come("a", "b", "c")
    await store.attendances.remove_attendance(gone, gone)
    for _ in range(3):
        floor.pairing._rests_until = 0.0
        await floor.pairing.pair_ladders(())
    assert [set(table) for table in await floor.tables()] == [set(here)]
    assert gone not in await floor.waiting()


async def again(floor: Floor) -> list[tuple[str, ...]]:
    """Another pass, with all bots of the last one back in the queue, for they take several matches."""
    for table in floor.hosted.open_tables.values():
        for bot in table:
            await floor.store.queues.enter_queue(floor.ladder.name, bot)
    floor.pairing._rests_until = 0.0
    await floor.pairing.pair_ladders(())
    return await floor.tables()


async def test_a_bot_that_has_never_seen_a_match_through_plays_one_at_a_time(store: Store) -> None:
    floor = Floor(store)
    await floor.come("a", "b", "c", limit=9)
    await floor.pairing.pair_ladders(())
    [table] = await floor.tables()
    assert await again(floor) == []
    [match] = floor.hosted.open_tables
    result = LoggedResult(0, match, table, (1, 2, 3), (3, 2, 1), ("COMPLETED",) * 3)
    await store.results.append_result(LADDER.name, result)
    assert len(await again(floor)) == 1
    assert len(await again(floor)) == 1, "they may have two at once now"


async def test_a_bot_that_has_forfeited_its_last_match_plays_one_at_a_time(store: Store) -> None:
    floor = Floor(store)
    bots = await floor.come("a", "b", "c", limit=9)
    for number in range(3):
        endings = ("TIMED_OUT" if number == 2 else "COMPLETED", "COMPLETED", "COMPLETED")
        result = LoggedResult(0, f"matches/{number}", tuple(bots), (1, 2, 3), (3, 2, 1), endings)
        await store.results.append_result(LADDER.name, result)
    await floor.pairing.pair_ladders(())
    assert len(await floor.tables()) == 1
    assert await again(floor) == []


async def test_a_bot_that_is_on_trial_is_not_kept_waiting_by_a_match_that_was_voided(store: Store) -> None:
    floor = Floor(store)
    await floor.come("a", "b", "c", limit=9)
    await floor.pairing.pair_ladders(())
    [table] = await floor.tables()
    [match] = floor.hosted.open_tables
    await store.seats.release_all(match, table)
    assert len(await again(floor)) == 1


async def test_no_bot_is_paired_without_a_free_table(store: Store) -> None:
    floor = Floor(store, room=0)
    bots = await floor.come("a", "b", "c")
    await floor.pairing.pair_ladders(())
    assert await floor.tables() == []
    assert await floor.waiting() == set(bots)


async def test_bots_of_one_owner_share_a_table_only_where_they_may(store: Store) -> None:
    floor = Floor(store)
    await floor.come("a", "b", "c", owner="me")
    await floor.pairing.pair_ladders(())
    assert await floor.tables() == []
    other = Floor(store, replace(LADDER, name="ladders/other", owners_together=True))
    for bot in await floor.waiting():
        await store.queues.enter_queue("ladders/other", bot)
    await other.pairing.pair_ladders(())
    assert len(await other.tables()) == 1


async def test_a_proposal_that_a_dead_lobby_left_is_seated_in_its_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor = Floor(store)
    a, b, c = await floor.come("a", "b", "c")
    await store.queues.take_these(LADDER.name, "matches/left", [b, c, a])
    await floor.pairing.take_up_unfinished()
    assert await floor.tables() == []
    monkeypatch.setattr("seatwise_server.lobby.seating.PROPOSAL_ADOPT_MS", 0)
    await floor.pairing.take_up_unfinished()
    assert await floor.tables() == [(b, c, a)]


async def test_all_or_none_are_taken_off_the_queue(store: Store) -> None:
    floor = Floor(store)
    a, b, c = await floor.come("a", "b", "c")
    await store.queues.leave_queue(LADDER.name, c)
    assert await store.queues.take_these(LADDER.name, "matches/x", [a, b, c]) is None
    assert await floor.waiting() == {a, b}
    first = await store.queues.take_these(LADDER.name, "matches/y", [b, a])
    assert first
    assert [each.name for each in first.entries] == [b, a]
    assert await store.queues.take_these(LADDER.name, "matches/y", [b, a]) == first
    assert await floor.waiting() == set()


async def test_those_at_tables_are_known_until_their_result_comes(store: Store) -> None:
    floor = Floor(store)
    bots = await floor.come("a", "b", "c")
    await floor.pairing.pair_ladders(())
    [match] = floor.hosted.open_tables
    later = await floor.come("d", "e", "f")
    attending = floor.pairing._attending_bots(floor.hosted, await store.queues.list_entries(LADDER.name), 0)
    assert {each.bot: each.free_matches for each in attending} == dict.fromkeys(later, 1) | dict.fromkeys(
        bots, 0
    )
    result = LoggedResult(0, match, tuple(bots), (1, 2, 3), (3, 2, 1), ("COMPLETED",) * 3)
    await store.results.append_result(LADDER.name, result)
    await floor.hosted.state.catch_up()
    floor.hosted.forget_ended_tables(0.0)
    assert floor.hosted.open_tables == {}


async def test_a_match_whose_result_never_comes_is_forgotten(store: Store) -> None:
    floor = Floor(store)
    floor.hosted.note_table("matches/void", ["a", "b"], until=10.0)
    floor.hosted.forget_ended_tables(9.0)
    assert list(floor.hosted.open_tables) == ["matches/void"]
    floor.hosted.forget_ended_tables(11.0)
    assert floor.hosted.open_tables == {}
