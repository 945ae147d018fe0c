"""What version 0.1.0 has written is read, continued and verified by this version, and either plays with the other."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import House, ServerProcess, Survivor, check_nothing_lost, processes_with, until
from harness.table import Admin, Table

from upgrade.previous_release import THIS, Release, unpack_previous

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

LADDER = "ladders/kept"
HOUR = {"free_ms": {"card": 3_600_000, "arrange": 3_600_000}, "setup_ms": 3_600_000}
LEAGUE = """\
name = "kept"
game = "ugo"
seats = 2
rounds = 40
options = { rounds = 1 }
[[entrants]]
bot = "random"
[[entrants]]
bot = "greedy"
"""
LEAGUE_MATCHES = 40


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return unpack_previous(tmp_path_factory.mktemp("previous"))


@asynccontextmanager
async def server_of(release: Release) -> AsyncIterator[tuple[ServerProcess, House]]:
    """A server of that version; it is stopped at the end, whatever version it has by then."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        process = ServerProcess(Path(folder))
        process.env = release.env
        process.knows_http = release is THIS
        try:
            await process.start()
            house = House(process.address, Admin(process.address, process.token))
            yield process, house
            await house.drop_all()
            await house.admin.drop()
        finally:
            await process.stop()


async def upgrade(process: ServerProcess, number: signal.Signals) -> None:
    """Ends the server, and starts this version on its data folder."""
    process.signal(number)
    await process.ended()
    process.env = THIS.env
    process.knows_http = True
    await process.start()


async def play_ladder(
    house: House, tokens: dict[str, str], releases: dict[str, Release], matches: int
) -> None:
    """Lets bots play on the ladder until each has played so many matches; each is of its release."""
    common = ("--queue", LADDER, "--matches", matches, "--max-matches", 2, "--quiet")
    runs = [
        releases[bot].seatwise("bot", "greedy", "--address", house.address, *common, token=token)
        for bot, token in tokens.items()
    ]
    await asyncio.gather(*runs)


async def register(house: House, *names: str) -> dict[str, str]:
    """Registers bots. Returns their tokens by name."""
    return {name: (await house.bot(name)).token for name in names}


async def verify_all(release: Release, house: House, tmp_path: Path, names: list[str]) -> None:
    """Has `seatwise verify` of that version check the records of these matches."""
    lines = [await house.admin.record(name) for name in names]
    (file := tmp_path / "records.jsonl").write_bytes(b"".join(line.strip() + b"\n" for line in lines))
    await release.seatwise("verify", file)


async def finished_matches(house: House) -> list[str]:
    out = await THIS.seatwise("match", "list", "--address", house.address, "--json")
    return [it["name"] for it in map(json.loads, out.splitlines()) if it["state"] == "STATE_FINISHED"]


async def standings(house: House, matches: int) -> list[dict[str, object]]:
    """The table of the ladder, once it counts so many matches of two bots."""
    async with asyncio.timeout(30):
        while True:
            out = await THIS.seatwise("ladder", "show", LADDER, "--address", house.address, "--json")
            lines = [json.loads(line) for line in out.splitlines()]
            if sum(line["matches"] for line in lines) == 2 * matches:
                return lines


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_match_that_runs_goes_on_after_the_upgrade(previous: Release, number: signal.Signals) -> None:
    async with server_of(previous) as (process, house):
        table: Table = await house.seat([await house.bot() for _ in range(3)], rounds=2, **HOUR)
        survivors = [Survivor(chair) for chair in table.chairs]
        playing = asyncio.gather(*[survivor.survive(60) for survivor in survivors])
        await asyncio.gather(*[survivor.after(3) for survivor in survivors])
        await upgrade(process, number)
        await playing
        line = await house.admin.record(table.name)
        check_nothing_lost(line, survivors)
        assert any(entry["kind"] == "taken_over" for entry in json.loads(line)["entries"])


