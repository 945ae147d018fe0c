"""A house that is full: it says when to come back, bots come back then, and nobody loses what it had."""

from __future__ import annotations

import asyncio

import pytest
from harness import House

from seatwise.kits.ugo.samples import RandomCard
from seatwise.remote import run_async
from seatwise_server.lobby import lobby
from seatwise_server.play import play_stream

pytestmark = pytest.mark.asyncio(loop_scope="session")

RETRY_AFTER_S = 1.5


async def test_the_sdk_comes_back_to_a_full_house_when_it_was_told_to_and_not_before(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "MOST_PRESENT", 0)
    monkeypatch.setattr(lobby, "LOBBY_FULL_RETRY_AFTER_S", str(RETRY_AFTER_S))
    bot = await house.bot()
    playing = asyncio.create_task(run_async(RandomCard, address=house.address, token=bot.token))
    try:
        refused_at = await refused(house, 2)
        monkeypatch.setattr(lobby, "MOST_PRESENT", 100)
        await until_present(house)
    finally:
        playing.cancel()
    assert refused_at[1] - refused_at[0] >= RETRY_AFTER_S - 0.1  # looked at now and then
    assert len(refusals(house)) == 2


def refusals(house: House) -> list[dict]:
    return house.logs.named("rpc_ended", reason="SERVER_FULL")


async def refused(house: House, tries: int) -> list[float]:
    """When each try was refused, as soon as there were so many."""
    at: list[float] = []
    async with asyncio.timeout(20):
        while len(at) < tries:
            at += [asyncio.get_running_loop().time()] * (len(refusals(house)) - len(at))
            await asyncio.sleep(0.01)
    return at


async def until_present(house: House) -> None:
    assert house.server
    assert house.server.lobby is not None
    async with asyncio.timeout(20):
        while not len(house.server.lobby):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("whose", ["own", "another's"])
async def test_a_bot_that_comes_back_to_a_full_house_takes_its_own_place(
    house: House, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Its old link may be half open, and nobody has noticed yet."""
    bot, other = await house.bot(), await house.bot()
    older, attending = bot.play(), await bot.attend()
    assert house.server
    assert house.server.referee is not None
    async with asyncio.timeout(10):
        while bot.bot not in house.server.referee.streams:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)
    monkeypatch.setattr(lobby, "MOST_PRESENT", 1)
    monkeypatch.setattr(play_stream, "MOST_STREAMS", 1)
    if whose == "own":
        bot.play()
        await bot.attend()
        assert (await older.end()).reason == (await attending.end()).reason == "REPLACED"
    else:
        assert (await other.play().end()).reason == "SERVER_FULL"
        late = other.attending()
        await late.say(1)
        assert (await late.end()).reason == "SERVER_FULL"
