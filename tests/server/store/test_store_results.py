"""Result logs: every match once, in the order in which they came, whatever is repeated."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from redis.asyncio import Redis

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import Store

LADDER = "ladders/main"


def result(match: int, **more: object) -> LoggedResult:
    bots = ("bots/a/versions/1", "bots/b/versions/2")
    it = LoggedResult(0, f"matches/{match}", bots, (5, -3), (1, 2), ("COMPLETED", "TIMED_OUT"), "ab" * 32)
    return replace(it, **more)


async def test_results_have_places_from_one(store: Store) -> None:
    assert [await store.results.append_result(LADDER, result(number)) for number in range(3)] == [1, 2, 3]
    found = await store.results.read_results(LADDER)
    assert found == [result(number, seq=number + 1) for number in range(3)]
    assert await store.results.count_results(LADDER) == 3


async def test_a_match_keeps_its_first_result(store: Store) -> None:
    await store.results.append_result(LADDER, result(1))
    await store.results.append_result(LADDER, result(2))
    assert await store.results.append_result(LADDER, result(1, points=(0, 99))) == 1
    assert [each.points for each in await store.results.read_results(LADDER)] == [(5, -3), (5, -3)]


async def test_many_at_once_are_each_there_once(store: Store) -> None:
    twice = [store.results.append_result(LADDER, result(number % 50)) for number in range(100)]
    await asyncio.gather(*twice)
    found = await store.results.read_results(LADDER)
    assert [each.seq for each in found] == list(range(1, 51))
    assert len({each.match for each in found}) == 50


async def test_a_log_is_read_page_by_page_both_ways(store: Store) -> None:
    for number in range(5):
        await store.results.append_result(LADDER, result(number))
    assert [each.seq for each in await store.results.read_results(LADDER, 2, 2)] == [3, 4]
    assert await store.results.read_results(LADDER, 5) == []
    assert [each.seq for each in await store.results.read_back(LADDER, count=2)] == [5, 4]
    assert [each.seq for each in await store.results.read_back(LADDER, 3)] == [2, 1]


async def test_logs_are_apart_and_an_absent_one_is_empty(store: Store) -> None:
    await store.results.append_result(LADDER, result(1))
    assert await store.results.append_result("leagues/main", result(1)) == 1
    assert await store.results.read_results("ladders/other") == []
    assert await store.results.read_back("ladders/other") == []
    assert await store.results.count_results("ladders/other") == 0


async def test_all_keys_of_a_ladder_lie_together(store: Store, redis_client: Redis) -> None:
    await store.results.append_result(LADDER, result(1))
    names = [key.decode() for key in await redis_client.keys("*")]
    assert names
    assert all("{ladder:ladders/main}" in name for name in names)
