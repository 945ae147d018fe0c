"""A backup of Redis, taken while matches are played, is worth what docs/operations.md says of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import (
    FRONT,
    REFEREE,
    SOON_S,
    Admin,
    Chair,
    Fleet,
    House,
    Seats,
    Wire,
    in_memory,
    plays_on,
    until,
)
from harness.redis_nodes import DURABLE, Node, binaries
from harness.terminal import seatwise, told

from seatwise_server.timings import REFEREE_LEASE_S

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

THINK_MS = 60_000
PATIENT = {"free_ms": {"card": THINK_MS, "arrange": THINK_MS}, "bank_ms": 1}


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as name:
        yield Path(name)


def made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def node(folder: Path, **options: str) -> Node:
    return Node(binaries()[0], made(folder), {**DURABLE, **options})


@asynccontextmanager
async def on(redis: Node, folder: Path, referees: int = 1):
    """A front and referees on this Redis; all of it is gone afterwards, as after a fire."""
    ships = Fleet(made(folder), f"redis://{redis.address}")
    front = await ships.start(*FRONT)
    for _ in range(referees):
        await ships.start(*REFEREE)
    house = House(front.address, Admin(front.address, front.token))
    try:
        yield ships, house
    finally:
        await asyncio.gather(*[process.kill() for process in ships.processes if process.is_alive])
        await house.drop_all()
        await house.admin.drop()
        await ships.stop()


async def copy_of_the_log(live: Node, restored: Path) -> Node:
    """As docs/operations.md has it: nothing is rewritten while the files are copied."""
    live.ask("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
    await until(lambda: live.info()["aof_rewrite_in_progress"] == "0")
    shutil.copytree(live.folder / "appendonlydir", made(restored) / "appendonlydir")
    live.ask("CONFIG", "SET", "auto-aof-rewrite-percentage", "100")
    return node(restored)


async def snapshot(live: Node, restored: Path) -> Node:
    """As `redis-cli --rdb` takes it from afar; a server that keeps a log does not read it, and has to be told to later."""
    live.ask("BGSAVE")
    await until(lambda: live.info()["rdb_bgsave_in_progress"] == "0")
    shutil.copy(live.folder / "dump.rdb", made(restored) / "dump.rdb")
    with_no_log = node(restored, appendonly="no")
    with_no_log.start()
    with_no_log.ask("CONFIG", "SET", "appendonly", "yes")
    await until(
        lambda: with_no_log.info()["aof_rewrite_in_progress"] == "0" and (restored / "appendonlydir").is_dir()
    )
    with_no_log.kill()
    (restored / "node.conf").unlink()
    return node(restored)


async def by_command(live: Node, restored: Path) -> Node:
    """As `seatwise ctl backup` and `restore` do it, from one Redis into another."""
    there, url = (
        restored.with_name("none") / "restore",
        restored.with_name("url"),
    )  # a folder that it could take for its own
    url.write_text(f"redis://{live.address}\n")
    backup = [
        "ctl",
        "backup",
        str(there),
        "--redis-file",
        str(url),
        "--data",
        str(restored.with_name("none")),
    ]
    assert (await seatwise(*backup))[0] == 0
    assert (await seatwise(*backup))[2].count("is not empty") == 1
    assert {path.stat().st_mode & 0o077 for path in there.iterdir()} == {0}
    fresh = node(restored)
    fresh.start()
    url.write_text(f"redis://{fresh.address}\n")
    done = await restoring(*backup[2:])
    assert "keys are restored" in done.stdout, done.stderr
    assert "this Redis is not empty" in (await restoring(*backup[2:])).stderr
    fresh.kill()
    return fresh


async def restoring(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process: an embedded Redis starts in a main thread."""
    command = [sys.executable, "-m", "seatwise", "ctl", "restore", *arguments]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)


async def into_a_data_folder(live: Node, restored: Path) -> Node:
    """As `seatwise ctl restore` makes the folder of an embedded Redis, which is a Redis with a log."""
    there, url, data = (restored.with_name(name) for name in ("backup", "url", "data"))
    url.write_text(f"redis://{live.address}\n")
    assert (await seatwise("ctl", "backup", str(there), "--redis-file", str(url), "--json"))[0] == 0
    done = await restoring(str(there), "--data", str(data))
    assert done.returncode == 0, done.stderr
    assert "is not empty" in (await restoring(str(there), "--data", str(data))).stderr
    shutil.copytree(data / "redis" / "appendonlydir", made(restored) / "appendonlydir")
    return node(restored)


async def one_more_move(seats: Seats, asked: Chair) -> None:
    """It is acknowledged, and the next seat has seen it."""
    [other] = [chair for chair in seats.chairs if chair is not asked]
    await asked.move()
    await other.asked("")


async def sit_again(seats: Seats, house: House, receipt: bytes = b"") -> None:
    """The bots come to the restored servers, with the last receipts that they were given.

    All have their offers before one sits: a lost receipt ends the match, and then nobody is offered a seat.
    """
    for chair in seats.chairs:
        attending = await house.wire(chair.wire.token, chair.wire.bot).attend()
        offer = await attending.offer(seats.match.name, 2, REFEREE_LEASE_S + SOON_S)
        chair.wire = Wire(offer.address, chair.wire.token, chair.wire.bot)
        house._wires.append(chair.wire)
    for chair in seats.chairs:
        await chair.sit(receipt=receipt or (chair.last.receipt if chair.last else b""))


async def whole(house: House) -> dict[str, int]:
    """What `seatwise ctl check` says of matches, but for what there is none of."""
    [said] = await told(house, "check")
    return {kind: count for kind, count in said.items() if count and kind != "compared"}


SLOW = [pytest.param(way, marks=pytest.mark.slow) for way in (snapshot, by_command, into_a_data_folder)]


@pytest.mark.parametrize("backup", [copy_of_the_log, *SLOW])
@pytest.mark.slow
async def test_a_backup_is_played_on_and_lost_moves_are_known(folder, backup):
    live, restored = node(folder / "live"), None
    live.start()
    try:
        async with on(live, folder / "before") as (ships, house):
            finished, untouched, played_on, ended = [await ships.seated(house, **PATIENT) for _ in range(4)]
            await plays_on(house, finished.table)
            record = await house.admin.record(finished.match.name)
            asked = [(await seats.table.asked())[0] for seats in (untouched, played_on, ended)]
            restored = await backup(live, folder / "restored")
            await one_more_move(played_on, asked[1])
            told, _ = await ended.table.play_out()
        live.kill()
        restored.start()
        async with on(restored, folder / "check", referees=0) as (_, house):
            assert await whole(house) == {"verified": 1, "running": 3}
        async with on(restored, folder / "after") as (_, house):
            assert await house.admin.record(finished.match.name) == record
            await sit_again(untouched, house)
            await plays_on(house, untouched.table)
            await sit_again(played_on, house)
            assert (await house.admin.over(played_on.match.name)).void_reason == "JOURNAL_LOST"
            await sit_again(ended, house, told.receipt)
            assert (await house.admin.over(ended.match.name)).void_reason == "JOURNAL_LOST"
            assert await whole(house) == {"verified": 2, "voided": 2}
    finally:
        live.kill()
        if restored:
            restored.kill()
