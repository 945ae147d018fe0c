"""A crowd at the wire: 2,000 people look at one match, and those who leave leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import House, house_in, in_memory, until
from harness.table import Chair

from seatwise_server.config import HttpSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.asyncio(loop_scope="session"),
]

PATIENT = {"card": 600_000, "arrange": 600_000}
CHANGE_S = 0.5
"""Seconds that a bot waits before each move."""
LONG_S = 400.0


@asynccontextmanager
async def open_house() -> AsyncIterator[House]:
    """A server whose pages are served by a process of their own, behind a proxy that names the callers."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        http = HttpSettings(port=0, trusted_proxies=("127.0.0.1",))
        async with house_in(Path(folder), http=http, has_read_process=True, log_level="error") as house:
            await until(lambda: house.server and house.server.reads and house.server.reads.pid, LONG_S)
            yield house


@dataclass
class Onlooker:
    """One browser that looks at a match."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    frames: int = 0
    events: int = 0
    last: str = ""
    last_at: float = 0.0
    is_at_end: bool = False

    async def look(self) -> None:
        """Reads until the server ends the stream."""
        with suppress(ConnectionError):
            async with aclosing(self):
                await self._read_events()

    async def _read_events(self) -> None:
        loop = asyncio.get_running_loop()
        while line := await self.reader.readline():
            if line.startswith(b'data: {"frames"'):
                frames = json.loads(line[6:])["frames"]
                now = loop.time()
                self.events, self.frames, self.last_at = self.events + 1, self.frames + len(frames), now
                self.last = json.dumps(frames[-1]["table"])
            self.is_at_end = self.is_at_end or line.startswith(b"event: end")

    async def aclose(self) -> None:
        """Hangs up."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def open_onlooker(house: House, match: str, number: int) -> Onlooker:
    assert house.server
    host, port = house.server.http_address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    head = f"GET /{match}/live HTTP/1.1\r\nhost: test\r\naccept: text/event-stream\r\nx-forwarded-for: {address}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode())
    return Onlooker(reader, writer)


async def open_onlookers(house: House, matches: list[str]) -> list[Onlooker]:
    """One for each of these matches, 50 at a time."""
    crowd: list[Onlooker] = []
    for start in range(0, len(matches), 50):
        part = list(enumerate(matches))[start : start + 50]
        opened = await asyncio.gather(*(open_onlooker(house, match, number) for number, match in part))
        for each in opened:
            assert b" 200 " in await asyncio.wait_for(each.reader.readline(), LONG_S)
        crowd += opened
    return crowd


async def play_slowly(chair: Chair, moves: list[float]) -> None:
    """Plays to the end of the match. `moves` gets the time of each move."""
    answered = 0
    while True:
        found = await chair.receive(LONG_S)
        if found.HasField("match_ended"):
            return
        if found.HasField("update") and found.update.to_act and found.update.prompt > answered:
            answered = found.update.prompt
            await asyncio.sleep(CHANGE_S)
            moves.append(asyncio.get_running_loop().time())
            await chair.move()


def cpu_seconds(pid: int) -> float:
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def pid_of(house: House) -> int:
    assert house.server
    assert house.server.reads
    assert house.server.reads.pid
    return house.server.reads.pid


async def test_two_thousand_people_look_at_one_match_and_two_hundred_leave() -> None:
    async with open_house() as house, house.table(2, free_ms=PATIENT) as table:
        await table.sit()
        pid, before = pid_of(house), open_files(pid_of(house))
        crowd = await open_onlookers(house, [table.name] * 2000)
        looking = [asyncio.create_task(each.look()) for each in crowd]
        await until(lambda: all(each.events for each in crowd), LONG_S)
        assert open_files(pid) >= before + 2000
        for each in crowd[1800:]:
            await each.aclose()
        await until(lambda: open_files(pid) <= before + 1800 + 20, LONG_S)
        used, moves = cpu_seconds(pid), []
        await asyncio.gather(*(play_slowly(chair, moves) for chair in table.chairs))
        await asyncio.wait_for(asyncio.gather(*looking[:1800]), LONG_S)
        stayed, used = crowd[:1800], cpu_seconds(pid) - used
        assert all(each.is_at_end for each in stayed)
        assert len({each.last for each in stayed}) == 1
        assert all(each.events <= len(moves) + 3 for each in crowd)
        sent = sum(each.events for each in stayed)
        spread = max(each.last_at for each in stayed) - min(each.last_at for each in stayed)
        print(
            f"{len(moves)} moves, {sent} events to {len(stayed)} spectators, {1e6 * used / sent:.0f} us of CPU for each, "
            f"the last position within {spread:.2f} s of the first spectator that had it"
        )
        await until(lambda: open_files(pid) <= before + 20, LONG_S)
        await asyncio.gather(*looking, return_exceptions=True)
