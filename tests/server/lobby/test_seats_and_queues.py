"""Who is seated where: queues, limits and presence, as bots meet them."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from pathlib import Path

import pytest
from harness import SOON_S, Attending, Chair, House, StreamEnded, Wire, house_in, in_memory, plays_on, until
from harness.table import Table

from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.lobby.seating import QUEUES

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def impatience(monkeypatch):
    """Nobody waits long for others."""
    for name, queue in QUEUES.items():
        monkeypatch.setitem(QUEUES, name, dataclasses.replace(queue, patience_ms=50))


async def play(house: House, bots: list[Wire], match: str, attending: list[Attending]) -> None:
    """These bots, all that the match has, play it to its end."""
    offers = [await each.offer(match) for each in attending]
    chairs = [Chair(bot, match, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
    table = Table(await house.admin.match(match), chairs)
    await table.sit()
    await plays_on(house, table)


def names(attending: Attending) -> list[str]:
    """The matches that were offered."""
    return [offer.match for offer in attending.offers]


# Queues


@pytest.mark.parametrize(("queue", "seats"), [("casual-2", 2), ("casual-3", 3), ("casual", 4)])
async def test_those_who_wait_in_a_queue_are_seated_together(house, queue, seats):
    bots = [await house.bot() for _ in range(seats)]
    attending = [await bot.attend([queue], max_matches=1) for bot in bots]
    offers = [await each.offer() for each in attending]
    assert len({offer.match for offer in offers}) == 1
    assert sorted(offer.seat for offer in offers) == list(range(seats))
    assert sorted(offers[0].bots) == sorted(bot.bot for bot in bots)
    await play(house, bots, offers[0].match, attending)


async def test_the_slow_queue_gives_minutes_for_each_move_and_plays_one_round(house):
    bots = [await house.bot() for _ in range(2)]
    attending = [await bot.attend(["slow"], max_matches=1) for bot in bots]
    offers = [await each.offer() for each in attending]
    assert {offer.match for offer in offers} == {offers[0].match}
    assert dict(offers[0].time_control.free_ms) == {"card": 180_000, "arrange": 180_000}
    assert offers[0].options["rounds"] == "1"
    await play(house, bots, offers[0].match, attending)


async def test_a_bot_plays_on_in_its_queue_when_its_match_is_over(house):
    bots = [await house.bot() for _ in range(2)]
    attending = [await bot.attend(["casual-2"], max_matches=1) for bot in bots]
    for count in (1, 2, 3):
        await attending[0].until(lambda count=count: len(attending[0].offers) == count)
        match = attending[0].offers[-1].match
        await play(house, bots, match, attending)
        for each in attending:
            await each.until(lambda each=each, match=match: match in [seat.match for seat in each.closed])
    assert len(set(names(attending[0]))) == len(attending[0].offers)


async def test_a_bot_that_leaves_the_queue_is_not_seated(house):
    gone, *bots = [await house.bot() for _ in range(3)]
    await (await gone.attend(["casual-2"])).close()
    await until(lambda: gone.bot not in house.server.lobby._present)
    attending = [await bot.attend(["casual-2"], max_matches=1) for bot in bots]
    offer = await attending[0].offer()
    assert sorted(offer.bots) == sorted(bot.bot for bot in bots)


async def scripts_within(house: House, seconds: float) -> int:
    """How many Redis ran meanwhile."""
    counts = []
    for pause_s in (seconds, 0):
        stats = await house.server.store.client.call("INFO", "commandstats")
        counts.append(stats.get("cmdstat_evalsha", {"calls": 0})["calls"])
        await asyncio.sleep(pause_s)
    return counts[1] - counts[0]


@pytest.mark.usefixtures("impatience")
async def test_a_lone_bot_waits_where_there_are_no_house_bots_and_keeps_nobody_else_waiting(house):
    lone = await house.bot()
    waiting = await lone.attend(["casual", "casual-2"])
    assert await scripts_within(house, 0.5) < 200
    async with house.table(2) as table:
        await table.sit()
        await plays_on(house, table)
    other = await house.bot()
    attending = [waiting, await other.attend(["casual-2"], max_matches=1)]
    offer = await attending[1].offer()
    await play(house, [lone, other], offer.match, attending)


@pytest.mark.parametrize("missing", [0, -1])
async def test_a_match_whose_bot_is_absent_waits_in_peace(house, missing):
    """A seat that another gets and gives back at each try is news of nothing."""
    bots = sorted([await house.bot() for _ in range(3)], key=lambda bot: bot.bot)
    absent = bots.pop(missing)
    attending = [await bot.attend() for bot in bots]
    match = await house.admin.create([bot.bot for bot in (*bots, absent)])
    assert await scripts_within(house, 0.5) < 150  # about 15 of a house at rest; more where it is slow
    attending.append(await absent.attend())
    await play(house, [*bots, absent], match.name, attending)


@pytest.mark.usefixtures("impatience")
async def test_a_match_that_came_to_nothing_is_not_listed():
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), house_bots=True) as house:
            house_bots_gone(house)
            attending = await (await house.bot()).attend(["casual-2"])
            await asyncio.sleep(0.6)
            await attending.close()
            await asyncio.sleep(0.4)  # until the last try has come to nothing too
            listed = await house.admin.matches.ListMatches(match_service_pb2.ListMatchesRequest())
            assert len(listed.matches) == 0


def house_bots_gone(house: House) -> None:
    """The bots of the house are named, and none of them is there."""
    gone = tuple(f"bots/house-{each}/versions/9" for each in "abc")
    house.server.lobby._pairing._house = {"ugo": gone}


@pytest.mark.usefixtures("impatience")
async def test_a_lone_bot_plays_against_the_bots_of_the_house():
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), house_bots=True) as house:
            bot = await house.bot()
            attending = await bot.attend(["casual"], max_matches=1)
            offer = await attending.offer(within_s=5)
            assert sum(name.startswith("bots/house-") for name in offer.bots) == 3
            chair = Chair(bot, offer.match, offer.seat)
            await chair.sit()
            end = await chair.play_out()
            assert list(end.result.endings) == [match_pb2.ENDING_COMPLETED] * 4
            await house.admin.over(offer.match)
            await house.admin.record(offer.match)
            assert not house.logs.faults()


# Limits


async def test_a_bot_is_given_no_more_matches_than_it_takes(house):
    one, two, busy = [await house.bot() for _ in range(3)]
    attending = [await one.attend(), await two.attend(), await busy.attend(max_matches=1)]
    made = [await house.admin.create([busy.bot, other.bot]) for other in (one, two, one)]
    free = await house.admin.create([one.bot, two.bot])
    await attending[0].offer(free.name)  # behind those that wait
    await attending[2].offer(made[0].name)
    assert names(attending[2]) == [made[0].name]
    for match, other in zip(made, (0, 1, 0), strict=True):
        await play(house, [busy, (one, two)[other]], match.name, [attending[2], attending[other]])
    assert names(attending[2]) == [match.name for match in made]


async def test_a_bot_that_drains_gets_no_new_seats_and_keeps_its_old_ones(house):
    one, other = [await house.bot() for _ in range(2)]
    attending = [await one.attend(["casual-2"]), await other.attend()]
    first = await house.admin.create([one.bot, other.bot])
    await attending[0].offer(first.name)
    await attending[0].say(0)
    assert (await attending[0].welcome(2)).max_matches == 0
    second = await house.admin.create([one.bot, other.bot])
    attending.append(await (await house.bot()).attend(["casual-2"]))
    await play(house, [one, other], first.name, attending[:2])
    assert names(attending[0]) == [first.name]
    assert not attending[2].offers
    await attending[0].say(2)
    await play(house, [one, other], second.name, attending[:2])


async def test_a_lower_limit_takes_no_seat_away(house):
    one, other = [await house.bot() for _ in range(2)]
    attending = [await one.attend(), await other.attend()]
    made = [await house.admin.create([one.bot, other.bot]) for _ in range(3)]
    for match in made:
        await attending[0].offer(match.name)
    await attending[0].say(1)
    fourth = await house.admin.create([one.bot, other.bot])
    for match in made:
        assert fourth.name not in names(attending[0])
        await play(house, [one, other], match.name, attending)
    await attending[0].offer(fourth.name)


async def test_a_match_waits_for_a_bot_that_is_absent_and_others_do_not(house):
    absent, one, other = [await house.bot() for _ in range(3)]
    attending = [await one.attend(), await other.attend()]
    waiting = [await house.admin.create([absent.bot, one.bot]) for _ in range(100)]
    free = await house.admin.create([one.bot, other.bot])
    await play(house, [one, other], free.name, attending)
    assert (await house.admin.match(waiting[0].name)).state == match_pb2.Match.STATE_WAITING
    back = await absent.attend(max_matches=1)
    offer = await back.offer()
    await play(house, [absent, one], offer.match, [back, attending[0]])


async def test_one_bot_may_have_several_seats_of_a_match(house):
    bot = await house.bot()
    attending = await bot.attend(max_matches=2)
    match = await house.admin.create([bot.bot, bot.bot])
    await attending.until(lambda: len(attending.offers) == 2)
    stream = bot.play()
    chairs = [Chair(bot, match.name, offer.seat) for offer in attending.offers]
    for chair in chairs:
        await chair.sit(stream)
    await plays_on(house, Table(match, chairs))


# Presence


async def test_a_newer_attendance_replaces_the_older_and_is_told_all_open_seats(house):
    one, other = [await house.bot() for _ in range(2)]
    older = await one.attend()
    await other.attend()
    match = await house.admin.create([one.bot, other.bot])
    offer = await older.offer(match.name)
    newer = await one.attend()
    how = await older.end()
    assert (how.code, how.reason) == ("ABORTED", "REPLACED")
    assert await newer.offer(match.name) == offer


async def test_an_offer_says_all_that_a_bot_must_know(house):
    async with house.table(3, rounds=2, bank_ms=123) as table:
        attending = await table.chairs[0].wire.attend()
        offer = await attending.offer(table.name)
        match = await house.admin.match(table.name)
        assert (offer.game, offer.commitment, list(offer.bots)) == (
            match.game,
            match.commitment,
            list(match.bots),
        )
        assert (offer.options, offer.time_control) == (match.options, match.time_control)
        assert (offer.address, offer.epoch) == ("", 1)


async def test_a_seat_is_closed_when_its_match_is_over(house):
    async with house.table(2) as table:
        attending = [await chair.wire.attend() for chair in table.chairs]
        await table.sit()
        await plays_on(house, table)
        for each, chair in zip(attending, table.chairs, strict=True):
            [closed] = await each.until(lambda each=each: each.closed)
            assert (closed.match, closed.seat) == (table.name, chair.seat)


async def test_the_end_of_a_match_is_told_once_to_an_attendance(house):
    bots = [await house.bot() for _ in range(2)]
    attending = [await bot.attend() for bot in bots]
    for _ in range(3):
        match = await house.admin.create([bot.bot for bot in bots])
        await play(house, bots, match.name, attending)
    for each in attending:
        await each.until(lambda each=each: len(each.closed) == 3)
        assert len(names(each)) == len(set(names(each))) == 3


async def test_an_attendance_ends_with_its_link_and_the_seat_stays(house):
    async with house.table(2) as table:
        one, other = table.chairs
        attending = await one.wire.attend()
        await attending.close()
        await until(lambda: one.wire.bot not in house.server.lobby._present)
        with pytest.raises(StreamEnded):
            await attending.offer("matches/none")
        await one.sit()
        await other.sit()
        await plays_on(house, table)


async def test_a_newer_attendance_waits_only_in_the_queues_that_it_names(house):
    bots = [await house.bot() for _ in range(2)]
    await bots[0].attend(["casual-2"])
    newer = await bots[0].attend(["casual-3"])
    other = await bots[1].attend(["casual-2"])
    free = await house.admin.create(
        [bot.bot for bot in bots]
    )  # when this is offered, queues have been looked at
    await newer.offer(free.name)
    await other.offer(free.name)
    assert names(other) == [free.name]


@pytest.mark.slow
async def test_a_hundred_bots_that_come_and_go_leave_nothing_behind(house):
    bots = await asyncio.gather(*[house.bot() for _ in range(20)])
    for _ in range(5):
        await asyncio.gather(*[come_and_go(bot) for bot in bots])
    await until(lambda: not house.server.lobby._present)
    async with asyncio.timeout(SOON_S):
        while [queue for queue in QUEUES if await house.server.store.queues.count_waiting(queue)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def come_and_go(bot: Wire) -> None:
    attending = await bot.attend(["casual-3"], max_matches=0)
    await attending.close()