async def test_records_ladders_and_tokens_are_kept(previous: Release, tmp_path: Path) -> None:
    async with server_of(previous) as (process, house):
        create = (
            "ladder",
            "create",
            LADDER,
            "--seats",
            2,
            "--option",
            "rounds=1",
            "--address",
            house.address,
        )
        await previous.seatwise(*create, token=process.token)
        tokens = await register(house, "first", "second")
        await play_ladder(house, tokens, dict.fromkeys(tokens, previous), matches=4)
        played = await finished_matches(house)
        before = await standings(house, len(played))
        assert len(played) >= 4
        await upgrade(process, signal.SIGTERM)
        assert await standings(house, len(played)) == before
        await verify_all(THIS, house, tmp_path, played)
        await THIS.seatwise("ctl", "check", "--mend", "--address", house.address, token=process.token)
        assert sorted(await finished_matches(house)) == sorted(played)
        filters = ("--bot", "first", "--game", "ugo", "--competition", LADDER, "--state", "finished")
        listed = await THIS.seatwise("match", "list", *filters, "--json", "--address", house.address)
        assert sorted(json.loads(line)["name"] for line in listed.splitlines()) == sorted(played)
        await check_tokens(house.address, process.token, tokens["first"])
        mixed = dict(zip(tokens, (previous, THIS), strict=True))
        await play_ladder(house, tokens, mixed, matches=2)
        newer = await finished_matches(house)
        assert len(newer) >= len(played) + 2
        await verify_all(THIS, house, tmp_path, newer)
        await verify_all(previous, house, tmp_path, newer)


async def check_tokens(address: str, admin_token: str, bot_token: str) -> None:
    """Tokens of the previous release open the same as before, and issue the new ones."""
    assert not any(token.startswith("seatwise_") for token in (admin_token, bot_token))
    at = ("--address", address, "--json")
    made = await THIS.seatwise("ctl", "token", "create", "Joan", "--scope", "read", *at, token=admin_token)
    await THIS.seatwise("ctl", "referees", *at, token=json.loads(made)["text"])
    refused = await THIS.start("ctl", "referees", *at, token=bot_token)
    _, complaint = await refused.communicate()
    assert (refused.returncode, b"NOT_ALLOWED" in complaint) == (1, True)


async def test_bots_of_this_version_play_on_a_server_of_the_previous_one(previous: Release) -> None:
    async with server_of(previous) as (process, house):
        create = (
            "ladder",
            "create",
            LADDER,
            "--seats",
            2,
            "--option",
            "rounds=1",
            "--address",
            house.address,
        )
        await THIS.seatwise(*create, token=process.token)
        tokens = await register(house, "first", "second")
        await play_ladder(house, tokens, dict(zip(tokens, (THIS, previous), strict=True)), matches=2)
        assert len(await finished_matches(house)) >= 2


async def test_a_league_goes_on_after_the_upgrade(previous: Release, tmp_path: Path) -> None:
    (file := tmp_path / "league.toml").write_text(LEAGUE)
    results = tmp_path / "out"
    run = await previous.start("league", "run", file, "--results", results)
    try:
        await until(lambda: len(results_in(results)) >= 4, 60)
    finally:
        run.kill()
        await run.communicate()
    await until(lambda: not processes_with(str(results)))
    before = results_in(results)
    assert 4 <= len(before) < LEAGUE_MATCHES
    await THIS.seatwise("league", "run", file, "--results", results)
    await THIS.seatwise("verify", results / "season.bundle")
    after = results_in(results)
    assert after[: len(before)] == before
    assert len({line["match"] for line in after}) == len(after) == LEAGUE_MATCHES


async def test_a_bundle_of_the_previous_version_verifies(previous: Release, tmp_path: Path) -> None:
    (file := tmp_path / "league.toml").write_text(LEAGUE.replace("rounds = 40", "rounds = 4"))
    await previous.seatwise("league", "run", file, "--results", tmp_path / "out")
    await THIS.seatwise("verify", tmp_path / "out" / "season.bundle")
    await THIS.seatwise("league", "report", tmp_path / "out")


def results_in(folder: Path) -> list[dict[str, object]]:
    """The results of matches in the season log."""
    log = folder / "season.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    whole = (json.loads(line) for line in lines if line.endswith("\n"))
    return [line for line in whole if line.get("kind") == "result"]
