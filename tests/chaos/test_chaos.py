"""A short run of `make chaos`: a referee and the Redis are killed, a bot is stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from harness import processes_with, until

from chaos.chaos import Results, Size, run
from chaos.harm import EVERY_S, REDIS_EVERY_S, schedule
from chaos.history import History, read
from chaos.world import TESTS

SIZE = Size(referees=2, fronts=1, bots=4, builders=0)
SEED = 25
"""With this one a referee is killed first, then the Redis; then a bot is stopped."""


async def test_after_kills_nothing_is_lost_doubled_or_wrongly_flagged(tmp_path: Path) -> None:
    results, wrong = await run(tmp_path, seconds=11, seed=SEED, size=SIZE)
    assert wrong == []
    assert (results.lost, results.doubled, results.wrong_flags) == (0, 0, 0)
    assert (results.kills, results.takeovers >= 1, results.checked >= 100) == (2, True, True)
    assert results.matches >= 3
    assert not processes_with(str(tmp_path))


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


def test_results_have_the_keys_that_were_asked_for() -> None:
    results = Results(1, 2, 3, 4.5, 6, 7, 8, 9)
    keys = ["matches", "kills", "takeovers", "longest_gap_s", "checked", "lost", "doubled", "wrong_flags"]
    assert list(json.loads(json.dumps(results.as_json))) == keys


# The schedule


@pytest.mark.parametrize("seed", range(20))
def test_45_seconds_have_five_kills_and_a_referee_comes_first(seed: int) -> None:
    harms = schedule(seed, 45, Size().by_role)
    assert (harms[0].role, harms[0].way) == ("referee", "kill")
    assert sum(harm.way == "kill" for harm in harms) >= 5
    gaps = [later.at_s - harm.at_s for harm, later in pairwise(harms)]
    assert all(EVERY_S[0] <= gap <= EVERY_S[1] for gap in gaps)


@pytest.mark.parametrize("seed", range(20))
def test_redis_is_given_time(seed: int) -> None:
    at_s = [harm.at_s for harm in schedule(seed, 300, Size().by_role) if harm.role == "redis"]
    assert all(later - each >= REDIS_EVERY_S for each, later in pairwise(at_s))


def test_the_same_seed_is_the_same_schedule() -> None:
    many = Size().by_role
    assert schedule(7, 60, many) == schedule(7, 60, many) != schedule(8, 60, many)


# What is written down


def test_a_line_that_a_kill_has_torn_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "history"
    History(path).note([{"what": "born"}, {"what": "said"}])
    with path.open("ab") as torn:
        torn.write(b'{"what": "acc')
    History(path).note([{"what": "born"}])
    assert [line["what"] for line in read(path)] == ["born", "said", "born"]
