"""Match jobs: one for each match, taken once, inherited one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from seatwise_server.game_choice import ALL_KINDS, GameKind
from seatwise_server.store import Job, Store, Tables
from seatwise_server.store.errors import NoFreeTable, ProposalExpired


async def push(store: Store, count: int) -> list[Job]:
    return [
        Job(await store.jobs.push_job(f"matches/{number}"), f"matches/{number}") for number in range(count)
    ]


async def test_a_match_has_one_job_at_a_time(store: Store) -> None:
    first = await store.jobs.push_job("matches/1")
    assert await store.jobs.push_job("matches/1") == first
    assert await store.jobs.count_unfinished() == 1
    [job] = await store.jobs.take_jobs("a", 5, 100)
    assert job == Job(first, "matches/1")
    assert await store.jobs.push_job("matches/1") == first  # taken is not done
    assert await store.jobs.finish_job(first)
    assert await store.jobs.push_job("matches/1") != first


async def test_jobs_go_to_one_referee_each_and_in_order(store: Store) -> None:
    jobs = await push(store, 5)
    assert await store.jobs.take_jobs("a", 2, 100) == jobs[:2]
    assert await store.jobs.take_jobs("b", 10, 100) == jobs[2:]
    assert await store.jobs.take_jobs("a", 2, 1) == []
    assert await store.jobs.count_by_owner() == {"a": 2, "b": 3}
    assert (await store.jobs.jobs_of("a"), await store.jobs.jobs_of("b")) == (jobs[:2], jobs[2:])


async def test_a_referee_wakes_up_at_a_job(store: Store) -> None:
    taking = asyncio.create_task(store.jobs.take_jobs("a", 1, 5_000))
    await asyncio.sleep(0.02)
    [job] = await push(store, 1)
    assert await taking == [job]


async def test_a_job_whose_reply_was_lost_is_found(store: Store) -> None:
    jobs = await push(store, 2)
    await store.jobs.take_jobs("a", 2, 100)
    assert await store.jobs.jobs_of("a") == jobs
    assert await store.jobs.jobs_of("b") == []


async def test_a_finished_job_leaves_nothing(store: Store, redis_client: Redis) -> None:
    [job] = await push(store, 1)
    await store.jobs.take_jobs("a", 1, 100)
    assert [await store.jobs.finish_job(job.job_id) for _ in range(2)] == [True, False]
    assert await store.jobs.count_unfinished() == 0
    assert await store.jobs.count_by_owner() == {}
    assert await redis_client.dbsize() == 2  # the empty streams, for the groups' sake


async def test_nothing_is_asked_of_a_group_that_is_not_there(store: Store, redis_client: Redis) -> None:
    assert await store.jobs.count_by_owner() == {}
    await redis_client.flushall()
    assert await store.jobs.jobs_of("a") == []
    await redis_client.flushall()
    assert not await store.jobs.finish_job("1-0")
    [job] = await push(store, 1)
    assert await store.jobs.take_jobs("a", 1, 100) == [job]


async def test_jobs_of_another_are_seen_and_moved_one_by_one(store: Store) -> None:
    first, second = await push(store, 2)
    await store.jobs.take_jobs("dead", 2, 100)
    assert await store.jobs.jobs_of("dead") == [first, second]
    assert await store.jobs.jobs_of("nobody") == []
    assert await store.jobs.jobs_of("dead", 5, first.job_id) == [second]
    for _ in range(2):
        assert await store.jobs.move_job(first.job_id, "dead", "b")
    assert await store.jobs.count_by_owner() == {"b": 1, "dead": 1}
    assert await store.jobs.finish_job(second.job_id)
    assert not await store.jobs.move_job(second.job_id, "dead", "b")
    assert await store.jobs.jobs_of("b") == [first]


async def test_a_process_whose_last_job_was_moved_is_known_no_more(store: Store, redis_client: Redis) -> None:
    [job] = await push(store, 1)
    await store.jobs.take_jobs("dead", 1, 100)
    assert await store.jobs.move_job(job.job_id, "dead", "b")
    consumers = await redis_client.xinfo_consumers("seatwise:{jobs}:stream", "referees")
    assert {it["name"] for it in consumers} == {b"b"}


async def test_a_job_given_back_is_for_others(store: Store) -> None:
    [job] = await push(store, 1)
    await store.jobs.take_jobs("a", 1, 100)
    assert await store.jobs.give_back(job.job_id)
    [again] = await store.jobs.take_jobs("b", 1, 100)
    assert (again.match, await store.jobs.push_job(job.match)) == (job.match, again.job_id)
    assert not await store.jobs.give_back(job.job_id)


LATER_MS = 10**14
OWN, HOSTED = [GameKind.OWN], [GameKind.HOSTED]


async def push_both(store: Store) -> tuple[Job, Job]:
    own = Job(await store.jobs.push_job("matches/own"), "matches/own")
    return own, Job(await store.jobs.push_job("matches/foreign", kind=GameKind.HOSTED), "matches/foreign")


async def test_a_referee_takes_only_jobs_of_the_games_that_it_plays(store: Store) -> None:
    own, foreign = await push_both(store)
    assert await store.jobs.take_jobs("a", 9, 100, HOSTED) == [foreign]
    assert await store.jobs.take_jobs("a", 9, 1, HOSTED) == []
    assert await store.jobs.take_jobs("b", 9, 100, OWN) == [own]
    assert await store.jobs.count_by_owner(OWN) == {"b": 1}
    assert await store.jobs.count_by_owner() == {"a": 1, "b": 1}
    assert (await store.jobs.jobs_of("a", kinds=OWN), await store.jobs.jobs_of("a")) == ([], [foreign])


async def test_there_are_no_more_jobs_than_tables_of_their_kinds(store: Store) -> None:
    async def push_new(match: str, kind: GameKind, *tables: Any) -> str:
        return await store.jobs.push_new_job(match, kind, LATER_MS, Tables(*tables))

    own, foreign = await push_both(store)
    first = await push_new("matches/1", GameKind.OWN, 2, OWN)
    assert await push_new("matches/1", GameKind.OWN, 2, OWN) == first, "it has its table"
    assert await push_new(foreign.match, GameKind.HOSTED, 1, HOSTED) == foreign.job_id
    for kind, *tables in ((GameKind.OWN, 2, OWN), (GameKind.HOSTED, 1, HOSTED), (GameKind.OWN, 3, ALL_KINDS)):
        with pytest.raises(NoFreeTable):
            await push_new("matches/2", kind, *tables)
    assert not await store.jobs.is_open("matches/2")
    await store.jobs.take_jobs("a", 1, 100, OWN)
    await store.jobs.finish_job(own.job_id)
    await push_new("matches/2", GameKind.OWN, 3, ALL_KINDS)
    with pytest.raises(ProposalExpired):
        await store.jobs.push_new_job("matches/3", GameKind.OWN, 1, Tables(9, ALL_KINDS))


async def test_a_job_of_a_game_from_outside_is_moved_given_back_and_finished(store: Store) -> None:
    own, foreign = await push_both(store)
    await store.jobs.take_jobs("dead", 9, 100, HOSTED)
    assert await store.jobs.move_job(foreign.job_id, "dead", "b")
    assert await store.jobs.give_back(foreign.job_id)
    assert await store.jobs.take_jobs("c", 9, 1, OWN) == [own]
    [again] = await store.jobs.take_jobs("b", 9, 100, HOSTED)
    assert await store.jobs.push_job(foreign.match) == again.job_id
    assert await store.jobs.is_open(foreign.match)
    assert await store.jobs.finish_job(again.job_id)
    assert not await store.jobs.is_open(foreign.match)


async def test_a_referee_of_all_games_takes_no_more_than_it_asks_for(store: Store) -> None:
    jobs = {
        await store.jobs.push_job(f"matches/{kind}-{number}", kind=kind)
        for kind in GameKind
        for number in range(3)
    }
    assert len(jobs) == 6
    taken = await store.jobs.take_jobs("a", 2, 100)
    assert len(taken) == 2
    assert await store.jobs.count_by_owner() == {"a": 2}
    assert await store.jobs.count_not_taken() == 4


async def test_jobs_are_listed_page_by_page(store: Store) -> None:
    made = [
        Job(await store.jobs.push_job(f"matches/{kind}-{number}", kind=kind), f"matches/{kind}-{number}")
        for kind in GameKind
        for number in range(3)
    ]
    await store.jobs.take_jobs("a", 9, 100)
    for size in (1, 2, 3, 4, 6):
        listed: list[Job] = []
        held: list[Job] = []
        for _ in range(7):
            listed += await store.jobs.list_page(size, listed[-1].job_id if listed else "")
            held += await store.jobs.jobs_of("a", size, held[-1].job_id if held else "")
        assert (listed, held) == (made, made)
