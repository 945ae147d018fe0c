"""Over a slow line nobody loses a race for it: who thinks as long calls at the same time."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from harness.house import House, house_in, in_memory
from harness.proxy import proxy_to
from harness.table import Chair
from harness.ubongo import CALL, build
from harness.wire import Stream, Wire

from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise_referee.games.ubongo import GOAL, ROUNDS

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENOUGH = 100
MOST_UNTIED = 5
FEWEST = 20
"""Undisturbed rounds; with fewer this machine is too busy to tell anything."""
LONGEST_S = 11.0
NEAR_S, FAR_S = 0.0005, 0.020
"""One way: a millisecond and forty for a round trip."""
FAR_MS = 40
THINKS_S = 0.020
TICK_S = 0.001
LATE_S = 0.004
"""When the machine makes us all wait longer than this, nobody has thought as long as he meant to."""
AROUND_S = 0.025
"""A round begins and ends one way to the far seat before and after what it sees of it."""

Spans = dict[int, list[float]]
"""By round, all the times at which a seat was asked or called."""


class Hiccups:
    """When this process, with its server, its proxies and its bots, did not come to run in time."""

    def __init__(self) -> None:
        self._when: list[float] = []

    async def notice(self) -> None:
        """Runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            if loop.time() > due_s + LATE_S:
                self._when.append(loop.time())

    def spoiled(self, times: list[float]) -> bool:
        """Whether one fell in that round."""
        return any(min(times) - AROUND_S < each < max(times) + AROUND_S for each in self._when)


@pytest_asyncio.fixture(loop_scope="session")
async def behind_proxy() -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), proxies=("127.0.0.1",)) as house:
            yield house


@asynccontextmanager
async def noticing() -> AsyncIterator[Hiccups]:
    hiccups = Hiccups()
    task = asyncio.create_task(hiccups.notice())
    try:
        yield hiccups
    finally:
        task.cancel()


async def thinks_and_calls(chair: Chair, spans: Spans) -> None:
    """Calls with any seven cards, always so long after it was asked: only the time matters here."""
    loop = asyncio.get_running_loop()
    asked: set[int] = set()
    while True:
        found = await chair.receive()
        if found.HasField("match_ended"):
            return
        update = found.update if found.HasField("update") else None
        if update and update.to_act and update.prompt not in asked:
            asked.add(update.prompt)
            times = spans.setdefault(update.prompt, [])
            times.append(loop.time())
            await asyncio.sleep(THINKS_S)
            apart = ubongo_pb2.Layout(
                cards=update.ubongo.hand[:GOAL],
                xs=[4 * each - 12 for each in range(GOAL)],
                ys=[0] * GOAL,
                turns=[0] * GOAL,
            )
            await build(chair, ubongo_pb2.Move(lay=apart), CALL)
            times.append(loop.time())


async def one_match(house, wires: list[Wire], streams: list[Stream], hiccups: Hiccups) -> Counter[str]:
    """How many of its rounds were tied, and who was before the other in those that were not."""
    table = await house.seat(wires, game="ubongo", rounds=ROUNDS, free_ms={"build": 5000})
    stream_of = dict(zip(wires, streams, strict=True))
    spans: Spans = {}
    for chair in table.chairs:
        await chair.sit(stream_of[chair.wire])
    await asyncio.gather(*(thinks_and_calls(chair, spans) for chair in table.chairs))
    await house.admin.over(table.name)
    first: dict[int, dict[int, int]] = {}
    for entry in json.loads(await house.admin.record(table.name))["entries"]:
        if entry["kind"] == "called":
            first.setdefault(entry["prompt"], {call["seat"]: call["allowance_ms"] for call in entry["calls"]})
    assert len(first) == ROUNDS
    near, far = (next(each.seat for each in table.chairs if each.wire is wire) for wire in wires)
    assert all(calls.get(far, FAR_MS) >= FAR_MS for calls in first.values()), "not measured in time"
    return Counter(
        "spoiled" if hiccups.spoiled(spans[prompt])
        else "tied" if len(calls) == 2
        else "near" if near in calls
        else "far"
        for prompt, calls in first.items()
    )  # fmt: skip


async def test_a_seat_40_ms_away_ties_with_one_1_ms_away(behind_proxy):
    """Here proxies make the distances, and end TCP: so the operator says that they are there, and pongs count."""
    house = behind_proxy
    async with (
        proxy_to(house.address, NEAR_S) as near,
        proxy_to(house.address, FAR_S) as far,
        noticing() as hiccups,
    ):
        bots = [await house.bot(), await house.bot()]
        wires = [
            Wire(proxy.address, bot.token, bot.bot) for proxy, bot in zip((near, far), bots, strict=True)
        ]
        streams = [wire.play() for wire in wires]
        loop = asyncio.get_running_loop()
        until_s = loop.time() + LONGEST_S
        counted: Counter[str] = Counter()
        while counted.total() - counted["spoiled"] < ENOUGH and loop.time() < until_s:
            counted += await one_match(house, wires, streams, hiccups)
        await asyncio.gather(*[wire.drop() for wire in wires])
    good = counted.total() - counted["spoiled"]
    assert counted["near"] + counted["far"] <= MOST_UNTIED, counted
    if good < FEWEST:
        pytest.skip(f"this machine is too busy to tell: {dict(counted)}")
