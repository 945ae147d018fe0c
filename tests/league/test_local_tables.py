"""A league at local tables: the same records and the same proof as at a server, and the same deals after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from seasons.one_season import NAME, league_of

from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise.local.table import local_time_control
from seatwise.replay import record_units
from seatwise.units import LocalWorkers, RayWorkers, UnitAnswer, UnitOptions, UnitRun
from seatwise_server.league import season, season_log
from seatwise_server.league.local_match import LocalMatches, LocalSeason
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


class UnitsHere:
    """Does units in this process, and stops after some."""

    def __init__(self, season: LocalSeason, stop_after: int) -> None:
        self.is_stopping = False
        self._play_unit = season.to_unit_plan().open_player()
        self._left = stop_after

    async def read_units(self, units: Iterable[tuple[int, Any]]) -> AsyncIterator[UnitAnswer]:
        """Yield the answers."""
        for number, told in units:
            self.is_stopping |= not self._left
            if self.is_stopping:
                return
            self._left -= 1
            yield UnitAnswer(number, *self._play_unit(number, told))


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
        units: Any = UnitsHere(season, stop_after)
        return asyncio.run(LocalRunner(schedule_of(league), book, season, units, silent()).run())


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


async def play_one(folder: Path, league: League, show: Callable[[str], None] = lambda _: None) -> None:
    """Play the first match of the league in a process of its own."""
    season = LocalSeason(league, NAME, b"k" * 32)
    run = UnitRun(season.to_unit_plan(), LocalWorkers(1, folder / "logs"), replay_share=0.0)
    with closing(season_log.open_season_log(folder, league, NAME)) as book:
        async with asyncio.timeout(LONG_S), run:
            await LocalRunner(schedule_of(league), book, season, run, silent(show), part=range(1)).run()


def test_a_bot_that_fails_loses_its_moves_and_its_failure_is_told_once(tmp_path):
    said: list[str] = []
    league = bots_beside(tmp_path, "Failing")
    asyncio.run(play_one(tmp_path, league, said.append))
    (result,) = season_log.read_season(tmp_path)[1].results.values()
    points = dict(zip(result.bots, result.points, strict=True))
    assert points["bots/mine/versions/1"] < points["bots/greedy/versions/1"]
    (failure,) = said
    assert "mine" in failure
    assert "no idea" in failure


def test_a_bot_that_ends_its_process_is_named_with_its_last_line(tmp_path):
    with pytest.raises(UsageError) as caught:
        asyncio.run(play_one(tmp_path, bots_beside(tmp_path, "Leaving")))
    assert re.search(r"between bots/\w+/versions/1, bots/\w+/versions/1 has ended three", str(caught.value))
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


# --- Parts


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bots are not imported before the season, and nothing is played twice."""

    async def check(*_: object) -> None:
        pass

    monkeypatch.setattr(season, "check_bot_files", check)
    monkeypatch.setitem(UnitRun.__init__.__kwdefaults__, "replay_share", 0.0)


def beside(folder: Path, **changes: Any) -> League:
    """A league of a bot in that folder and two samples."""
    folder.mkdir(exist_ok=True)
    (folder / "lowest.py").write_text(
        "import seatwise\nclass Lowest(seatwise.Bot):\n def choose(self, view): return min(view.legal_cards)"
    )
    league = local_league("random", "greedy", "random", "greedy", **changes)
    mine = Entrant("mine", "bots/mine/versions/1", f"{folder}/lowest.py:Lowest")
    return replace(league, entrants=(mine, *league.entrants[1:]))


def play(league: League, results: Path, seed: str = "7", **options: Any) -> season.SeasonRun:
    """Play a league, or a part of it, with one worker."""
    where = season.LeagueServer(work=UnitOptions(jobs=1, **options), seed=seed)
    return asyncio.run(season.play_league(league, results, where, silent()))


def published(results: Path) -> list[bytes]:
    """What is published, but the records, which have the times of moves."""
    publish_season(results)
    return [(results / name).read_bytes() for name in ("standings.json", "results.csv")]


