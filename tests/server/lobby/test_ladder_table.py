"""The table of a ladder: strengths from a process of its own, which may die and is started again."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
import pytest_asyncio
from harness.ladder import recompute_ratings

from seatwise_referee.games.registry import default_time_control
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import fit_strengths
from seatwise_server.ladder.bot_form import rated_results
from seatwise_server.ladder.ladder_host import HostedLadder, LadderHost
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.ladder_state import LadderState
from seatwise_server.ladder.ladder_table import (
    LadderRow,
    build_table,
    decode_point,
    decode_table,
    encode_point,
    encode_table,
)
from seatwise_server.ladder.ladder_worker import (
    PEER_PLACES,
    StrengthClient,
    StrengthsByBot,
    StrengthsFailed,
    strengths_by_bot,
)
from seatwise_server.services.ladders import LadderTables
from seatwise_server.store import Store, keys
from seatwise_server.store import results as stored_results

LADDER = "ladders/main"


def season(matches: int, bots: int = 5, seed: int = 3) -> list[LoggedResult]:
    """Bots of which each is a little stronger than the one before."""
    chance = random.Random(seed)
    found = []
    for seq in range(1, matches + 1):
        seats = chance.sample(range(bots), 3)
        order = sorted(seats, key=lambda number: chance.gauss(-number, 1.5))
        ranks = tuple(order.index(number) + 1 for number in seats)
        names = tuple(f"bots/b{number}/versions/1" for number in seats)
        found.append(LoggedResult(seq, f"matches/{seq}", names, (0, 0, 0), ranks, ("COMPLETED",) * 3))
    return found


@pytest_asyncio.fixture
async def strength_client(store: Store) -> AsyncIterator[StrengthClient]:
    it = StrengthClient(store.results)
    yield it
    await it.close_process()


async def logged(store: Store, results: list[LoggedResult], ladder: str = LADDER) -> None:
    for result in results:
        await store.results.append_result(ladder, result)


async def fetched(client: StrengthClient, ladder: str, results: int) -> StrengthsByBot:
    strengths, cpu_s = await client.fetch_strengths(ladder, results)
    assert 0 < cpu_s < 60
    return strengths


async def test_a_busy_machine_does_not_delay_the_table_after_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest follows from the CPU time that the table has taken, and not from the time that the process waited for a core."""
    host = LadderHost(store, "me")
    hosted = HostedLadder(
        Ladder(LADDER, "ugo", 2, {}, default_time_control("ugo")), LadderState(store, LADDER)
    )

    async def waited(*_: object) -> tuple[StrengthsByBot, float]:
        await asyncio.sleep(1.5)  # for a core
        return {}, 0.01

    monkeypatch.setattr(host._strength_client, "fetch_strengths", waited)
    await host._publish_table(hosted)
    assert hosted.publish_at - asyncio.get_running_loop().time() <= 1.0


