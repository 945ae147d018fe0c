"""Real processes: a lobby that is killed, or stands still, just after it has given a match to a referee."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import FRONT, REFEREE, Admin, Chair, Fleet, House, Wire, in_memory, plays_on, until
from harness.process import ServerProcess
from harness.table import Table

from seatwise.v1 import match_service_pb2
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.lobby.proposals import PROPOSAL_ADOPT_MS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(120)]

QUEUE = "casual-2"
STRUCK = """
import os, signal
from seatwise_server.store.queues import Queues
close_proposal = Queues.close_proposal
async def struck(self, queue, match):
    os.kill(os.getpid(), signal.{signal})
    await close_proposal(self, queue, match)
Queues.close_proposal = struck
"""


@asynccontextmanager
async def ships_with(before: str) -> AsyncIterator[tuple[Fleet, ServerProcess]]:
    """A referee, and a front that is struck when it has paired its first match."""
    with (
        tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as name,
        EmbeddedRedis(Path(name) / "redis") as redis,
    ):
        ships = Fleet(Path(name), redis.url)
        try:
            await ships.start(*REFEREE)
            yield ships, await ships.start(*FRONT, before=before)
        finally:
            for process in ships.processes:
                if process.is_alive:
                    process.signal(signal.SIGCONT)
            await ships.stop()


def is_struck(process: ServerProcess) -> bool:
    """Whether it is dead, or stands still."""
    stat = Path(f"/proc/{process.pid}/stat")
    return not process.is_alive or stat.read_text().rpartition(")")[2].split()[0] in "TZ"


async def seats_at(heir: House, bots: Sequence[Wire]) -> Table:
    """The table to which the heir's lobby sends the bots."""
    wires = [heir.wire(bot.token, bot.bot) for bot in bots]
    offers = [await (await wire.attend()).offer(within_s=20) for wire in wires]
    chairs = []
    for wire, offer in zip(wires, offers, strict=True):
        at_referee = Wire(offer.address, wire.token, wire.bot)
        heir._wires.append(at_referee)
        chairs.append(Chair(at_referee, offer.match, offer.seat))
        await chairs[-1].sit()
    match = await heir.admin.match(offers[0].match)
    return Table(match, sorted(chairs, key=lambda chair: chair.seat))


@pytest.mark.parametrize("by", ["SIGKILL", "SIGSTOP"])
async def test_a_finished_match_outlives_the_lobby_that_paired_it(by: str) -> None:
    async with ships_with(STRUCK.format(signal=by)) as (ships, struck):
        admin = Admin(struck.address, struck.token)
        bots = [await admin.register() for _ in range(2)]
        for bot in bots:
            await bot.attend([QUEUE], max_matches=1)
        await until(lambda: is_struck(struck))
        front = await ships.start(*FRONT)
        heir = House(front.address, Admin(front.address, front.token))
        table = await seats_at(heir, bots)
        await plays_on(heir, table)
        before, record = await heir.admin.match(table.name), await heir.admin.record(table.name)
        for bot in bots:  # who is gone cannot be seated again
            await bot.drop()
        await heir.drop_all()
        await until(
            lambda: [line for line in front.log if line["event"] == "proposal_closed"],
            PROPOSAL_ADOPT_MS / 1000 + 15,
        )
        if by == "SIGSTOP":
            struck.signal(signal.SIGCONT)
            await asyncio.sleep(1)  # it goes on with whatever it was about to do
        assert await heir.admin.match(table.name) == before
        assert await heir.admin.record(table.name) == record
        listed = await heir.admin.matches.ListMatches(match_service_pb2.ListMatchesRequest())
        assert [each.name for each in listed.matches] == [table.name]
        await heir.admin.drop()
        await admin.drop()
