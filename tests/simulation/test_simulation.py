"""A few worlds in every test run; `python -m simulation --seeds 200` plays more. See `simulation.world`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from matches.effort import FULL

TESTS = Path(__file__).resolve().parents[1]
SEEDS = tuple(range(31)) if FULL else (2,)
"""Of five kinds in turn: here one in which whatever may happen happens, and one of queues; `make nightly` plays all."""
AGAIN = 1
"""The seed that is played twice: in one process after the one before it, and alone."""
LONGEST_S = 280.0
"""For a machine that is busy with other things; on a quiet one a world takes five seconds."""

LEAST = {
    "journal: taken_over": 10,
    "journal: frozen STORE": 1,
    "kill on the path of an append": 1,
    "a lobby is struck when a match is pushed": 3,
    "a no-show counts": 1,
    "an owner plays as many matches at once as it may": 10,
}
"""What must have happened in those worlds, or they prove nothing."""

pytestmark = [pytest.mark.timeout(LONGEST_S + 10), pytest.mark.sampled]


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for it turns the clocks of its process."""
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", *args], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=LONGEST_S,
    )  # fmt: skip


@cache
def played(first: int, count: int = 1) -> subprocess.CompletedProcess[str]:
    """These seeds, one after the other."""
    return run("simulation", "--first", str(first), "--seeds", str(count), "--jobs", "1", "--digests")


def pair(seed: int) -> subprocess.CompletedProcess[str]:
    """The seeds go two by two; the last may be alone."""
    first = seed - seed % 2
    return played(first, len({first, first + 1} & {*SEEDS}))


def digests(told: str) -> dict[int, str]:
    """What each seed came to."""
    return {int(seed): digest for seed, digest in re.findall(r"seed (\d+): ([0-9a-f]{64})", told)}


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_wrong_in_the_first_worlds(seed: int) -> None:
    ended = pair(seed)
    assert f"seed {seed} (" not in ended.stdout, ended.stdout
    assert seed in digests(ended.stdout), ended.stdout + ended.stderr


@pytest.mark.slow
def test_the_first_worlds_have_seen_bad_weather() -> None:
    counts: Counter[str] = Counter()
    for first in SEEDS[::2]:
        for count, what in re.findall(r"^ *(\d+)  (.+)$", pair(first).stdout, re.M):
            counts[what] += int(count)
    assert {what for what, least in LEAST.items() if counts[what] < least} == set()


@pytest.mark.slow
def test_a_seed_is_the_same_world_whatever_was_played_before_it() -> None:
    assert digests(played(AGAIN).stdout)[AGAIN] == digests(pair(AGAIN).stdout)[AGAIN]


def test_all_that_is_ours_in_a_world_is_what_we_ship() -> None:
    ended = run("simulation.shipped")
    assert (ended.stdout, ended.returncode) == ("", 0), ended.stderr