async def test_where_no_process_can_be_started_the_refit_fails_and_is_tried_again(
    store: Store, strength_client: StrengthClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = season(30)
    await logged(store, results)

    async def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", refuse)
        with pytest.raises(StrengthsFailed):
            await fetched(strength_client, LADDER, 30)
    assert await fetched(strength_client, LADDER, 30)


async def test_strengths_are_those_of_the_refit_to_the_last_digit(
    store: Store, strength_client: StrengthClient
) -> None:
    results = season(450)
    await logged(store, results)
    found = await fetched(strength_client, LADDER, 450)
    assert {bot: tuple(told[:4]) for bot, told in found.items()} == {
        each.bot: (each.value, each.low, each.high, each.provisional)
        for each in fit_strengths(rated_results(results)).widen_for_every_look().strengths
    }


async def test_a_row_that_was_told_is_not_told_again(store: Store, strength_client: StrengthClient) -> None:
    results = season(60)
    await logged(store, results)
    for count in (20, 20, 60):
        part = results[:count]
        assert await fetched(strength_client, LADDER, count) == strengths_by_bot(part)
    other = season(30, seed=4)
    await logged(store, other, "ladders/other")
    assert await fetched(strength_client, "ladders/other", 30) == strengths_by_bot(other)


async def test_a_process_that_died_is_started_again_and_told_everything(
    store: Store, strength_client: StrengthClient
) -> None:
    results = season(30)
    await logged(store, results)
    first = await fetched(strength_client, LADDER, 30)
    assert strength_client._process
    os.kill(strength_client._process.pid, signal.SIGKILL)
    await strength_client._process.wait()
    with pytest.raises(StrengthsFailed):
        await fetched(strength_client, LADDER, 30)
    assert await fetched(strength_client, LADDER, 30) == first


def test_those_who_cannot_be_told_apart_know_of_each_other() -> None:
    results = season(80, bots=6)
    found = strengths_by_bot(results)
    peers = {bot: set(told[4]) for bot, told in found.items()}
    assert any(peers.values())
    assert all(bot in peers[other] for bot, others in peers.items() for other in others)
    assert all(
        peers[bot] == set(fit_strengths(results).indistinct_bots(bot, at_every_look=True)) for bot in peers
    )


def test_only_neighbours_are_named() -> None:
    results = season(40, bots=40)
    found = strengths_by_bot(results)
    order = list(found)
    for bot, told in found.items():
        assert all(abs(order.index(bot) - order.index(peer)) <= PEER_PLACES for peer in told[4])


def test_a_table_is_written_and_read_back_to_the_last_digit() -> None:
    results = season(25)
    rated = recompute_ratings(results).ranked_bots()
    strengths = strengths_by_bot(results)
    order = list(strengths)
    strengths.pop(rated[0][0])
    lines = build_table(rated, strengths, {rated[2][0]: "forfeited"})
    assert decode_table(encode_table(lines)) == lines
    assert [line.bot for line in lines] == [*(bot for bot in order if bot in strengths), rated[0][0]]
    assert {line.bot for line in lines if line.off} == {rated[2][0]}
    assert (lines[-1].provisional, lines[-1].strength) == (True, 0.0)  # nothing is known of it yet


def test_a_table_is_in_the_order_of_strengths_and_a_bot_of_few_matches_stands_lower() -> None:
    """A bot that has won its only match is not first, and the others stand by strength and not by rating."""
    results = season(900)
    new = LoggedResult(
        901,
        "matches/901",
        ("bots/new/versions/1", *results[0].bots[:2]),
        (0, 0, 0),
        (1, 2, 3),
        ("COMPLETED",) * 3,
    )
    found = strengths_by_bot([*results, new])
    assert max(told[0] for told in found.values()) == found["bots/new/versions/1"][0]
    assert list(found).index("bots/new/versions/1") > 0
    values = [told[0] for bot, told in found.items() if bot != "bots/new/versions/1"]
    assert values == sorted(values, reverse=True)


# Who holds a ladder


async def made(store: Store, results: list[LoggedResult]) -> None:
    ladder = Ladder(LADDER, "ugo", 3, {"rounds": 1}, default_time_control("ugo"))
    await store.ladders.create(LADDER, ladder.to_bytes())
    await logged(store, results)


async def ended(*tasks: asyncio.Task[None]) -> None:
    """Until they have: redis-py may swallow a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.5)


async def until_shown(store: Store, results: int) -> None:
    async with asyncio.timeout(20):
        while (shown := await store.ladders.read_table(LADDER)) is None or shown.results < results:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_one_process_holds_a_ladder_and_the_next_goes_on_where_it_let_go(store: Store) -> None:
    results = season(30)
    await made(store, results[:20])
    one, other = LadderHost(store, "one"), LadderHost(store, "other")
    first = asyncio.create_task(one.run())
    await until_shown(store, 20)
    second = asyncio.create_task(other.run())
    for result in results[20:]:
        await store.results.append_result(LADDER, result)
    await until_shown(store, 30)
    assert (list(one.hosted), list(other.hosted)) == ([LADDER], [])
    await ended(first)
    await one.release_ladders()
    await store.results.append_result(LADDER, season(31)[30])
    await until_shown(store, 31)
    assert list(other.hosted) == [LADDER]
    await ended(second)
    shown = await store.ladders.read_table(LADDER)
    assert shown
    rated = recompute_ratings(season(31)).ranked_bots()
    assert [(line.bot, line.mu, line.sigma) for line in decode_table(shown.table)] == [
        (bot, rating.mu, rating.sigma) for bot, rating in rated
    ]


async def test_a_log_that_takes_longer_to_read_than_the_lease_lasts_is_read_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(store, season(3))
    go_on = asyncio.Event()
    read = LadderState.catch_up

    async def slowly(book: LadderState) -> None:
        await go_on.wait()
        await read(book)

    monkeypatch.setattr(LadderState, "catch_up", slowly)
    monkeypatch.setattr("seatwise_server.ladder.ladder_host.LADDER_LEASE_S", 1.0)
    monkeypatch.setattr("seatwise_server.ladder.ladder_host.LADDER_CHECK_S", 0.05)
    one, other = LadderHost(store, "one"), LadderHost(store, "other")
    tasks = [asyncio.create_task(one.run())]
    await asyncio.sleep(0.1)
    tasks.append(asyncio.create_task(other.run()))
    await asyncio.sleep(1.3)
    assert (one.hosted, other.hosted) == ({}, {})
    go_on.set()
    await until_shown(store, 3)
    assert (list(one.hosted), list(other.hosted)) == ([LADDER], [])
    await ended(*tasks)


async def test_an_older_table_does_not_replace_a_newer_one(store: Store) -> None:
    assert await store.ladders.publish_table(LADDER, 5, b"five")
    assert not await store.ladders.publish_table(LADDER, 4, b"four")
    assert await store.ladders.publish_table(LADDER, 5, b"five again")
    shown = await store.ladders.read_table(LADDER)
    assert shown
    assert (shown.results, shown.table) == (5, b"five again")
    assert await store.ladders.read_table(LADDER, unless=shown.number) is None
    assert await store.ladders.publish_table(LADDER, 6, b"six")
    newer = await store.ladders.read_table(LADDER, unless=shown.number)
    assert newer
    assert newer.table == b"six"


async def test_tables_are_read_when_they_are_new_and_only_some_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatwise_server.services.ladders.MOST_LADDER_TABLES", 2)
    tables, rated = LadderTables(store), recompute_ratings(season(4)).ranked_bots()
    names = [f"ladders/{number}" for number in range(3)]
    assert (await tables.get_table(names[0])).standings == ()
    for name in names:
        await store.ladders.publish_table(name, 4, encode_table(build_table(rated, {}, {})))
        table = await tables.get_table(name)
        assert [line.bot for line in table.standings] == [bot for bot, _ in rated]
        assert await tables.get_table(name) is table
    assert list(tables._shown) == names[1:]
    await store.ladders.publish_table(names[2], 4, encode_table([]))
    assert list((await tables.get_table(names[2])).standings) == []


# History


def row(bot: str, strength: float) -> LadderRow:
    return LadderRow(bot, 25.123456, 8.0, 7, strength, strength - 50, strength + 50, False, (), "")


async def test_a_point_is_added_to_the_history_when_the_last_one_is_old_enough(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await store.ladders.read_history(LADDER, 2**53, 5) == []
    assert await store.ladders.add_history_point(LADDER, encode_point(1, [row("a", 1.0)]))
    assert not await store.ladders.add_history_point(LADDER, encode_point(2, []))
    monkeypatch.setattr(stored_results, "HISTORY_GAP_MS", 1)
    await asyncio.sleep(0.002)
    assert await store.ladders.add_history_point(LADDER, encode_point(3, [row("b", 2.0), row("a", 1.006)]))
    newest, oldest = await store.ladders.read_history(LADDER, 2**53, 5)
    assert newest[0] > oldest[0]
    assert await store.ladders.read_history(LADDER, newest[0], 5) == [oldest]
    results, [best, second] = decode_point(newest[1])
    assert (results, best.bot, best.place, best.mu) == (3, "b", 1, 25.12)
    assert (second.bot, second.place, second.strength, second.low) == ("a", 2, 1.01, -48.99)


async def test_a_history_stays_bounded_and_keeps_its_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_results, "HISTORY_GAP_MS", 1)
    monkeypatch.setattr(stored_results, "MOST_HISTORY_POINTS", 8)
    for number in range(40):
        await asyncio.sleep(0.002)
        assert await store.ladders.add_history_point(LADDER, b"%d" % number)
    found = [int(point) for _, point in await store.ladders.read_history(LADDER, 2**53, 99)]
    assert len(found) <= 8
    assert (found[0], found[-1]) == (39, 0)
    gaps = [newer - older for newer, older in pairwise(found)]
    assert gaps[0] == 1
    assert gaps[-1] > 8, "it is the thinner the older it is"
    assert await store.client.call("HLEN", keys.ladder_history_points(LADDER)) == len(found)
