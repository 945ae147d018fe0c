"""A short run of `chaos.chaos`: a referee and the Redis are killed, a bot is stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness import processes_with, until

from chaos.chaos import Results, Size, run, tabulate
from chaos.disks import SmallDisk
from chaos.harm import EVERY_S, FAULTS, REDIS_EVERY_S, Fault, schedule, schedule_fault
from chaos.history import History, read
from chaos.links import Link
from chaos.reading import Books
from chaos.world import TESTS

SIZE = Size(referees=2, fronts=1, bots=4, builders=0)
SEED = 25
"""With this one a referee is killed first, then the Redis; then a bot is stopped."""


@pytest.mark.slow
async def test_after_kills_nothing_is_lost_doubled_or_wrongly_flagged(tmp_path: Path) -> None:
    results, wrong = await run(tmp_path, seconds=11, seed=SEED, size=SIZE)
    assert wrong == []
    assert (results.lost, results.doubled, results.wrong_flags) == (0, 0, 0)
    assert (results.kills, results.takeovers >= 1, results.checked >= 100) == (2, True, True)
    assert results.matches >= 3
    assert not processes_with(str(tmp_path))


@pytest.mark.slow
async def test_a_run_that_is_broken_off_leaves_nothing_running(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "chaos.chaos",
        "--seconds",
        "60",
        "--bots",
        "4",
        "--builders",
        "0",
        "--fault",
        "processes",
        "--keep",
        str(tmp_path),
    ]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env={"PYTHONPATH": str(TESTS)}, cwd=tmp_path, stderr=pipe
    )
    assert process.stderr is not None
    while b"kill referee" not in (line := await process.stderr.readline()):
        assert line, "it has ended by itself"
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 130
    await until(lambda: not processes_with(str(tmp_path)))


ROW = Results("links", 1, 8, 2, 3, 4.5, 6000, 7, 8, 0, 9, 1, 0)


def test_results_have_the_keys_that_were_asked_for() -> None:
    keys = ["fault", "matches", "harms", "kills", "takeovers", "longest_gap_s", "checked", "lost", "doubled"]
    keys += ["contradicted", "wrong_flags", "void", "stuck"]
    assert list(json.loads(json.dumps(ROW.as_json))) == keys


def test_the_table_has_a_line_for_each_fault() -> None:
    heading, line = tabulate([ROW]).splitlines()
    assert dict(zip(heading.split(), line.split(), strict=True)) == {
        "fault": "links", "matches": "1", "harms": "8", "kills": "2", "acknowledgements": "6,000", "lost": "7",
        "doubled": "8", "contradicted": "0", "flagged": "9", "void": "1", "stuck": "0",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_no_fault_loses_anything(tmp_path: Path, fault: Fault) -> None:
    size = Size() if fault in FAULTS[:2] else SIZE  # with a ladder and a league
    results, wrong = await run(tmp_path, seconds=20, seed=SEED, size=size, fault=fault)
    assert wrong == []
    assert (results.harms >= 2, results.checked >= 100) == (True, True)
    assert not processes_with(str(tmp_path))


# The tools of harm


async def test_a_link_that_is_cut_resets_what_is_open_and_refuses_what_is_new(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(99):
            writer.write(some)
        writer.close()

    server = await asyncio.start_unix_server(echo, tmp_path / "s")
    link = Link(tmp_path / "s")
    await link.start()
    port = int(link.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"there")
    assert await reader.readexactly(5) == b"there"
    cut = asyncio.create_task(link.cut(3600))
    assert await _read_rest(reader) == b""
    late, late_writer = await asyncio.open_connection("127.0.0.1", port)
    assert await _read_rest(late) == b""
    cut.cancel()
    await asyncio.wait([cut])
    back, back_writer = await asyncio.open_connection("127.0.0.1", port)
    back_writer.write(b"again")
    assert await back.readexactly(5) == b"again"
    link.close()
    assert await _read_rest(back) == b""
    for each in (writer, late_writer, back_writer):
        each.close()
    server.close()


async def _read_rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no prlimit")
@pytest.mark.parametrize("is_mounted", [True, False])
def test_a_full_disk_takes_no_byte(tmp_path: Path, is_mounted: bool) -> None:
    disk = SmallDisk(tmp_path / "disk")
    try:
        if is_mounted and not disk.is_mounted:
            pytest.skip("no file system may be mounted here")
        if not is_mounted:
            disk.unmount()
            disk.is_mounted = False
        assert _fails_to_write(disk, tmp_path / "disk" / "of_redis.aof")
    finally:
        disk.unmount()


def _fails_to_write(disk: SmallDisk, path: Path) -> bool:
    """Whether a process that has written a byte can write no other after the disk is full."""
    write = f"f = open({str(path)!r}, 'wb', 0); f.write(b'1'); print(flush=True); input(); [f.write(b'2' * 9999) for _ in 'ab']"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", write], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        disk.fill(process.pid)
        process.communicate(b"\n", timeout=60)
    return process.returncode != 0


# The schedule


@pytest.mark.parametrize("seed", range(20))
def test_45_seconds_have_five_kills_and_a_referee_comes_first(seed: int) -> None:
    harms = schedule(seed, 45, Size().by_role)
    assert (harms[0].role, harms[0].way) == ("referee", "kill")
    assert sum(harm.way == "kill" for harm in harms) >= 5
    gaps = [later.at_s - harm.at_s for harm, later in pairwise(harms)]
    assert all(EVERY_S[0] <= gap <= EVERY_S[1] for gap in gaps)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_has_harms_of_its_own_and_gives_redis_time(fault: Fault) -> None:
    harms = schedule_fault(fault, 7, 120, Size().by_role)
    assert len(harms) >= 10
    assert (
        harms
        == schedule_fault(fault, 7, 120, Size().by_role)
        != schedule_fault(fault, 8, 120, Size().by_role)
    )
    assert not fault.ways or {(harm.role, harm.way) for harm in harms} == set(fault.ways)
    at_s = [harm.at_s for harm in harms if harm.role == "redis"]
    assert all(later - each >= REDIS_EVERY_S for each, later in pairwise(at_s))


# What is written down


def test_a_match_that_was_not_read_in_time_is_stuck_and_hides_no_other() -> None:
    nobody: Any = SimpleNamespace(bots=[])
    books = Books(nobody, {"matches/a"})
    assert books.checked().checked == 0
    assert books.stuck == ["matches/a was not read in time"]


def test_a_line_that_a_kill_has_torn_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "history"
    History(path).note([{"what": "born"}, {"what": "said"}])
    with path.open("ab") as torn:
        torn.write(b'{"what": "acc')
    History(path).note([{"what": "born"}])
    assert [line["what"] for line in read(path)] == ["born", "said", "born"]
