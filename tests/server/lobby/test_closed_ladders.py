"""A ladder that is closed: its results are final, and its table stays."""

from __future__ import annotations

import asyncio

import grpc
import pytest
import pytest_asyncio
from harness import House
from harness.ladder import LONGEST_S, Rung, played_with_a_friend
from harness.wire import StreamEnded

from seatwise.v1 import ladder_pb2, ladder_service_pb2, lobby_service_pb2
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult

pytestmark = pytest.mark.asyncio(loop_scope="session")
MATCHES = 240


async def close(rung: Rung) -> ladder_pb2.Ladder:
    request = ladder_service_pb2.CloseLadderRequest(name=rung.name)
    closed: ladder_pb2.Ladder = (
        await rung.stub.CloseLadder(request, metadata=rung.house.admin.metadata)
    ).ladder
    return closed


async def append_late(rung: Rung) -> None:
    """A match that was still played when the ladder was closed."""
    bots = ("bots/b0/versions/1", "bots/b4/versions/1")
    late = LoggedResult(0, "matches/late", bots, (0, 60), (2, 1), (Ending.COMPLETED,) * 2)
    await rung.house.server.store.results.append_result(rung.name, late)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def closed(module_house: House) -> Rung:
    """A ladder that was closed before its last match was over."""
    rung = await played_with_a_friend(module_house, "ladders/season-1", MATCHES)
    told = await close(rung)
    assert (told.results, told.season, told.HasField("close_time")) == (MATCHES, 1, True)
    await append_late(rung)
    assert await close(rung) == told, "a repeat changes nothing"
    await rung.standings(MATCHES)
    return rung


async def test_a_match_that_ends_later_does_not_count(closed: Rung) -> None:
    assert [result.seq for result in await closed.results()] == list(range(1, MATCHES + 1))
    request = ladder_service_pb2.ListLadderResultsRequest(ladder=closed.name, page_size=1, newest_first=True)
    [newest] = (await closed.stub.ListLadderResults(request)).results
    assert newest.place == MATCHES
    await asyncio.sleep(1.5)  # the lobby looks at its ladders once a second
    shown = await closed.stub.ListStandings(ladder_service_pb2.ListStandingsRequest(ladder=closed.name))
    assert shown.results == MATCHES


async def test_a_final_table_is_not_replaced(closed: Rung) -> None:
    store = closed.house.server.store.ladders
    before = await store.read_table(closed.name)
    assert not await store.publish_table(closed.name, MATCHES, b"[]")
    assert not await store.publish_table(closed.name, MATCHES + 1, b"[]")
    assert await store.read_table(closed.name) == before


async def test_nobody_waits_for_a_closed_ladder(closed: Rung) -> None:
    bot = await closed.house.bot()
    with pytest.raises(StreamEnded, match="NOT_FOUND ladders/season-1 is closed"):
        await bot.attend([closed.name])


async def test_a_bot_that_waits_is_told_that_the_ladder_is_closed(module_house: House) -> None:
    rung = Rung(module_house, "ladders/soon-closed")
    await rung.create(2)
    bot = await module_house.bot()
    attending = await bot.attend([rung.name])
    await attending.until(lambda: (rung.name, 1) in attending.places)
    await close(rung)
    [off] = await attending.until(lambda: attending.taken_off, LONGEST_S)
    assert (off.queue, off.cause) == (rung.name, lobby_service_pb2.TakenOff.CAUSE_LADDER_CLOSED)
    assert await module_house.server.store.queues.list_entries(rung.name) == []


async def test_the_next_season_follows_with_the_same_settings(closed: Rung) -> None:
    rung = Rung(closed.house, "ladders/season-2")
    made = await rung.create(2, follows=closed.name)
    assert (made.season, made.follows) == (2, closed.name)
    third = await Rung(closed.house, "ladders/season-3").create(2, follows=rung.name)
    assert (third.season, third.results) == (3, 0)
    with pytest.raises(grpc.aio.AioRpcError, match="ladders/none"):
        await Rung(closed.house, "ladders/other").create(2, follows="ladders/none")
