"""Bots of the SDK build over a network that breaks, and the proxy that breaks it."""

from __future__ import annotations

import asyncio
import json

import pytest
from harness.proxy import proxy_to

from seatwise.kits.ubongo.samples import Solver
from seatwise.kits.ubongo.text import draw_end
from seatwise.remote import run_async

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("both_doors")]


class Slow(Solver):
    """Takes long enough for a link to break meanwhile."""

    async def build(self, view):
        for step in super().build(view):
            await asyncio.sleep(0.03)
            yield step


async def test_a_link_that_is_cut_again_and_again_costs_a_builder_no_round(house):
    async with proxy_to(house.address) as proxy:
        bots = [await house.bot(), await house.bot()]
        playing = [
            asyncio.create_task(
                run_async(Slow, game="ubongo", address=address, token=bot.token, queues=(), matches=1)
            )
            for address, bot in zip((proxy.address, house.address), bots, strict=True)
        ]
        match = await house.admin.create(
            [bot.bot for bot in bots], game="ubongo", rounds=3, free_ms={"build": 5000}
        )
        for _ in range(3):
            await asyncio.sleep(0.3)
            proxy.cut()
        over = await house.admin.over(match.name, within_s=25)
        assert set(over.result.endings) == {1}  # COMPLETED
        assert all(points > 0 for points in over.result.points)
        await asyncio.gather(*playing)
        record = await house.admin.record(match.name)
    drawn = draw_end(json.loads(record), 80)
    assert drawn.startswith(f"Round 3 of {match.name}, as it ended:")
    assert "+---+" in drawn


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(1000):
        writer.write(chunk)
    writer.close()


async def test_the_proxy_is_slow_stalls_loses_and_cuts():
    server = await asyncio.start_server(echoing, "127.0.0.1")
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop = asyncio.get_running_loop()
    async with proxy_to(address, delay_s=0.05) as proxy:
        host, _, port = proxy.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        began = loop.time()
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        assert loop.time() - began >= 0.1
        proxy.delay_s = 0
        proxy.stall()
        writer.write(b"b")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        proxy.go_on()
        assert await reader.readexactly(1) == b"b"
        proxy.is_half_open = True
        writer.write(b"c")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        proxy.is_half_open, proxy.cut_after = False, 2
        writer.write(b"defg")
        assert await reader.read(2) in (b"d", b"de")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(3)
        writer.close()
    server.close()
