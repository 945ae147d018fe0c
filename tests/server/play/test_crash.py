"""The server dies, stops or loses its Redis in the middle of matches, and nothing that was said is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import (
    House,
    Survivor,
    check_nothing_lost,
    processes_with,
    server_process,
    until,
)
from harness.process import ServerProcess
from harness.table import Table

from seatwise.v1 import match_pb2
from seatwise_server.app import embedded_redis, running
from seatwise_server.config import Config

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECOND = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 1, "grace_ms": 50}
"""A second a move, and no bank to draw on."""


class Players:
    """Bots at several tables, who play on whatever happens."""

    def __init__(self, house: House, tables: Sequence[Table]) -> None:
        self.house = house
        self.tables = tables
        self.by_table = [[Survivor(chair) for chair in table.chairs] for table in tables]
        self.all = [survivor for survivors in self.by_table for survivor in survivors]
        self._tasks = [asyncio.create_task(survivor.survive()) for survivor in self.all]

    async def after(self, moves: int) -> None:
        """Returns when somebody at each table has made so many moves."""
        await asyncio.gather(*[survivors[0].after(moves) for survivors in self.by_table])

    async def go_on(self) -> None:
        """Returns when every table has seen another move, or its end."""
        before = [self._progress(survivors) for survivors in self.by_table]
        for survivors, count in zip(self.by_table, before, strict=True):
            await until(lambda own=survivors, count=count: self._progress(own) > count or own[0].ended, 20)

    def _progress(self, survivors: Sequence[Survivor]) -> int:
        return sum(len(survivor.acknowledged) for survivor in survivors)

    async def finish(self) -> list[dict]:
        """All play to the end. The records: they verify, and hold every move that was acknowledged, once."""
        await asyncio.gather(*self._tasks)
        records = []
        for table, survivors in zip(self.tables, self.by_table, strict=True):
            match = await self.house.admin.over(table.name)
            assert list(match.result.endings) == [match_pb2.ENDING_COMPLETED] * len(survivors)
            assert all(survivor.ended[0].result == match.result for survivor in survivors)
            assert all(update.time.strikes == 0 for survivor in survivors for update in survivor.updates)
            line = await self.house.admin.record(table.name)
            check_nothing_lost(line, survivors)
            records.append(json.loads(line))
        return records

    async def stop(self) -> None:
        """They go, if they have not."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def playing(house: House, *sizes: int, rounds: int = 8) -> AsyncIterator[Players]:
    """Matches of these sizes, under way."""
    tables = [
        await house.seat([await house.bot() for _ in range(size)], rounds=rounds, **SECOND) for size in sizes
    ]
    players = Players(house, tables)
    try:
        yield players
    finally:
        await players.stop()


def times(record: dict, kind: str) -> list[dict]:
    return [entry for entry in record["entries"] if entry["kind"] == kind]


# The server


async def test_a_killed_server_goes_on_at_once_when_it_is_started_again():
    async with server_process() as (process, house), playing(house, 2, 3, 4) as players:
        for moves in (4, 8):
            await players.after(moves)
            await process.kill()
            redis = processes_with(str(process.data))
            await process.start()
            began = time.monotonic()
            await players.go_on()
            assert time.monotonic() - began < 2
            assert not set(redis) & set(processes_with(str(process.data)))
        records = await players.finish()
        for record in records:
            epochs = [entry["epoch"] for entry in times(record, "taken_over")]
            assert epochs == [2, 3][: len(epochs)]
        assert any(times(record, "taken_over") for record in records)


@pytest.mark.slow
async def test_a_server_that_is_told_to_stop_ends_in_order_and_goes_on_when_it_is_started_again():
    async with server_process() as (process, house), playing(house, 2, 4) as players:
        await players.after(8)
        attending = await house._wires[0].attend()
        process.signal(signal.SIGTERM)
        assert (await attending.end()).reason == "SERVER_STOPPING"
        assert await process.ended() == 0
        assert not processes_with(str(process.data))
        await process.start()
        await players.finish()
        assert any("SERVER_STOPPING" in survivor.hows for survivor in players.all)


@pytest.mark.slow
async def test_a_folder_and_a_port_that_are_taken_are_refused_in_clear_words():
    async with server_process() as (process, house):
        second = ServerProcess(process.data)
        with pytest.raises(AssertionError, match="did not start"):
            await second.start()
        assert await second.ended() == 1
        assert f"process {process.pid}" in process.last_words
        assert "--data" in process.last_words
        assert "Traceback" not in (process.data / "server.log").read_text()
        async with house.table(2) as table:
            await table.sit()
            await table.play_out()
        with tempfile.TemporaryDirectory(prefix="sw-") as folder:
            second = ServerProcess(Path(folder))
            second.address = process.address
            with pytest.raises(AssertionError, match="did not start"):
                await second.start()
            assert await second.ended() == 1
            assert "--port" in second.last_words
            await until(lambda: not processes_with(folder))


# Its Redis


@pytest.mark.slow
async def test_play_goes_on_when_the_private_redis_was_killed():
    async with server_process() as (process, house), playing(house, 2, 3, 4) as players:
        for moves in (6, 15):
            await players.after(moves)
            before = process.redis_pid
            process.signal_redis(signal.SIGKILL)
            await until(lambda before=before: process.redis_pid != before)
            await players.go_on()
        await players.finish()
        assert {survivor.links for survivor in players.all} == {1}


async def test_a_private_redis_that_dies_while_the_server_starts_is_started_again(tmp_path: Path) -> None:
    config = Config(port=0, data=tmp_path, house_bots=False)
    embedded = embedded_redis(config)
    assert embedded
    assert embedded.pid
    try:
        os.kill(embedded.pid, signal.SIGKILL)
        async with running(config, embedded) as server:
            assert server.address
    finally:
        embedded.stop()


async def test_clocks_freeze_while_redis_stands_still():
    async with server_process() as (process, house), playing(house, 2, 4) as players:
        await players.after(6)
        process.signal_redis(signal.SIGSTOP)
        try:
            await asyncio.sleep(1.5)  # longer than any move may take
        finally:
            process.signal_redis(signal.SIGCONT)
        await players.go_on()
        for record in await players.finish():
            assert max(entry["charged_ms"] for entry in times(record, "move")) < 1000
        assert {survivor.links for survivor in players.all} == {1}


@pytest.mark.slow
async def test_a_server_whose_redis_is_gone_for_good_stops_in_clear_words_and_has_all_when_it_is_back():
    async with server_process("--gone-for-good", "0.5") as (process, house), playing(house, 2, 3) as players:
        await players.after(8)
        process.signal_redis(signal.SIGSTOP)
        began = time.monotonic()
        assert await process.ended(within_s=20) == 1
        assert time.monotonic() - began < 15
        assert "has not answered for" in process.last_words
        assert "Traceback" not in process.last_words
        await until(lambda: not processes_with(str(process.data)))
        await process.start()
        await players.finish()
