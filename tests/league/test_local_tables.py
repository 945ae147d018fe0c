"""A league at local tables: the same records and the same proof as at a server, and the same deals after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from seasons.one_season import NAME, league_of

from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise.failures import Failure
from seatwise.local.table import local_time_control
from seatwise.units import LocalWorkers, UnitRun
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.league import season_log
from seatwise_server.league.local_match import LocalMatches, LocalOutcome, LocalSeason, SeasonTables
from seatwise_server.league.local_runner import LocalRunner, read_or_create_key
from seatwise_server.league.progress import Screen
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import Entrant, League

LONG_S = 60.0
FAILING = """
from seatwise import Bot

class Failing(Bot):
    def choose(self, view):
        raise RuntimeError("no idea")

class Leaving(Bot):
    def choose(self, view):
        import os
        print("so long", flush=True)
        os._exit(3)

class Stuck(Bot):
    def choose(self, view):
        import os, time
        print("stuck in", os.getpid(), flush=True)
        time.sleep(1000)
"""


class TablesHere:
    """Plays the matches in this process, and answers the later ones first."""

    room = 3

    def __init__(self, season: LocalSeason, stop_after: int = 10**6) -> None:
        self.failures: list[Failure] = []
        self.stop_after = stop_after
        self.runner: LocalRunner | None = None
        self._matches = LocalMatches(season, self.failures.append, lambda value: value)
        self._turn = 0

    async def play_match(self, scheduled: ScheduledMatch) -> LocalOutcome:
        """Play one match."""
        self._turn += 1
        for _ in range(3 - self._turn % 3):
            await asyncio.sleep(0)
        if self.runner and self.runner.played >= self.stop_after:
            self.runner.is_stopping = True
        return self._matches.play_match(scheduled)


def local_league(*names: str, **changes: Any) -> League:
    """A league of short matches at local tables."""
    return league_of(*names, time=local_time_control("ugo"), tables="local", **changes)


def silent(show: Callable[[str], None] = lambda _: None) -> Screen:
    """A screen that shows messages only."""
    return Screen(lambda _: None, show)


def play_here(folder: Path, league: League, stop_after: int = 10**6) -> bool:
    """Play the league in this process, and return whether it is over."""
    with closing(season_log.open_season_log(folder, league, NAME)) as book:
        season = LocalSeason(league, NAME, read_or_create_key(folder))
        tables = TablesHere(season, stop_after)
        runner = LocalRunner(schedule_of(league), book, season, tables, silent())
        tables.runner = runner
        return asyncio.run(runner.run())


def results_in(folder: Path) -> dict[str, tuple[int, ...]]:
    """The points of each table."""
    _, season = season_log.read_season(folder)
    return {table: result.points for table, result in season.results.items()}


FORMATS = {
    "a round robin with deals that travel": local_league(),
    "a Swiss": local_league(format="swiss"),
    "a knockout": local_league(format="knockout"),
    "a test on rotated deals": local_league(
        "random", "greedy", format="ab-test", rounds=20, deals="rotation", is_trusted=True
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_season_at_local_tables_proves_itself_as_any_other(tmp_path, capsys, kind):
    assert play_here(tmp_path, FORMATS[kind])
    published = publish_season(tmp_path)
    assert main(["verify", str(tmp_path / "season.bundle"), "--chain", published.digest]) == 0
    assert "each result matches its record" in capsys.readouterr().out
    assert "played at local tables of the operator" in (tmp_path / "report.html").read_text()


def test_a_season_that_was_interrupted_plays_the_same_deals_as_one_that_was_not(tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    league = local_league(rounds=6)
    assert play_here(whole, league)
    parted.mkdir()
    (parted / "deals.key").write_text((whole / "deals.key").read_text())
    assert not play_here(parted, league, stop_after=3)
    assert 0 < len(results_in(parted)) < len(results_in(whole))
    assert play_here(parted, league)
    assert results_in(parted) == results_in(whole)


def test_bots_at_one_seat_of_one_deal_have_the_same_random_numbers(tmp_path):
    """So their chance is common to both, and no luck in the difference between them."""
    league = FORMATS["a test on rotated deals"]
    with closing(season_log.open_season_log(tmp_path, league, NAME)) as book:
        due = season_log.find_due_matches(schedule_of(league), book)
    matches = LocalMatches(
        LocalSeason(league, NAME, read_or_create_key(tmp_path)), lambda _: None, lambda value: value
    )
    drawn: dict[tuple[str, int], set[float]] = {}
    for match in due[:16]:
        assert match.deal
        for seat, player in enumerate(matches._make_players(match)):
            drawn.setdefault((match.deal.set, seat), set()).add(player.chance.random())
    assert {len(numbers) for numbers in drawn.values()} == {1}
    assert len({number for numbers in drawn.values() for number in numbers}) == len(drawn) >= 8


def test_a_match_whose_result_did_not_reach_the_disk_is_played_again(tmp_path):
    league = local_league()
    assert play_here(tmp_path, league)
    before, log = results_in(tmp_path), season_log.log_path(tmp_path)
    lines = log.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["kind"] == "result"
    log.write_bytes(b"".join(lines[:-1]))  # killed between the record and its result
    assert play_here(tmp_path, league)
    assert results_in(tmp_path) == before
    assert main(["verify", str(tmp_path / "season.bundle"), "--chain", publish_season(tmp_path).digest]) == 0


def test_the_deals_of_another_season_are_others_and_nobody_else_may_read_their_key(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    league = local_league()
    for folder in (one, other):
        folder.mkdir()
        seasons = LocalSeason(league, NAME, read_or_create_key(folder))
        assert read_or_create_key(folder) == seasons.key
        assert (folder / "deals.key").stat().st_mode & 0o077 == 0
    assert read_or_create_key(one) != read_or_create_key(other)
    (one / "deals.key").write_text("ff")
    with pytest.raises(UsageError, match="is not a key of 32 bytes"):
        read_or_create_key(one)


def bots_beside(folder: Path, first: str) -> League:
    """A league of a bot of that class and a sample, played by processes."""
    (folder / "bots.py").write_text(FAILING)
    entrants = (
        Entrant("mine", "bots/mine/versions/1", f"{folder}/bots.py:{first}"),
        Entrant("greedy", "bots/greedy/versions/1", "greedy"),
    )
    return replace(local_league("random", "greedy"), entrants=entrants)


async def play_one(folder: Path, league: League) -> LocalOutcome:
    """Play the first match of the league in a process of its own."""
    season = LocalSeason(league, NAME, b"k" * 32)
    scheduled = ScheduledMatch("r1-t1", 1, league.players)
    run = UnitRun(season.to_unit_plan(), LocalWorkers(1, folder / "logs"), replay_share=0.0)
    async with asyncio.timeout(LONG_S), run:
        return await SeasonTables(season, run).play_match(scheduled)


def test_a_bot_that_fails_loses_its_moves_and_its_failure_is_told_once(tmp_path):
    outcome = asyncio.run(play_one(tmp_path, bots_beside(tmp_path, "Failing")))
    assert outcome.result
    assert outcome.result.points[0] < outcome.result.points[1]
    (failure,) = outcome.failures
    assert failure["bot"] == "mine"
    assert "no idea" in failure["text"]


def test_a_bot_that_ends_its_process_is_named_with_its_last_line(tmp_path):
    with pytest.raises(UsageError) as caught:
        asyncio.run(play_one(tmp_path, bots_beside(tmp_path, "Leaving")))
    assert "between bots/mine/versions/1, bots/greedy/versions/1 has ended three workers" in str(caught.value)
    assert str(caught.value).endswith("is: so long")


def test_the_command_plays_at_local_tables_and_takes_no_server(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'name = "a"\ngame = "ugo"\nrounds = 4\ntables = "local"\noptions = { rounds = 1 }\n'
    Path("a.toml").write_text(
        text + "".join(f'[[entrants]]\nbot = "{bot}"\n' for bot in ("random", "greedy"))
    )
    run = ["league", "run", "a.toml", "--results", "out"]
    assert main([*run, "--address", "localhost:1", "--token", "t"]) == 2
    assert "leave --address out" in capsys.readouterr().err
    assert main([*run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"]
    assert not Path("out/server").exists()


@pytest.mark.slow
def test_no_process_outlives_a_runner_that_is_killed_while_a_bot_thinks(tmp_path):
    bots_beside(tmp_path, "Stuck")
    text = 'name = "a"\ngame = "ugo"\nrounds = 4\ntables = "local"\n[[entrants]]\nbot = "greedy"\n'
    (tmp_path / "a.toml").write_text(f'{text}[[entrants]]\nbot = "bots.py:Stuck"\n')
    command = [sys.executable, "-m", "seatwise", "league", "run", "a.toml", "--results", "out"]
    runner = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: stuck_processes(tmp_path / "out/logs"))
    finally:
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait(LONG_S)
    for process in stuck_processes(tmp_path / "out/logs"):
        wait_until(lambda process=process: not is_running(process))


def stuck_processes(logs: Path) -> list[int]:
    """The processes in which a bot says that it is stuck."""
    words = " ".join(log.read_text() for log in logs.glob("worker-*.log")).split()
    return [int(after) for word, after in pairwise(words) if word == "in"]


def is_running(process: int) -> bool:
    """Whether it is there, and not only its entry."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def wait_until(look: Callable[[], Any]) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + LONG_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)
