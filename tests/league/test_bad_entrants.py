"""An entrant that crashes, hangs or floods loses its own matches and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from harness.table import Chair

from seatwise.cli import main
from seatwise.link.security import Security
from seatwise_server.competition.schedules.schedule import list_walk_overs
from seatwise_server.league.players import run_substitute
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season_log import read_season
from seatwise_server.league.settings import League

BOTS = """\
import os, time

import seatwise.link.wire as wire
from seatwise import Bot


class Crash(Bot):
    def choose(self, view):
        os._exit(3)


class Hang(Bot):
    def choose(self, view):
        time.sleep(10**6)


class Block(Bot):
    async def choose(self, view):
        time.sleep(10**6)  # and with it the link


class Flood(Bot):
    def __init__(self):
        write = wire.GrpcStream.write

        async def write_often(stream, message):
            for _ in range(200):
                await write(stream, message)

        wire.GrpcStream.write = write_often

    def choose(self, view):
        raise RuntimeError("nothing but noise")
"""
LEAGUE = """\
name = "bad"
game = "ugo"
seats = 2
options = { rounds = 1 }
[time]
bank_ms = 500
setup_ms = 3000
free_ms = { card = 300, arrange = 300 }
[[entrants]]
bot = "greedy"
[[entrants]]
bot = "random"
"""
BAD = ("Crash", "Hang", "Block", "Flood")
GOOD = ("bots/greedy/versions/1", "bots/random/versions/1")


def results_in(folder: Path) -> list[dict[str, Any]]:
    """All that counted."""
    lines = map(json.loads, (folder / "season.jsonl").read_text().splitlines())
    return [line for line in lines if line.get("kind") == "result"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_only_its_own_matches_are_lost_by_an_entrant_that_is_broken(tmp_path, capsys):
    (tmp_path / "bad.py").write_text(BOTS)
    entrants = "".join(f'[[entrants]]\nbot = "bad.py:{name}"\n' for name in BAD)
    (tmp_path / "league.toml").write_text(LEAGUE + entrants)
    out = tmp_path / "out"
    assert main(["league", "run", str(tmp_path / "league.toml"), "--results", str(out)]) == 0
    met: set[tuple[str, str]] = set()
    for result in results_in(out):
        for bot, rank, ending in zip(result["bots"], result["ranks"], result["endings"], strict=True):
            other = next(each for each in result["bots"] if each != bot)
            if bot in GOOD:
                met.add((bot, other))
                assert ending == "COMPLETED"
                assert rank == 1 or other in GOOD
            else:
                assert ending != "COMPLETED"
    settings, season = read_season(out)
    matches = {
        match.id: match.bots for match in schedule_of(League.from_json(settings)).known_matches(season.so_far)
    }
    for match, absent in list_walk_overs(season.so_far).items():
        assert not set(absent) & set(GOOD)
        met |= {(bot, other) for bot in matches[match] for other in absent if bot in GOOD}
    assert len(met) == len(GOOD) * (len(GOOD) - 1 + len(BAD)), "everybody met everybody else"
    page = (out / "report.html").read_text()
    assert "ran out of time" in page
    assert "crash" in page
    capsys.readouterr()
    assert main(["verify", str(out / "season.bundle")]) == 0


@pytest.mark.asyncio(loop_scope="session")
async def test_a_substitute_resigns_at_once_and_the_other_plays_on(house):
    bots = [await house.bot(), await house.bot()]
    attending = await bots[0].attend()
    playing = asyncio.create_task(run_substitute(house.address, bots[1].token, Security()))
    try:
        names = [(await house.admin.create([bot.bot for bot in bots])).name for _ in range(3)]
        for name in names:
            offer = await attending.offer(name)
            chair = Chair(bots[0], name, offer.seat)
            await chair.sit()
            ended = await chair.play_out()
            assert [int(each) for each in ended.result.endings] == [1, 2], "COMPLETED, RESIGNED"
            assert list(ended.result.ranks) == [1, 2]
    finally:
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing
