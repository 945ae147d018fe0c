"""Permits to stress a server from another machine: who creates one, and that each is good once."""

from __future__ import annotations

import asyncio

import pytest
from harness import House

from seatwise.async_client import AsyncClient
from seatwise.cli import main
from seatwise.errors import NotAllowedError, NotFoundError
from seatwise.stress.stress import StressPlan, stress_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def create_permit(house: House, token: str, *options: str) -> int:
    """The exit code of the command."""
    command = ["ctl", "stress-permit", "--address", house.address, "--token", token, *options]
    return await asyncio.to_thread(main, command)


async def test_a_permit_is_good_for_one_of_those_who_use_it_at_once(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await create_permit(house, house.admin.token) == 0
    permit = capsys.readouterr().out.splitlines()[0]
    async with AsyncClient(house.address, house.admin.token) as admin:
        uses = [admin.use_stress_permit(permit) for _ in range(5)]
        found = await asyncio.gather(*uses, return_exceptions=True)
        assert found.count(None) == 1
        assert sum(isinstance(each, NotFoundError) for each in found) == 4
        with pytest.raises(NotFoundError, match="`seatwise ctl stress-permit` creates one"):
            await admin.use_stress_permit("")


async def test_only_the_admin_creates_one_and_no_bot_uses_it_up(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.server
    bot = await house.bot()
    assert await create_permit(house, bot.token) == 1
    assert "[NOT_ALLOWED]" in capsys.readouterr().err
    permit = await house.server.store.stress_permits.create_permit(60_000)
    async with AsyncClient(house.address, bot.token) as client:
        with pytest.raises(NotAllowedError):
            await client.use_stress_permit(permit)
    assert await house.server.store.stress_permits.use_permit(permit)
    assert await create_permit(house, house.admin.token, "--lifetime", "86401") == 1
    assert "it must be 0 to 86400" in capsys.readouterr().err


async def test_a_permit_expires(house: House) -> None:
    assert house.server
    permits = house.server.store.stress_permits
    permit = await permits.create_permit(1)
    await asyncio.sleep(0.05)
    assert not await permits.use_permit(permit)


async def test_without_a_good_permit_nothing_is_registered(house: House) -> None:
    plan = StressPlan(house.address, house.admin.token, permit="of another server")
    with pytest.raises(NotFoundError, match="was used, has expired, or is of another server"):
        await stress_server(plan)
    async with AsyncClient(house.address) as client:
        bots = (await client.list_bots(page_size=1000)).bots
    assert not [bot.name for bot in bots if bot.name.startswith("bots/stress-")]
