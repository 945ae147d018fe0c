"""A process that has grown past its limit stops in order and is started again, and no match is lost by it."""

from __future__ import annotations

import json
import signal
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from harness import REFEREE, fleet, server_process

from seatwise.cli import main
from seatwise.cli.arguments import parse_size
from seatwise_server import memory
from seatwise_server.memory import (
    LEAST_MEMORY,
    MEMORY_SHARE,
    START_AGAIN,
    MemoryLimitPassed,
    MemoryWatch,
    default_limit,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIB = 2**20
GROWS = """
import signal
hoard = []
signal.signal(signal.SIGUSR1, lambda *_: hoard.append(b"x" * (300 << 20)))
"""
"""Python that makes a process grow when it gets a signal."""
LIMITED = ("--max-memory", "250M")
SECOND = {"free_ms": {"card": 1000, "arrange": 1000}, "bank_ms": 1, "grace_ms": 50}


@pytest.mark.slow
async def test_a_lone_server_that_grows_stops_in_order_and_its_matches_go_on_after_the_start(monkeypatch):
    monkeypatch.setattr("harness.process.ServerProcess.before", GROWS)
    async with server_process(*LIMITED) as (process, house):
        table = await house.seat([await house.bot(), await house.bot()], **SECOND)
        await table.sit()
        asked, _ = await table.asked()
        request_id = await asked.move()
        while request_id not in asked.accepted:
            await asked.receive()
        process.signal(signal.SIGUSR1)
        assert await process.ended() == START_AGAIN
        assert "start it again" in process.last_words
        await process.start()
        for chair in table.chairs:
            await chair.wire.channel.channel_ready()
            await chair.sit()
        await table.play_out()
        await house.admin.over(table.name)
        record = json.loads(await house.admin.record(table.name))
        entries = record["entries"]
        assert [entry["epoch"] for entry in entries if entry["kind"] == "taken_over"] == [2]
        moved = [entry["prompt"] for entry in entries if entry["kind"] == "move"]
        assert asked.accepted[request_id] in moved
        assert len(moved) == len(set(moved))
        assert record["endings"] == ["COMPLETED", "COMPLETED"]
        assert all(chair.last.time.strikes == 0 for chair in table.chairs)
        await house.admin.drop()


@pytest.mark.slow
async def test_a_referee_that_grows_hands_its_matches_to_another_at_once():
    async with fleet(referees=0) as (ships, house):
        for _ in range(2):
            await ships.start(*REFEREE, *LIMITED, before=GROWS)
        seats = await ships.seated(house, free_ms={"card": 20_000, "arrange": 20_000}, bank_ms=1)
        grown = ships.at(seats.address)
        grown.signal(signal.SIGUSR1)
        await seats.follow(2, 5)
        assert seats.address != grown.address
        assert await grown.ended() == START_AGAIN
        await seats.table.play_out()
        await house.admin.over(seats.match.name)
        record = json.loads(await house.admin.record(seats.match.name))
        assert record["endings"] == ["COMPLETED", "COMPLETED"]


class Sized:
    """A process with these sizes, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *sizes: int) -> None:
        self.sizes = list(sizes)
        self.releases = 0
        monkeypatch.setattr(memory, "resident_bytes", self.measure)
        monkeypatch.setattr(memory, "release_memory", self.release)

    def measure(self) -> int:
        return self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]

    def release(self) -> None:
        self.releases += 1


async def test_memory_that_is_only_not_given_back_stops_nobody(monkeypatch):
    sized = Sized(monkeypatch, 1200, 400)
    await MemoryWatch(1000).check_memory(0.0)
    assert sized.releases == 1


async def test_memory_that_is_in_use_stops_the_process(monkeypatch):
    sized = Sized(monkeypatch, 1200)
    with pytest.raises(MemoryLimitPassed, match="--max-memory"):
        await MemoryWatch(1000).check_memory(0.0)
    assert sized.releases == 1


async def test_below_the_limit_memory_is_given_back_now_and_then(monkeypatch):
    sized, watch = Sized(monkeypatch, 600), MemoryWatch(1000)
    for now in (0.0, 1.0, memory.RELEASE_REST_S - 1, memory.RELEASE_REST_S):
        await watch.check_memory(now)
    assert sized.releases == 2
    sized.sizes = [400]
    await watch.check_memory(1000.0)
    assert sized.releases == 2


async def test_a_process_without_a_limit_is_not_watched():
    await MemoryWatch(0).watch_memory()


async def test_the_process_knows_what_it_takes_and_gives_it_back():
    before = memory.resident_bytes()
    small = [bytes(1000) for _ in range(50_000)]
    assert memory.resident_bytes() > before + 30 * MIB
    del small
    memory.release_memory()
    assert memory.resident_bytes() < before + 30 * MIB


def group(root: Path, line: str, **limits: str) -> int:
    """The default limit where the process is in this control group; the limits by their folders, `_` for the base."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"{line}\n")
    for folder, limit in limits.items():
        base = root / ("sys/fs/cgroup/memory" if "memory" in line else "sys/fs/cgroup")
        name = "memory.limit_in_bytes" if "memory" in line else "memory.max"
        place = base / folder.strip("_")
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f"{limit}\n")
    return default_limit(root)


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("0::/", {"_": "1073741824"}),
        ("0::/seatwise", {"seatwise": "1073741824", "_": "max"}),
        ("0::/seatwise/inner", {"seatwise": "1073741824", "seatwise/inner": "max"}),
        ("0::/outside/the/container", {"_": "1073741824"}),
        ("4:cpu,memory:/docker/abc", {"_": "1073741824"}),
    ],
    ids=["container", "unit", "above", "a path from outside", "version 1"],
)
async def test_the_default_is_a_share_of_what_the_control_group_may_have(tmp_path, line, limits):
    assert group(tmp_path, line, **limits) == int(MEMORY_SHARE * 2**30)


async def test_without_a_control_group_the_default_is_a_share_of_the_machine(tmp_path):
    of_machine = default_limit(tmp_path)
    assert of_machine > LEAST_MEMORY
    assert group(tmp_path, "0::/", _="max") == of_machine


async def test_a_tiny_control_group_still_leaves_room_for_the_server(tmp_path):
    assert group(tmp_path, "0::/", _="1000000") == LEAST_MEMORY


async def test_sizes_are_read_with_their_units():
    assert [parse_size(text) for text in ("0", "7", "3K", "900M", "2G")] == [
        0,
        7,
        3072,
        900 * MIB,
        2048 * MIB,
    ]
    for text in ("", "-1", "2g", "1.5G", "2GB", "G"):
        with pytest.raises(ArgumentTypeError, match="900M or 2G"):
            parse_size(text)


async def test_a_limit_below_what_the_server_needs_is_refused(capsys):
    assert main(["serve", "--max-memory", "20M"]) == 2
    assert "the server needs 128M" in capsys.readouterr().err
