"""How a bot finds its moves: who may say it, and where it is shown. Tables of ladders are in test_rest_caching.py."""

from __future__ import annotations

import pytest
from harness import House
from harness.wire import refusal_of

from seatwise.async_client import BOT_KINDS, AsyncClient
from seatwise.errors import NotAllowedError, NotFoundError, UsageError
from seatwise.v1 import bot_pb2, bot_service_pb2
from seatwise_server.cli.table import describe_kind
from seatwise_server.refusal import Refusal
from seatwise_server.services.access import SCOPES_OF_GUESTS
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import BotService

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_bot_says_of_what_kind_it_is_and_an_operator_may_correct_it(house: House) -> None:
    author, other = await house.admin.register(), await house.admin.register()
    async with AsyncClient(house.address, author.token) as client:
        assert (await client.set_bot_kind(author.bot, "search")).kind == bot_pb2.BOT_KIND_SEARCH
        with pytest.raises(NotAllowedError):
            await client.set_bot_kind(other.bot, "learned")
        with pytest.raises(UsageError, match="is no kind of bot; there are rules, search"):
            await client.set_bot_kind(author.bot, "clever")
    async with AsyncClient(house.address, house.admin.token) as admin:
        assert (await admin.get_bot(author.bot)).kind == bot_pb2.BOT_KIND_SEARCH
        await admin.set_bot_kind(author.bot, "language-model")
        listed = {bot.name: bot.kind for bot in (await admin.list_bots(1000)).bots}
        assert (listed[author.bot], listed[other.bot]) == (bot_pb2.BOT_KIND_LANGUAGE_MODEL, 0)
        await admin.set_bot_kind(author.bot, "")
        assert (await admin.get_bot(author.bot)).kind == bot_pb2.BOT_KIND_UNSPECIFIED
        with pytest.raises(NotFoundError):
            await admin.set_bot_kind("bots/none/versions/1", "rules")


async def test_a_bot_that_is_deleted_leaves_no_kind_behind(house: House) -> None:
    assert house.server
    bot = await house.admin.register()
    async with AsyncClient(house.address, house.admin.token) as admin:
        await admin.set_bot_kind(bot.bot, "rules")
        await admin.delete_bot(bot.bot)
    assert await house.server.store.bots.kinds_of([bot.bot]) == (0,)


async def test_a_number_that_is_no_kind_is_refused(house: House) -> None:
    author = await house.admin.register()
    request = bot_service_pb2.SetBotKindRequest(name=author.bot)
    wrong = request.SerializeToString() + b"\x10\x63"
    refused = await refusal_of(author.raw("/seatwise.v1.BotService/SetBotKind", wrong))
    assert refused.reason == "INVALID_ARGUMENT"


async def test_the_bot_of_a_guest_says_nothing_because_it_is_forgotten_soon(house: House) -> None:
    assert house.server
    bot = (await house.admin.register()).bot
    service = BotService(house.server.store, None, ())  # type: ignore[arg-type]
    request = bot_service_pb2.SetBotKindRequest(name=bot, kind=bot_pb2.BOT_KIND_RULES)
    with pytest.raises(Refusal, match="only the bot itself"):
        await service.set_bot_kind(Caller(bot=bot, name=bot, scopes=SCOPES_OF_GUESTS), request)


async def test_every_kind_has_one_name_at_the_terminal() -> None:
    numbers = [number for number in bot_pb2.BotKind.values() if number]
    assert tuple(map(describe_kind, numbers)) == BOT_KINDS
    assert [describe_kind(0), describe_kind(99)] == ["", ""]
