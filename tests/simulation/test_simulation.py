"""A few worlds in every test run; `make simulate SEEDS=...` plays more. See `simulation.world`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SEEDS = 4
AGAIN = 3
"""The seed that is played twice: once after others, once alone."""

LEAST = {
    "journal: taken_over": 20,
    "journal: frozen STORE": 1,
    "kill a referee": 1,
    "lose a reply of Redis": 1,
}
"""What must have happened in those worlds, or they prove nothing."""


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for it turns the clocks of its process."""
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", *args], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip


@cache
def played() -> subprocess.CompletedProcess[str]:
    """The first seeds."""
    return run("simulation", "--seeds", str(SEEDS), "--jobs", "1", "--digests")


def digests(told: str) -> dict[int, str]:
    """What each seed came to."""
    return {int(seed): digest for seed, digest in re.findall(r"seed (\d+): ([0-9a-f]{64})", told)}


def test_nothing_is_wrong_in_the_first_worlds() -> None:
    ended = played()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(digests(ended.stdout)) == SEEDS


def test_the_first_worlds_have_seen_bad_weather() -> None:
    counts = {what: int(count) for count, what in re.findall(r"^ *(\d+)  (.+)$", played().stdout, re.M)}
    assert {what for what, least in LEAST.items() if counts.get(what, 0) < least} == set()


def test_a_seed_is_the_same_world_whatever_was_played_before_it() -> None:
    again = run("simulation", "--first", str(AGAIN), "--seeds", "1", "--jobs", "1", "--digests")
    assert digests(again.stdout)[AGAIN] == digests(played().stdout)[AGAIN]


def test_all_that_is_ours_in_a_world_is_what_we_ship() -> None:
    ended = run("simulation.shipped")
    assert (ended.stdout, ended.returncode) == ("", 0), ended.stderr
