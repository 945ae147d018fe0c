"""A bot that is deleted: what goes with it at once, what goes on, and what stays for ever."""

from __future__ import annotations

import asyncio

import pytest
from harness import House, Wire, endings, item, refusal_of

from seatwise.v1 import bot_service_pb2, match_pb2
from seatwise_server.house import DEFAULT_HOUSE, OTHER_HOUSE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("both_doors")]

SOON_ENOUGH_S = 1.0
"""So long a stream of a deleted bot may last."""


async def delete(house: House, name: str) -> bot_service_pb2.DeleteBotResponse:
    request = bot_service_pb2.DeleteBotRequest(name=name)
    answer: bot_service_pb2.DeleteBotResponse = await house.admin.bots.DeleteBot(
        request, metadata=house.admin.metadata
    )
    return answer


async def register(house: House, wire: Wire, version: str) -> bot_service_pb2.RegisterBotResponse:
    name = wire.bot.split("/")[1]
    request = bot_service_pb2.RegisterBotRequest(bot=name, version=version, owner="another")
    answer: bot_service_pb2.RegisterBotResponse = await house.admin.bots.RegisterBot(
        request, metadata=house.admin.metadata
    )
    return answer


@pytest.mark.not_by_http("an attendance over HTTP opens with its first message")
async def test_its_streams_end_within_a_second_and_its_token_opens_nothing(house):
    bot = await house.bot()
    attending, stream = await bot.attend(), bot.play()
    await stream.send(item("", 0))
    await stream.receive()
    await delete(house, bot.bot)
    for ended in (await attending.end(SOON_ENOUGH_S), await stream.end(SOON_ENOUGH_S)):
        assert ended.reason == "TOKEN_REVOKED"
    assert (await bot.attending().end()).reason == "TOKEN_REVOKED"


async def test_it_is_shown_nowhere_and_has_no_token_to_rotate(house):
    bot, other = await house.bot(), await house.bot()
    await delete(house, bot.bot)
    for method in ("GetBot", "RotateToken", "RevokeToken"):
        request = getattr(bot_service_pb2, f"{method}Request")(name=bot.bot)
        call = getattr(house.admin.bots, method)(request, metadata=house.admin.metadata)
        assert (await refusal_of(call)).reason == "NOT_FOUND"
    listed = await house.admin.bots.ListBots(bot_service_pb2.ListBotsRequest(page_size=1000))
    names = [each.name for each in listed.bots]
    assert bot.bot not in names
    assert other.bot in names


async def test_its_name_is_never_given_again_and_other_versions_may_be(house):
    bot = await house.bot()
    await delete(house, bot.bot)
    refused = await refusal_of(register(house, bot, "1"))
    assert refused.reason == "ALREADY_EXISTS"
    assert "was deleted" in refused.message
    assert (await register(house, bot, "2")).token


@pytest.mark.not_by_http("an attendance over HTTP opens with its first message")
async def test_a_repeat_changes_nothing(house):
    bot = await house.bot()
    await delete(house, bot.bot)
    assert not (await delete(house, bot.bot)).aborted_matches
    assert (await bot.attending().end()).reason == "TOKEN_REVOKED"


async def test_it_leaves_its_queues(house):
    bot = await house.bot()
    attending = await bot.attend(["casual"])
    queues = house.server.store.queues
    assert await queues.position_of("casual", bot.bot) is not None
    await delete(house, bot.bot)
    assert await queues.position_of("casual", bot.bot) is None
    await attending.end(SOON_ENOUGH_S)
    assert await queues.position_of("casual", bot.bot) is None


async def test_matches_by_name_that_wait_for_it_are_aborted_and_no_others(house):
    bot, *others = [await house.bot() for _ in range(3)]
    waits = await house.admin.create([bot.bot, others[0].bot])
    stays = await house.admin.create([each.bot for each in others])
    assert list((await delete(house, bot.bot)).aborted_matches) == [waits.name]
    match = await house.admin.over(waits.name)
    assert (match.void_reason, match.void_message) == ("ABORTED", f"{bot.bot} was deleted")
    assert (await house.admin.match(stays.name)).state == match_pb2.Match.STATE_WAITING
    await house.admin.abort(stays.name)


async def test_a_match_that_it_plays_goes_on_without_it_and_its_record_keeps_its_name(house):
    async with house.table(2, free_ms={"card": 150, "arrange": 150}, bank_ms=0) as table:
        await table.sit()
        gone, stays = table.chairs
        playing = asyncio.create_task(stays.play_out())
        await gone.asked()
        await delete(house, gone.wire.bot)
        await playing
        match = await house.admin.over(table.name)
        assert endings(match)[gone.seat] == "TIMED_OUT"
        assert gone.wire.bot.encode() in await house.admin.record(table.name)


@pytest.mark.parametrize("name", [each.bot for each in (*DEFAULT_HOUSE, *OTHER_HOUSE)])
async def test_the_house_keeps_its_own_bots(house, name):
    """Those that this server does not run, too: another one on the same Redis may run them, and its HTTP port knows no options."""
    refused = await refusal_of(delete(house, name))
    assert refused.reason == "INVALID_ARGUMENT"
    assert "--no-house-bots" in refused.message


async def test_a_bot_of_an_owner_is_deleted_although_it_has_the_name_of_a_house_bot(house):
    """An earlier version let owners register such names."""
    bots = house.server.store.bots
    taken, *_ = [each for each in OTHER_HOUSE if not await bots.is_known(each.bot)]
    await bots.register_bot(taken.name, "1", "owners/joan", "")
    await delete(house, taken.bot)
    assert await bots.get_bot(taken.bot) is None
