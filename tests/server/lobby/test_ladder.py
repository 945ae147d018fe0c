"""A ladder as its players and its operator meet it: paired, counted once, shown, and rid of what is broken."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from harness import SOON_S, House, refusal_of, until
from harness.ladder import Player, Rung, players

from seatwise.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    bot_service_pb2,
    ladder_pb2,
    ladder_service_pb2,
    match_pb2,
)
from seatwise_server.ladder.bot_form import rate_log

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def rung(house: House, name: str, seats: int = 2, **more: object) -> Rung:
    it = Rung(house, f"ladders/{name}")
    await it.create(seats, **more)
    return it


@pytest.mark.parametrize("seats", [2, 4])
async def test_bots_that_attend_are_paired_and_their_results_count(house: House, seats: int) -> None:
    it = await rung(house, f"size-{seats}", seats, owners_together=True)
    async with players(house, it.name, seats + 1) as some:
        results = await it.until_results(4)
    bots = {player.wire.bot for player in some}
    for place, result in enumerate(results, start=1):
        assert result.seq == place
        assert len(set(result.bots)) == seats
        assert set(result.bots) <= bots


async def test_the_leases_show_who_looks_after_it(house: House) -> None:
    it = await rung(house, "looked-after")
    stub = admin_service_pb2_grpc.AdminServiceStub(house.admin.channel)

    async def holders() -> list[str]:
        answer = await stub.ListLeases(admin_service_pb2.ListLeasesRequest(), metadata=house.admin.metadata)
        return [lease.holder for lease in answer.leases if lease.what == it.name]

    async with asyncio.timeout(SOON_S):
        while not (found := await holders()):  # noqa: ASYNC110  # in its own time
            await asyncio.sleep(0.02)
    assert found == [house.server.lobby.name]


async def test_a_result_is_that_of_its_match_and_its_record(house: House) -> None:
    it = await rung(house, "records")
    async with players(house, it.name, 2):
        results = await it.until_results(2)
    for result in results:
        match = await house.admin.match(result.match)
        record = json.loads(await house.admin.record(result.match))
        assert match.competition == it.name
        assert (list(result.bots), list(result.points)) == (list(match.bots), record["outcome"]["points"])
        assert (list(result.ranks), list(result.endings)) == (record["result"]["ranks"], record["endings"])
        assert result.chain == record["chain"]


async def test_the_table_is_what_its_results_give_to_the_last_digit(house: House) -> None:
    it = await rung(house, "digits", 2)
    async with players(house, it.name, 3):
        await it.until_results(8)
    results = await it.results()
    shown = await it.standings(len(results))
    ratings = rate_log(results)
    assert {(line.bot, line.mu, line.sigma, line.matches) for line in shown} == {
        (bot, rating.mu, rating.sigma, rating.matches) for bot, rating in ratings.ranked_bots()
    }
    assert [line.place for line in shown] == [1, 2, 3]


async def test_a_bot_that_takes_several_matches_at_once_has_them(house: House) -> None:
    it = await rung(house, "several", 2)
    async with players(house, it.name, 2, max_matches=3) as some:
        first = some[0].attending
        assert first
        await first.until(lambda: len({offer.match for offer in first.offers}) >= 3)
        await it.until_results(6)


async def test_a_match_that_is_voided_never_counts(house: House) -> None:
    it = await rung(house, "void", 2)
    async with players(house, it.name, 2) as some:
        for player in some:
            player.is_broken = True
        attending = some[0].attending
        assert attending
        offer = await attending.offer()
        await house.admin.abort(offer.match)
        assert (await house.admin.over(offer.match)).state == match_pb2.Match.STATE_VOIDED
        for player in some:
            player.is_broken = False
        results = await it.until_results(2)
    assert offer.match not in [result.match for result in results]


async def broken_off(house: House, it: Rung, good: int) -> tuple[list[Player], Player]:
    """Good players, and one that sat down nowhere until it was taken off."""
    some = [Player(await house.bot()) for _ in range(good + 1)]
    some[-1].is_broken = True
    for player in some:
        await player.attend(it.name)
    attending = some[-1].attending
    assert attending
    await attending.until(lambda: attending.taken_off, 20.0)
    return some[:-1], some[-1]


async def test_a_broken_bot_is_taken_off_told_why_and_blocks_nobody(house: House) -> None:
    it = await rung(house, "broken", 3, owners_together=True, limits={"setup_ms": 300})
    good, bad = await broken_off(house, it, 3)
    try:
        assert bad.attending
        [told] = bad.attending.taken_off
        assert told.queue == it.name
        assert told.reason.startswith("forfeited 3 matches in a row: ")
        request = bot_service_pb2.GetBotRequest(name=bad.wire.bot)
        [off] = (await house.admin.bots.GetBot(request)).bot.taken_off
        assert (off.ladder, off.reason) == (it.name, told.reason)
        before = len(await it.results())
        after = (await it.until_results(before + 3))[before + 1 :]
        assert all(bad.wire.bot not in result.bots for result in after)
        lines = {line.bot: line for line in await it.standings(before + 1)}
        assert lines[bad.wire.bot].off_reason == told.reason
        assert not any(lines[player.wire.bot].off_reason for player in good)
    finally:
        for player in (*good, bad):
            await player.stop()


async def test_a_bot_that_was_taken_off_comes_back_after_a_pause_or_by_the_operator(
    house: House,
) -> None:
    it = await rung(house, "mended", 2, limits={"setup_ms": 200})
    good, bad = await broken_off(house, it, 1)
    try:
        bad.is_broken = False
        assert (await refusal_of(it.reinstate(bad.wire.bot, good[0].wire))).reason == "NOT_ALLOWED"
        early = await refusal_of(it.reinstate(bad.wire.bot, bad.wire))
        assert (early.reason, early.message[:8]) == ("NOT_ALLOWED", "not yet:")
        assert "its own token readmits it from 20" in early.message
        assert bad.attending
        assert bad.attending.taken_off[0].back_time.ToMilliseconds() > 1000 * (time.time() + 500)
        await it.reinstate(bad.wire.bot)
        assert "is not off" in (await refusal_of(it.reinstate(bad.wire.bot, bad.wire))).message
        before = len(await it.results())
        await it.until_results(before + 2)
        assert (await it.results())[-1].endings == ("COMPLETED", "COMPLETED")
        request = bot_service_pb2.GetBotRequest(name=bad.wire.bot)
        assert not (await house.admin.bots.GetBot(request)).bot.taken_off
    finally:
        for player in (*good, bad):
            await player.stop()


async def test_a_bot_that_is_off_is_told_so_when_it_attends_anew_and_stays_for_other_queues(
    house: House,
) -> None:
    it = await rung(house, "anew", 2, limits={"setup_ms": 200})
    good, bad = await broken_off(house, it, 1)
    for player in (*good, bad):
        await player.stop()
    again = await bad.wire.attend([it.name, "casual-2"], max_matches=1)
    await again.until(lambda: again.taken_off)
    other = await (await house.bot()).attend(["casual-2"])
    assert (await again.offer(within_s=10.0)).match == (await other.offer()).match


@pytest.mark.parametrize("seats", [2, 3])
async def test_bots_of_one_owner_do_not_meet(house: House, seats: int) -> None:
    it = await rung(house, f"owners-{seats}", seats, owners_together=False)
    async with players(house, it.name, 3) as some:  # all are the tests' own
        waiting = house.server.store.queues
        await until(lambda: all(player.attending for player in some))
        assert await waiting.count_waiting(it.name) == 3
        together = await rung(house, f"together-{seats}", seats)
        async with players(house, together.name, 3):
            await together.until_results(1)
        assert await it.results() == []


# The service


async def test_a_ladder_is_created_once(house: House) -> None:
    it = Rung(house, "ladders/once")
    first = await it.create(4)
    again = await it.create(4)
    assert first == again
    assert (first.name, first.game, first.seats, first.results) == ("ladders/once", "games/ugo", 4, 0)
    assert first.options == {"rounds": "1"}
    assert first.time_control.free_ms["card"] == 2000
    assert (await refusal_of(it.create(3))).reason == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("wrong", "reason", "says"),
    [
        ({"name": "ladders/Main"}, "INVALID_ARGUMENT", "a-z"),
        ({"name": "main"}, "INVALID_ARGUMENT", "ladders/"),
        ({"game": "games/chess"}, "NOT_FOUND", "games/ugo"),
        ({"seats": 5}, "INVALID_ARGUMENT", "2 to 4"),
        ({"seats": 0}, "INVALID_ARGUMENT", "2 to 4"),
        ({"options": {"rounds": "99"}}, "INVALID_ARGUMENT", "rounds"),
    ],
)
async def test_a_ladder_that_cannot_be_is_refused(house: House, wrong: dict, reason: str, says: str) -> None:
    right = {"name": "ladders/wrong", "game": "games/ugo", "seats": 2}
    request = ladder_service_pb2.CreateLadderRequest(ladder=ladder_pb2.Ladder(**{**right, **wrong}))
    stub = Rung(house, "").stub
    refused = await refusal_of(stub.CreateLadder(request, metadata=house.admin.metadata))
    assert refused.reason == reason
    assert says in refused.message


async def test_only_an_admin_creates_ladders_and_everybody_reads_them(house: House) -> None:
    bot = await house.bot()
    it = await rung(house, "open")
    ladder = ladder_pb2.Ladder(name="ladders/mine", game="games/ugo", seats=2)
    request = ladder_service_pb2.CreateLadderRequest(ladder=ladder)
    assert (await refusal_of(it.stub.CreateLadder(request, metadata=bot.metadata))).reason == "NOT_ALLOWED"
    get = ladder_service_pb2.GetLadderRequest(name=it.name)
    assert (await it.stub.GetLadder(get)).ladder.name == it.name
    assert list(await it.standings()) == []
    assert await it.results() == []


async def test_an_unknown_ladder_is_not_found(house: House) -> None:
    stub, none = Rung(house, "").stub, "ladders/none"
    calls = [
        stub.GetLadder(ladder_service_pb2.GetLadderRequest(name=none)),
        stub.ListStandings(ladder_service_pb2.ListStandingsRequest(ladder=none)),
        stub.ListLadderResults(ladder_service_pb2.ListLadderResultsRequest(ladder=none)),
        Rung(house, none).reinstate("bots/x/versions/1"),
    ]
    for call in calls:
        assert (await refusal_of(call)).reason == "NOT_FOUND"
    stream = (await house.bot()).attending()
    await stream.say(1, [none])
    assert (await stream.end()).reason == "NOT_FOUND"


async def test_a_bot_waits_in_so_many_queues_and_no_more(house: House) -> None:
    it = await rung(house, "often")
    bot = await house.bot()
    await bot.attend([it.name] * 100 + ["casual"])
    stream = bot.attending()
    await stream.say(1, [f"ladders/x{number}" for number in range(33)])
    assert (await stream.end()).reason == "INVALID_ARGUMENT"


async def test_lists_are_read_page_by_page(house: House) -> None:
    it = await rung(house, "pages")
    async with players(house, it.name, 3):
        await it.until_results(5)
    count = len(await it.results())
    for newest_first in (False, True):
        places: list[int] = []
        token = ""
        while token or not places:
            request = ladder_service_pb2.ListLadderResultsRequest(
                ladder=it.name, page_size=2, page_token=token, newest_first=newest_first
            )
            page = await it.stub.ListLadderResults(request)
            places += [each.place for each in page.results]
            token = page.next_page_token
        assert places == sorted(range(1, count + 1), reverse=newest_first)
    await it.standings(count)
    bots: list[str] = []
    while token or not bots:
        request = ladder_service_pb2.ListStandingsRequest(ladder=it.name, page_size=2, page_token=token)
        page = await it.stub.ListStandings(request)
        bots += [each.bot for each in page.standings]
        token = page.next_page_token
    assert len(set(bots)) == len(bots) == 3
    request = ladder_service_pb2.ListStandingsRequest(ladder=it.name, page_size=2, bot=bots[2])
    near = await it.stub.ListStandings(request)
    assert [each.bot for each in near.standings] == bots[1:]
    assert near.total_size == 3
    request.bot = "bots/nobody/versions/1"
    refused = await refusal_of(it.stub.ListStandings(request))
    assert refused.reason == "NOT_FOUND"
    names = []
    while token or not names:
        page = await it.stub.ListLadders(ladder_service_pb2.ListLaddersRequest(page_size=2, page_token=token))
        names += [each.name for each in page.ladders]
        token = page.next_page_token
    assert names == sorted(set(names))
    assert it.name in names


async def test_times_and_the_history_show_when_bots_stood_where(house: House) -> None:
    it = await rung(house, "times")
    async with players(house, it.name, 2):
        await it.until_results(2)
    listed = ladder_service_pb2.ListLadderResultsRequest(ladder=it.name)
    first = (await it.stub.ListLadderResults(listed)).results[0]
    match = await house.admin.match(first.match)
    assert match.create_time.seconds <= match.start_time.seconds <= match.end_time.seconds
    assert 0 <= first.log_time.ToMilliseconds() - match.end_time.ToMilliseconds() < 10_000
    await it.standings(2)
    shown = await it.stub.ListStandings(ladder_service_pb2.ListStandingsRequest(ladder=it.name))
    assert shown.update_time.ToMilliseconds() >= first.log_time.ToMilliseconds()
    request = ladder_service_pb2.ListStandingsHistoryRequest(ladder=it.name)
    [point] = (await it.stub.ListStandingsHistory(request)).points
    assert 1 <= point.results <= shown.results
    assert {each.bot for each in point.standings} == {each.bot for each in shown.standings}
    request.bots.append(point.standings[1].bot)
    [point] = (await it.stub.ListStandingsHistory(request)).points
    assert [each.place for each in point.standings] == [2]
    request.bots[0] = "not-a-bot"
    refused = await refusal_of(it.stub.ListStandingsHistory(request))
    assert refused.reason == "INVALID_ARGUMENT"
    assert "bots has 'not-a-bot': a bot is named" in refused.message
    request.bots[:] = ["bots/a/versions/1"] * 21
    refused = await refusal_of(it.stub.ListStandingsHistory(request))
    assert refused.reason == "INVALID_ARGUMENT"


@pytest.mark.parametrize("token", ["x", "-1", "9" * 20, "\uff11"])
async def test_a_strange_page_token_is_refused(house: House, token: str) -> None:
    it = await rung(house, "tokens")
    calls = [
        it.stub.ListStandings(ladder_service_pb2.ListStandingsRequest(ladder=it.name, page_token=token)),
        it.stub.ListLadderResults(
            ladder_service_pb2.ListLadderResultsRequest(ladder=it.name, page_token=token)
        ),
        it.stub.ListLadders(ladder_service_pb2.ListLaddersRequest(page_token=token)),
    ]
    for call in calls:
        assert (await refusal_of(call)).reason == "INVALID_ARGUMENT"
