"""A server of the newest release is killed or stopped in the middle of a match, and this version goes on with all that it has written.

`releases.txt` names the commit of each release, newest last; a clone may have no tags.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from harness import Survivor, check_nothing_lost, server_process
from harness.process import ServerProcess

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PACKAGES = ("client_sdk", "referee", "server")
LADDER = "ladders/kept"
HOUR = {"free_ms": {"card": 3_600_000, "arrange": 3_600_000}, "setup_ms": 3_600_000}


def environment(folder: Path) -> dict[str, str]:
    """The environment in which Python imports the version in that folder."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(folder / package) for package in PACKAGES)}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The newest release, unpacked, as an environment."""
    version, commit = (ROOT / "tests/upgrade/releases.txt").read_text().split()[-2:]
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, *PACKAGES, "proto"]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"release {version} ({commit}) is not in the history of this clone")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        tar.extractall(folder)
    subprocess.run([sys.executable, "proto/build_stubs.py"], cwd=folder, check=True, capture_output=True)
    return environment(folder)


async def seatwise(env: dict[str, str], *args: object, token: str = "") -> str:
    """Runs a command of that version; returns its standard output. It must end with 0."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seatwise", *map(str, args), env={**env, "SEATWISE_TOKEN": token}, stdout=pipe, stderr=pipe
    )  # fmt: skip
    async with asyncio.timeout(120):
        out, complaint = await process.communicate()
    assert process.returncode == 0, f"{args}: {out.decode()}{complaint.decode()}"
    return out.decode()


async def upgrade(process: ServerProcess, by: signal.Signals) -> None:
    """Ends the server, and starts this version on its data folder."""
    process.signal(by)
    await process.ended()
    process.env = environment(ROOT)
    await process.start()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
async def test_a_match_and_a_ladder_go_on_after_the_upgrade(
    release: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals
) -> None:
    this = environment(ROOT)
    monkeypatch.setattr(ServerProcess, "env", release)
    async with server_process() as (process, house):
        at = ("--address", house.address)
        create = ("ladder", "create", LADDER, "--seats", 2, "--option", "rounds=1", *at)
        await seatwise(release, *create, token=process.token)
        tokens = [(await house.bot(name)).token for name in ("first", "second")]

        async def play(queue: str, *versions: dict[str, str]) -> None:
            """A bot of each of these versions plays two matches there."""
            play = ("bot", "greedy", *at, "--queue", queue, "--matches", 2, "--quiet")
            bots = zip(versions, tokens, strict=True)
            await asyncio.gather(*[seatwise(version, *play, token=token) for version, token in bots])

        async def finished() -> list[str]:
            listed = await seatwise(this, "match", "list", *at, "--json")
            return [
                it["name"] for it in map(json.loads, listed.splitlines()) if it["state"] == "STATE_FINISHED"
            ]

        await play(LADDER, release, release)
        before = await finished()
        assert len(before) >= 2
        table = await house.seat([await house.bot() for _ in range(3)], rounds=2, **HOUR)
        survivors = [Survivor(chair) for chair in table.chairs]
        playing = asyncio.gather(*[survivor.survive(60) for survivor in survivors])
        await asyncio.gather(*[survivor.after(3) for survivor in survivors])
        await upgrade(process, by)
        await playing
        record = await house.admin.record(table.name)
        check_nothing_lost(record, survivors)
        assert any(entry["kind"] == "taken_over" for entry in json.loads(record)["entries"])
        await play("casual-2", release, this)  # a ladder rates no pair so often
        after = await finished()
        assert {*before, table.name} < set(after)
        lines = [await house.admin.record(name) for name in after]
        (file := tmp_path / "records.jsonl").write_bytes(b"".join(line.strip() + b"\n" for line in lines))
        await seatwise(this, "verify", file)
        counted, on_ladder = 0, len(before)
        async with asyncio.timeout(30):
            while counted < 2 * on_ladder:
                standings = await seatwise(this, "ladder", "show", LADDER, *at, "--json")
                counted = sum(json.loads(line)["matches"] for line in standings.splitlines())
        assert counted == 2 * on_ladder
