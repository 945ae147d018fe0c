"""What many tests begin with, and what they must not disturb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.house import House
from harness.table import Chair, Table
from seatwise.v1 import match_pb2

IMPATIENT = {"free_ms": {"card": 60, "arrange": 60}, "bank_ms": 1, "grace_ms": 1, "handover_ms": 20}
"""Clocks that run out while a test waits."""


def endings(match: match_pb2.Match) -> list[str]:
    """How each seat came to the end, by seat."""
    return [match_pb2.Ending.Name(each).removeprefix("ENDING_") for each in match.result.endings]


async def plays_on(house: House, table: Table) -> None:
    """All seats play to the end, none the worse for what happened; the record verifies."""
    await table.play_out()
    match = await house.admin.over(table.name)
    assert endings(match) == ["COMPLETED"] * len(table.chairs)
    assert all(chair.last.time.strikes == 0 for chair in table.chairs if chair.last)
    await house.admin.record(table.name)


@asynccontextmanager
async def bystanders(house: House) -> AsyncIterator[None]:
    """Two other bots play match after match while this lasts, with a second a move and no bank to draw on."""
    bots = [await house.bot(), await house.bot()]
    done = asyncio.Event()

    async def play() -> None:
        while not done.is_set():
            second = {"card": 1000, "arrange": 1000}
            table = await house.seat(bots, rounds=2, free_ms=second, bank_ms=1)
            await table.sit()
            await plays_on(house, table)

    playing = asyncio.create_task(play())
    try:
        yield
    finally:
        done.set()
        await playing


@asynccontextmanager
async def dealt(house: House, seats: int = 2, **limits: object) -> AsyncIterator[tuple[Table, Chair, Chair]]:
    """A match where all sit: the table, who is asked first, and one who is not."""
    async with house.table(seats, **limits) as table:
        await table.sit()
        asked, others = await table.asked()
        yield table, asked, others[0]
