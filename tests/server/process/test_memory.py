"""Memory stays flat over any number of matches: of the server, and of its Redis."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from harness import Admin, House, Wire, in_memory, item, message, server_process
from harness.process import ServerProcess

from seatwise.v1 import play_service_pb2
from seatwise_server.store.keeping import Keeping
from seatwise_server.store.keys import AUDIT_LOG
from seatwise_server.store.redis.cluster import new_client

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOTS = 8
AT_ONCE = 64
"""Matches that are open at a time."""
FORGETFUL = ("--keep-records", "0.00002")
"""Days; that is a second."""
LEASES_END_S = 40
"""A lease that nobody renews is over by then."""
OF_MATCHES = ("*{match:*", "*:seats", "*:offers")
"""What Redis holds of a match that is played or kept."""

Resign = play_service_pb2.Resign
Pong = play_service_pb2.Pong
Item = play_service_pb2.PlayRequestItem


class Hasty:
    """A lean bot: it resigns every match as soon as it is asked."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.ended = asyncio.Queue[str]()
        """The matches that are over for it."""
        self._call = wire.channel.stream_stream("/seatwise.v1.PlayService/Play", None, None)(
            metadata=wire.metadata
        )
        self._sits: asyncio.Queue[Item] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Attends, and plays whatever it is offered."""
        attending = await self.wire.attend(max_matches=1000)
        self._tasks = [
            asyncio.create_task(work) for work in (self._read(), self._write(), self._sit(attending))
        ]

    async def stop(self) -> None:
        """Goes away."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _sit(self, attending) -> None:
        while True:
            await attending.until(lambda: attending.offers, within_s=600)
            for offer in attending.offers:
                self._sits.put_nowait(item(offer.match, offer.seat, sit=play_service_pb2.Sit()))
            attending.offers.clear()

    async def _write(self) -> None:
        while True:
            items = [await self._sits.get()]
            while not self._sits.empty():
                items.append(self._sits.get_nowait())
            await self._call.write(message(items))

    async def _read(self) -> None:
        async for raw in self._call:
            for found in play_service_pb2.PlayResponse.FromString(raw).items:
                self._take(found)

    def _take(self, found: play_service_pb2.PlayResponseItem) -> None:
        if found.HasField("update") and found.update.to_act:
            self._sits.put_nowait(item(found.match, found.seat, resign=Resign()))
        elif found.HasField("ping"):
            self._sits.put_nowait(Item(pong=Pong(number=found.ping.number)))
        elif found.HasField("match_ended"):
            self.ended.put_nowait(found.match)


async def churn(house: House, bots: list[Hasty], count: int) -> None:
    """So many matches, created and played to their ends, a few of them at a time."""
    room = asyncio.Semaphore(AT_ONCE)
    places = itertools.cycle(itertools.permutations(range(BOTS), 2))

    async def create() -> None:
        for _ in range(count):
            await room.acquire()
            one, other = next(places)
            await house.admin.create([bots[one].wire.bot, bots[other].wire.bot])

    async def wait_for_ends() -> None:
        ended = 0
        waiting = {asyncio.create_task(bot.ended.get()): bot for bot in bots}
        while ended < 2 * count:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                bot = waiting.pop(task)
                waiting[asyncio.create_task(bot.ended.get())] = bot
                ended += 1
                if ended % 2 == 0:
                    room.release()
        for task in waiting:
            task.cancel()

    creating = asyncio.create_task(create())
    await wait_for_ends()
    await creating


@dataclass(frozen=True)
class Memory:
    """In bytes, when all is quiet."""

    server: int
    redis: int
    """Without the audit log, which grows to a bound of its own with each match that an admin creates."""
    keys: int


async def memory(process: ServerProcess) -> Memory:
    """What is used when nothing is left of any match: a match outlives what its bots hear of its end."""
    socket = (process.data / "redis" / "redis.pid").read_text().split()[1]
    await remove_matches(f"unix://{socket}")
    with redis.Redis(unix_socket_path=socket) as client:
        used = client.info("memory")["used_memory"] - (client.memory_usage(AUDIT_LOG, samples=0) or 0)
        keys = client.dbsize()
    return Memory(rss(process.pid), used, keys)


async def remove_matches(url: str) -> None:
    """Does what the server does once a minute, until nothing is left of any match."""
    client = new_client(url)
    async with asyncio.timeout(30):
        while any([await client.call("KEYS", pattern) for pattern in OF_MATCHES]):
            await asyncio.sleep(0.1)
            await Keeping(client).remove_due()
    await client.close_connections()


def rss(pid: int) -> int:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def grown(warm_up: int, count: int) -> tuple[Memory, Memory]:
    """The memory after some matches, and after many more."""
    async with server_process(*FORGETFUL, log_level="warning", where=in_memory()) as (process, house):
        admin: Admin = house.admin
        bots = [Hasty(await admin.register()) for _ in range(BOTS)]
        house._wires += [bot.wire for bot in bots]
        for bot in bots:
            await bot.start()
        await churn(house, bots, warm_up)
        before = await memory(process)
        await churn(house, bots, count)
        after = await memory(process)
        with suppress(TimeoutError):
            async with asyncio.timeout(LEASES_END_S):
                while after.keys > before.keys:  # a lease that was not held before
                    await asyncio.sleep(1)
                    after = await memory(process)
        for bot in bots:
            await bot.stop()
    return before, after


async def is_flat(warm_up: int, count: int, grows: int) -> None:
    """Of the server's memory `grows` bytes are granted: to caches that fill, and to what awaits collection."""
    before, after = await grown(warm_up, count)
    assert after.keys <= before.keys
    assert after.redis - before.redis < 2**18
    assert after.server - before.server < grows


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_memory_is_flat_over_ten_thousand_matches():
    await is_flat(2000, 8000, 8 * 2**20)