@pytest.mark.usefixtures("unchecked")
def test_parts_of_a_season_are_merged_to_the_same_bytes_and_refused_where_they_do_not_fit(tmp_path):
    one, two, merged = beside(tmp_path / "one"), beside(tmp_path / "two"), tmp_path / "merged"
    parts = [tmp_path / f"part{number}.jsonl" for number in range(3)]
    assert play(one, tmp_path / "whole").is_over
    assert play(one, tmp_path / "none", units=range(4), out=parts[0]).matches == 4
    assert play(two, tmp_path / "none", units=range(4, 500), out=parts[1]).is_over
    play(one, tmp_path / "none", seed="8", units=range(1), out=parts[2])
    assert not (tmp_path / "none").exists()
    for merge, said in (
        (parts[:1], "units are missing: 4:"),
        ([*parts[:2], parts[0]], "unit 0 is in"),
        (parts, "another plan: other bots"),
    ):
        with pytest.raises(UsageError, match=said):
            play(one, merged, merge=merge)
    with pytest.raises(UsageError, match=r"deals\.key is of another --seed"):
        play(one, merged, seed="8", merge=parts[2:])
    with pytest.raises(UsageError, match=r"other settings \(.*rounds"):
        play(replace(one, rounds=9), merged, units=range(1), out=tmp_path / "part")
    assert play(two, merged, units=range(1), out=tmp_path / "part").is_over
    assert play(one, merged, merge=[parts[1], parts[0]]).is_over
    assert published(merged) == published(tmp_path / "whole")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", ["swiss", "knockout"])
def test_a_season_whose_later_rounds_follow_from_results_is_merged_round_by_round(
    tmp_path, monkeypatch, kind, capsys
):
    league, merged = beside(tmp_path / "one", format=kind), tmp_path / "merged"
    play(league, tmp_path / "whole")
    due, rounds, is_over = 2, 0, False
    while not is_over:
        part = tmp_path / f"round{rounds}.jsonl"
        assert play(league, merged, units=range(due), out=part).matches == due
        ran = play(league, merged, merge=[part])
        due, rounds, is_over = ran.due, rounds + 1, ran.is_over
    assert rounds >= 2
    assert published(merged) == published(tmp_path / "whole")
    monkeypatch.setattr(record_units, "BATCH_LINES", 2)
    verify, parts = ["verify", f"{merged}/season.bundle"], [f"{tmp_path}/verdicts{number}" for number in "01"]
    for number, part in enumerate(parts):
        assert main([*verify, "--units", f"{number}:{number + 1}", "--out", part]) == 0
    assert main(verify) == 0
    alone = capsys.readouterr().out.splitlines()[-3:]
    assert main([*verify, "--merge", *parts]) == 0
    assert capsys.readouterr().out.splitlines() == alone


@pytest.mark.usefixtures("unchecked")
def test_what_has_no_parts_says_why(tmp_path):
    out = {"units": range(1), "out": tmp_path / "part.jsonl"}
    for league, seed, said in (
        (FORMATS["a test on rotated deals"], "7", "`seatwise compare` plays two bots in parts"),
        (
            replace(local_league(), tables="server"),
            "7",
            "are for local tables, and a server plays this league",
        ),
        (local_league(), "", "that has not begun need --seed"),
    ):
        with pytest.raises(UsageError, match=said):
            play(league, tmp_path / "out", seed, **out)


@pytest.mark.slow
def test_a_part_that_was_killed_goes_on(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import seatwise, time\nclass Slow(seatwise.Bot):\n"
        " def setup(self, offer): time.sleep(0.1)\n"
        " def choose(self, view): return min(view.legal_cards)"
    )
    (tmp_path / "a.toml").write_text(
        'name = "a"\ngame = "ugo"\nrounds = 40\ntables = "local"\noptions = { rounds = 1 }\n'
        '[[entrants]]\nbot = "greedy"\n[[entrants]]\nbot = "slow.py:Slow"\n'
    )
    command = [sys.executable, "-m", "seatwise", "league", "run", "a.toml", "--seed", "7", "--results"]
    part = ["none", "--jobs", "1", "--units", "0:40", "--out", "../part.jsonl"]
    (tmp_path / "work").mkdir()
    for name in ("a.toml", "slow.py"):
        (tmp_path / name).rename(tmp_path / "work" / name)
    place: Any = {"cwd": tmp_path / "work", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    out = tmp_path / "part.jsonl"
    killed = subprocess.Popen([*command, *part], **place)
    wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") > 4)
    killed.kill()
    killed.wait()
    assert 4 < out.read_bytes().count(b"\n") < 40
    for ends in (part, ["merged", "--merge", "../part.jsonl"], ["whole"]):
        assert subprocess.run([*command, *ends], check=False, **place).returncode == 0
    assert published(tmp_path / "work/merged") == published(tmp_path / "work/whole")


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.filterwarnings("ignore")  # an error in a thread of Ray would keep its answer for ever
@pytest.mark.usefixtures("unchecked")
def test_a_season_on_ray_has_the_same_bytes(tmp_path):
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'seatwise[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, logging_level="error")
    try:
        league = beside(tmp_path / "one", format="swiss")
        assert play(league, tmp_path / "whole").is_over
        assert play(league, tmp_path / "ray", workers=RayWorkers("ray")).is_over
        assert published(tmp_path / "ray") == published(tmp_path / "whole")
    finally:
        ray.shutdown()


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
