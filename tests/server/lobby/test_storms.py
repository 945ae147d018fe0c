"""Everybody at once, and machines that are slow, full, asleep or of another time: nobody is lost or blamed."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis
from harness import Chair, House, ServerProcess, Survivor, check_nothing_lost, house_in, server_process, until
from harness.machine import Machine, machine_in
from harness.survivor import survive_all

from seatwise_server.embedded import EmbeddedRedis

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECOND = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 1, "grace_ms": 50}
"""A second a move, and no bank to draw on."""
LONGER_S = 2.0
"""Than any move may take."""


@asynccontextmanager
async def playing(house: House, rounds: int = 4) -> AsyncIterator[tuple[list[Survivor], asyncio.Task[None]]]:
    """A match under way with a second a move; at the end it has been played out, and nothing is lost."""
    table = await house.seat([await house.bot(), await house.bot()], rounds=rounds, **SECOND)
    survivors = [Survivor(chair) for chair in table.chairs]
    task = asyncio.create_task(survive_all(survivors))
    try:
        await survivors[0].after(3)
        yield survivors
        await task
    finally:
        task.cancel()
    line = await house.admin.record(table.name)
    check_nothing_lost(line, survivors)
    assert all(update.time.strikes == 0 for survivor in survivors for update in survivor.updates)
    moves = [entry for entry in json.loads(line)["entries"] if entry["kind"] == "move"]
    assert max(move["charged_ms"] for move in moves) < 1000


async def goes_on(survivors: Sequence[Survivor]) -> None:
    """Another move of somebody is accepted, or all is over."""
    before = sum(len(each.acknowledged) for each in survivors)
    await until(lambda: sum(len(each.acknowledged) for each in survivors) > before or survivors[0].ended, 20)


# All at once


@pytest.mark.parametrize("bots", [pytest.param(each, marks=pytest.mark.slow) for each in (100, 2000)])
@pytest.mark.timeout(300)
async def test_after_a_restart_all_bots_that_come_back_at_once_get_in(bots):
    async with server_process(log_level="info") as (process, house):
        chairs = await seated(house, bots)
        await process.kill()
        await process.start()
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*[come_back(chair) for chair in chairs])
        assert asyncio.get_running_loop().time() - began < 60
        assert all(chair.last and chair.last.HasField("ugo") for chair in chairs)


async def seated(house: House, bots: int) -> list[Chair]:
    """So many bots in matches of two, each with connections of its own."""
    turn = asyncio.Semaphore(32)

    async def seat() -> list[Chair]:
        async with turn:
            patient = {"free_ms": {"card": 300_000, "arrange": 300_000}}
            table = await house.seat([await house.bot(), await house.bot()], **patient)
            await table.sit()
            for chair in table.chairs:
                await chair.expect("update")
            return table.chairs

    return [chair for chairs in await asyncio.gather(*[seat() for _ in range(bots // 2)]) for chair in chairs]


async def come_back(chair: Chair) -> None:
    """Attends and sits as soon as the link is there, and tries neither a second time."""
    await asyncio.wait_for(chair.wire.channel.channel_ready(), 60)
    attending = await chair.wire.attend()
    await chair.sit()
    await chair.expect("update", within_s=60)
    assert attending.how is None


# Redis


async def test_a_disk_that_takes_its_time_costs_no_bot_any(tmp_path: Path):
    machine = machine_in(tmp_path)
    async with on_machine(machine, tmp_path) as house, playing(house) as survivors:
        machine.behave(sync_ms=40)
        await goes_on(survivors)
        began = asyncio.get_running_loop().time()
        machine.behave(sync_ms=1200)  # longer than any move may take
        for _ in range(4):  # acceptances ride with the next message, so some were under way
            await goes_on(survivors)
        assert asyncio.get_running_loop().time() - began > 1
        machine.behave()
        await goes_on(survivors)


@asynccontextmanager
async def on_machine(machine: Machine, folder: Path) -> AsyncIterator[House]:
    """A server in this process, with its Redis on that machine."""
    with machine.hosting():
        store = EmbeddedRedis(folder / "redis")
        store.start()
    try:
        async with house_in(folder, redis_url=store.url) as house:
            yield house
    finally:
        machine.behave()
        store.stop()


# The referee


async def test_a_referee_that_stands_still_for_two_seconds_journals_it_and_charges_nobody():
    async with server_process() as (process, house):
        table = await house.seat([await house.bot(), await house.bot()], **SECOND)
        await table.sit()
        asked, _ = await table.asked()
        process.signal(signal.SIGSTOP)
        await asyncio.sleep(LONGER_S)
        process.signal(signal.SIGCONT)
        request_id = await asked.move()
        while request_id not in asked.accepted:
            await asked.receive()
        await table.play_out()
        record = json.loads(await house.admin.record(table.name))
        entries = record["entries"]
        stalls_ms = [each["ms"] for each in entries if each["kind"] == "frozen" and each["why"] == "STALL"]
        first = next(each for each in entries if each["kind"] == "move")
        assert first["charged_ms"] < 1000 < sum(stalls_ms)


# Clocks


def wall_clock_of(process: ServerProcess) -> float:
    """As its Redis shows it."""
    with redis.Redis(unix_socket_path=str(process.data / "redis" / "redis.sock")) as client:
        seconds, _ = client.time()
    return float(seconds)


@pytest.mark.parametrize("jump_s", [pytest.param(3600, marks=pytest.mark.slow), -3600])
async def test_a_wall_clock_that_jumps_is_noticed_by_nobody(tmp_path: Path, jump_s: int):
    machine = machine_in(tmp_path)
    with machine.hosting():
        serving = server_process()
        process, house = await serving.__aenter__()
    try:
        bot = await house.bot()
        waiting = await bot.attend(["casual-3"], max_matches=1)
        async with playing(house) as survivors:
            machine.behave(jump_s=jump_s)
            off_s = wall_clock_of(process) - time.time()
            assert off_s == pytest.approx(jump_s, abs=60)
            for _ in range(5):
                await goes_on(survivors)
        await asyncio.sleep(LONGER_S)
        assert waiting.how is None
        others = [await house.bot() for _ in range(2)]
        attending = [await each.attend(["casual-3"], max_matches=1) for each in others]
        offers = [await each.offer() for each in (waiting, *attending)]
        assert len({offer.match for offer in offers}) == 1
    finally:
        machine.behave()
        await serving.__aexit__(None, None, None)
