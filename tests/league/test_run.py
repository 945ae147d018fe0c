"""A league as an operator runs it: as a process with processes of its own, killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.process import processes_with

from seatwise.cli import main
from seatwise.client import Client

PATIENCE_S = 90.0
LEAGUE = """\
name = "small"
game = "ugo"
seats = 2
rounds = 24
options = { rounds = 1 }
[[entrants]]
bot = "random"
[[entrants]]
bot = "greedy"
[[entrants]]
bot = "greedy"
name = "twin"
"""
MATCHES = 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the league file is, and its results are to be."""
    (tmp_path / "league.toml").write_text(LEAGUE)
    return tmp_path


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    """`seatwise league run` as a process."""
    command = [sys.executable, "-m", "seatwise", "league", "run", "league.toml", "--results", "out", *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code and what it said."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def written(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of that kind in its season log."""
    diary = folder / "out" / "season.jsonl"
    lines = diary.read_text().splitlines(keepends=True) if diary.exists() else []
    whole = (json.loads(line) for line in lines if line.endswith("\n"))
    return [line for line in whole if line.get("kind") == kind]


def until(look: Callable[[], Any]) -> Any:
    """What `look` finds, looking again and again."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@contextmanager
def server(data: Path) -> Iterator[tuple[str, str]]:
    """A server on that folder; its address, and its admin's token."""
    command = [
        sys.executable,
        "-m",
        "seatwise",
        "serve",
        "--port",
        "0",
        "--data",
        str(data),
        "--no-house-bots",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout
        address = process.stdout.readline().partition("listens on ")[2].split(". ")[0]
        yield address, (data / "admin.token").read_text().strip()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def bot(address: str, token: str) -> Iterator[None]:
    """Somebody else's bot, at play."""
    command = [
        sys.executable,
        "-m",
        "seatwise",
        "bot",
        "random",
        "--address",
        address,
        "--no-queue",
        "--quiet",
    ]
    process = subprocess.Popen(command, env={**os.environ, "SEATWISE_TOKEN": token})
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def test_a_league_that_was_killed_goes_on_where_it_was_with_no_match_twice(folder):
    first = started(folder)
    until(lambda: len(written(folder, "result")) >= 2)
    assert processes_with(str(folder / "out" / "server"))
    first.kill()
    ended(first)
    until(lambda: not processes_with(str(folder)))  # what it had started ends with it
    before = written(folder, "result")
    assert len(before) < MATCHES
    code, out, err = ended(started(folder))
    assert code == 0, err
    results = written(folder, "result")
    assert results[: len(before)] == before
    assert max(Counter(result["table"] for result in results).values()) == 1
    assert len(results) == len({result["match"] for result in results}) == MATCHES
    assert "season.bundle" in out
    assert main(["verify", str(folder / "out" / "season.bundle")]) == 0
    with server(folder / "out" / "server") as where, Client(*where) as client:
        assert {match.name for match in client.list_matches(page_size=100)} == {
            each["match"] for each in results
        }
    assert not processes_with(str(folder))


@pytest.mark.slow
def test_ctrl_c_lets_open_matches_end_and_says_how_to_go_on(folder):
    process = started(folder)
    until(lambda: written(folder, "result"))
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    if len(written(folder, "result")) < MATCHES:
        assert code == 130
        assert "run the same command again to continue" in err
    assert not written(folder, "void")
    assert (folder / "out" / "report.html").exists()
    assert not processes_with(str(folder))


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once_and_nothing_is_lost(folder):
    (folder / "league.toml").write_text(LEAGUE.replace("rounds = 24", "rounds = 800"))
    process = started(folder)
    until(lambda: written(folder, "result"))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert code == 130
    assert "Traceback" not in err
    assert not processes_with(str(folder))
    assert started_again_goes_on(folder)


def started_again_goes_on(folder: Path) -> bool:
    """Whether a second run plays more than the first."""
    before = len(written(folder, "result"))
    process = started(folder)
    until(lambda: len(written(folder, "result")) > before)
    process.kill()
    ended(process)
    until(lambda: not processes_with(str(folder)))
    return True


@pytest.mark.slow
def test_a_server_of_its_own_that_dies_is_started_again_and_its_matches_go_on(folder):
    process = started(folder)
    until(lambda: written(folder, "result"))
    pids = processes_with(str(folder / "out" / "server"))
    assert pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    code, _, err = ended(process)
    assert code == 0, err
    results = written(folder, "result")
    assert len(results) == len({result["match"] for result in results}) == MATCHES
    assert {ending for result in results for ending in result["endings"]} == {"COMPLETED"}
    assert main(["verify", str(folder / "out" / "season.bundle")]) == 0


def test_a_folder_with_another_league_is_left_alone(folder):
    (folder / "out").mkdir()
    (folder / "out" / "season.jsonl").write_text(
        '{"format": "seatwise.league/1", "league": "leagues/b", "settings": {"name": "b"}}\n'
    )
    before = (folder / "out" / "season.jsonl").read_bytes()
    code, _, err = ended(started(folder))
    assert code == 2
    assert "out holds a league with other settings (name" in err
    assert (folder / "out" / "season.jsonl").read_bytes() == before


def test_a_bot_that_cannot_be_imported_is_named_before_anything_is_played(folder, capsys):
    (folder / "broken.py").write_text("class Mine:\n    pass\n\nraise RuntimeError('no model')\n")
    with (folder / "league.toml").open("a") as file:
        file.write('[[entrants]]\nbot = "broken.py:Mine"\n')
    assert main(["league", "run", str(folder / "league.toml"), "--results", str(folder / "out")]) == 2
    err = capsys.readouterr().err
    assert "broken.py cannot be imported" in err
    assert "no model" in err
    assert err.endswith("To go on without this bot: the same command with --without mine\n")
    assert not (folder / "out" / "season.jsonl").exists()


@pytest.mark.slow
def test_a_season_goes_on_without_a_bot_that_can_no_longer_be_imported(folder):
    (folder / "mine.py").write_text("from seatwise.samples import sample\nMine = sample('greedy')\n")
    with (folder / "league.toml").open("a") as file:
        file.write('[[entrants]]\nbot = "mine.py:Mine"\nname = "mine"\n')
    run = started(folder)
    until(lambda: written(folder, "result"))
    run.send_signal(signal.SIGINT)
    assert ended(run)[0] == 130
    (folder / "mine.py").write_text("Mine = 1 / 0\n")
    assert ended(started(folder))[0] == 2
    code, out, err = ended(started(folder, "--without", "mine"))
    assert code == 0, err
    assert "mine" in out
    (told,) = re.findall(r"^\d+ .* matches .*$", err.rpartition("a second")[2], re.MULTILINE)
    assert re.match(
        r"\d+ of \d+ matches are over, \d+ of them in this run, in [\d.]+ s \([\d.]+ matches/s, \d+ moves/s\)$",
        told,
    )
    assert [line["player"] for line in written(folder, "given_up")] == ["bots/mine/versions/1"]


OTHERS = """\
name = "guests"
game = "ugo"
seats = 2
rounds = 4
options = { rounds = 1 }
[[entrants]]
bot = "greedy"
[[entrants]]
registered = "bots/ben/versions/3"
"""


@pytest.mark.slow
def test_a_league_on_a_running_server_takes_the_bots_that_others_run(folder, capsys):
    (folder / "league.toml").write_text(OTHERS)
    with server(folder / "data") as (address, token), Client(address, token) as client:
        where = ("--address", address, "--token", token)
        assert (
            main(["league", "run", str(folder / "league.toml"), "--results", str(folder / "out"), *where])
            == 2
        )
        assert "bots/ben/versions/3 is not registered on this server" in capsys.readouterr().err
        with bot(address, client.register_bot("ben", "3").token):
            code, _, err = ended(started(folder, *where))
        assert code == 0, err
        assert [len(written(folder, kind)) for kind in ("result", "record", "void")] == [4, 4, 0]
        [line] = [json.loads(line) for line in (folder / "out" / "season.jsonl").read_text().splitlines()[:1]]
        assert client.get_match(written(folder, "result")[0]["match"]).competition == line["league"]
    assert main(["verify", str(folder / "out" / "season.bundle")]) == 0
    assert not (folder / "out" / "server").exists()


ROTATION = """\
name = "fresh"
game = "ugo"
seats = 2
rounds = 2
deals = "rotation"
options = { rounds = 1 }
[[entrants]]
bot = "counter.py:Counter"
[[entrants]]
bot = "greedy"
"""
COUNTER = """\
import os
from pathlib import Path

from seatwise import Bot


class Counter(Bot):
    def __init__(self):
        with Path(__file__).with_name("seen").open("a") as file:
            file.write(f"{os.getpid()}\\n")

    def choose(self, view):
        return view.legal_cards[0]
"""


AB_TEST = """\
name = "ab"
game = "ugo"
format = "ab-test"
seats = {seats}
rounds = 1
trust = true
options = {{ rounds = 1 }}
time = {{ bank_ms = 0, free_ms = {{ card = 9000, arrange = 9000 }} }}
[[entrants]]
bot = "greedy"
[[entrants]]
bot = "random"
"""


@pytest.mark.parametrize("seats", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_against_b_shares_the_seats_of_larger_tables(folder, seats, capsys):
    (folder / "league.toml").write_text(AB_TEST.format(seats=seats))
    assert main(["league", "run", str(folder / "league.toml"), "--results", str(folder / "out")]) == 0
    assert "After 1 units there are too few different deals to decide." in capsys.readouterr().out
    results = written(folder, "result")
    sat = Counter((seat, bot) for result in results for seat, bot in enumerate(result["bots"]))
    assert len(sat) == 2 * seats
    assert len(set(sat.values())) == 1, "each at each seat equally often"
    assert {ending for result in results for ending in result["endings"]} == {"COMPLETED"}
    assert len({result["deal"] for result in results}) == 1
    records = [json.loads(line["record"]) for line in written(folder, "record")]
    assert {record["time_control"]["bank_ms"] for record in records} == {0}
    rows = json.loads((folder / "out" / "standings.json").read_text())["rows"]
    assert [row["matches"] for row in rows] == [len(results)] * 2
    assert main(["verify", str(folder / "out" / "season.bundle")]) == 0


@pytest.mark.slow
def test_with_rotating_deals_every_match_is_played_by_a_process_of_its_own(folder):
    (folder / "league.toml").write_text(ROTATION)
    (folder / "counter.py").write_text(COUNTER)
    code, _, err = ended(started(folder))
    assert code == 0, err
    results = written(folder, "result")
    assert len(results) == 4
    assert sorted(Counter(result["deal"] for result in results).values()) == [2, 2]
    processes = (folder / "seen").read_text().split()
    assert len(processes) == len(set(processes)) == len(results)
    assert "each bot starts a new process for each match" in (folder / "out" / "report.html").read_text()
    assert main(["verify", str(folder / "out" / "season.bundle")]) == 0
