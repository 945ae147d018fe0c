"""Processes are harmed at every step that changes something. See `failpoints`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
LONGEST_S = 600.0
"""For a machine that is busy with other things; on a quiet one a story takes half a minute."""
LEAST_HARMS = 20
"""A world has more; with fewer it has not come by what it is to come by."""
MUST_BE_MET = (
    "seat_reserve", "match_create", "job_push", "offer_put", "seat_taken", "claim", "append", "retire", "result_append", "set_end",
    "seat_release", "job_done", "ladder_publish", "queue_take", "queue_take_these", "attend_keep", "message",
    "owner_match_open", "owner_match_close", "owner_room",
)  # fmt: skip
"""Steps of seating, play, delivery, results, deal sets and ladders."""


def run(*args: str, longest_s: float = LONGEST_S) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for it turns the clocks of its process."""
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "simulation.failpoints", *args], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=longest_s,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S + 10)
def test_a_process_may_be_killed_behind_the_record_of_a_match_of_any_kind_and_while_a_log_is_read() -> None:
    points = ("--point", "> retire", "--point", "list_league_results")
    ended = run("--story", "plain", *points, "--harm", "killed after", "--jobs", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"(\d+) harms, 0 worlds wrong", ended.stdout)
    assert found, ended.stdout
    assert int(found[1]) >= 4  # three kinds of matches, and the log


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S + 10)
def test_an_owner_has_room_again_wherever_a_process_is_killed_that_counts_its_matches() -> None:
    points = ("--point", "> owner_match_", "--point", "conclude_match > seat_release")
    ended = run("--story", "owners are at their limits", *points, "--harm", "killed after", "--jobs", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"[1-9]\d* harms, 0 worlds wrong", ended.stdout), ended.stdout


@pytest.mark.slow
def test_all_that_is_to_be_harmed_is_met() -> None:
    ended = run("--story", "plain", "--point", "nothing has this name", "--list")
    met = {line.rpartition(" > ")[2].partition(" ")[0] for line in ended.stdout.splitlines() if " > " in line}
    assert set(MUST_BE_MET) - met == set(), ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S + 10)
@pytest.mark.parametrize("harm", ["killed after", "asleep after", "Redis lost before", "Redis lost after"])
@pytest.mark.parametrize(
    "story",
    ["plain", "a referee dies", "a lobby dies", "a bot never sits down", "owners are at their limits", "an owner is erased"],
)  # fmt: skip
def test_a_harm_at_any_step_that_changes_something_comes_to_the_same_end(story: str, harm: str) -> None:
    """Half of the harms, in each story others: all of them take an hour and a half (`python -m simulation.failpoints`)."""
    ended = run("--story", story, "--writes", "--harm", harm, "--jobs", "1", "--half")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"(\d+) harms, 0 worlds wrong", ended.stdout)
    assert found, ended.stdout
    assert int(found[1]) >= LEAST_HARMS
