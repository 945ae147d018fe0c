"""`seatwise compare`: the same deals for both versions, in worker processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatwise.child_process import ChildProcess
from seatwise.cli import main
from seatwise.local.comparison import StopRule, compare_versions
from seatwise.local.deal_block import BlockPlan, BlockPlayer
from seatwise.local.matches import LocalWaiter
from seatwise.units import LocalWorkers

ROUND = {"rounds": 1}


def plan_of(*bots: str, seed: str = "1", game: str = "ugo") -> BlockPlan:
    options = ROUND if game == "ugo" else {}
    return BlockPlan(game, bots, tuple(f"{bot} {place}" for place, bot in enumerate(bots)), options, seed)


def play_blocks(plan: BlockPlan, number: int = 3) -> list[float | None]:
    with LocalWaiter() as wait:
        player = BlockPlayer(plan, lambda failure: pytest.fail(str(failure)), wait)
        return [player.play_block(each).difference for each in range(number)]


def test_without_opponents_the_versions_play_each_deal_in_both_orders() -> None:
    assert plan_of("random", "greedy").tables == ((0, 1), (1, 0))


def test_with_opponents_each_version_takes_each_seat_beside_them_once() -> None:
    plan = plan_of("random", "greedy", "counting", "random")
    assert plan.tables == ((0, 2, 3), (1, 2, 3), (2, 0, 3), (2, 1, 3), (2, 3, 0), (2, 3, 1))


@pytest.mark.parametrize("against", [(), ("greedy",), ("greedy", "random")])
@pytest.mark.parametrize("sample", ["greedy", "random"])
def test_a_version_is_level_with_itself_on_every_deal_whatever_it_draws(
    sample: str, against: tuple[str, ...]
) -> None:
    """Same deal, same numbers to draw: with opponents the matches are the same, and without them their mirror images."""
    assert play_blocks(plan_of(sample, sample, *against)) == [0.0, 0.0, 0.0]


def test_two_versions_in_ubongo() -> None:
    assert all(each is not None for each in play_blocks(plan_of("random", "solver", game="ubongo"), 1))


def test_the_same_seed_gives_the_same_comparison_however_many_processes() -> None:
    rule = StopRule(most_matches=24)
    found = [
        compare_versions(
            plan_of("random", "greedy", seed=seed), rule, LocalWorkers(jobs), lambda _: None, pytest.fail
        )
        for seed, jobs in (("a", 1), ("a", 2), ("b", 2))
    ]
    means = [each.mean for each in found]
    assert means[0] == means[1] != means[2]
    assert [each.matches for each in found] == [24, 24, 24]


FOUND = """
import seatwise
from helper import SHIFT
class Mine(seatwise.Bot):
    def choose(self, view):
        print("a bot may print")
        cards = sorted(view.legal_cards)
        if SHIFT == 2:
            raise ValueError("it fails")
        return cards[SHIFT]
"""


def write_version(folder: Path, shift: int) -> str:
    folder.mkdir()
    (folder / "mine.py").write_text(FOUND)
    (folder / "helper.py").write_text(f"SHIFT = {shift}\n")
    return f"{folder / 'mine.py'}:Mine"


def test_two_versions_have_modules_of_their_own_and_what_they_print_spoils_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old, new = write_version(tmp_path / "old", -1), write_version(tmp_path / "new", 0)
    command = [
        "compare",
        old,
        new,
        "--matches",
        "8",
        "--option",
        "rounds=1",
        "--json",
        "--seed",
        "1",
        "--jobs",
        "1",
    ]
    assert main(command) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["matches"] == 8
    assert found["mean"] != 0
    assert main(["compare", old, old, *command[3:]]) == 0
    assert json.loads(capfd.readouterr().out)["mean"] == 0


def test_failures_are_shown_once_and_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = write_version(tmp_path / "bad", 2)
    assert main(["compare", "random", bad, "--matches", "8", "--option", "rounds=1", "--jobs", "2"]) == 0
    told = capfd.readouterr()
    assert told.err.count("ValueError: it fails") == 1
    assert "Failures: old 0, new" in told.out
    assert "It took 8 matches on 4 deals" in told.out
    assert "The same deals again: --seed " in told.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody", "greedy"], "no such sample"),
        (["random", "greedy", *["--against", "random"] * 4], "there may be three opponents"),
        (["random", "greedy", "--game", "chess"], "no such game"),
        (["random", "greedy", "--option", "rounds=0"], "option rounds"),
        (["random", "greedy", "--margin", "0"], "is not a number above 0"),
    ],
)
def test_mistakes_are_told_before_anything_is_played(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_no_worker_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ChildProcess] = []
    start = ChildProcess.start

    async def note_start(*arguments: Any, **options: Any) -> ChildProcess:
        started.append(await start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(ChildProcess, "start", note_start)
    rule = StopRule(most_matches=4)
    compare_versions(plan_of("random", "greedy"), rule, LocalWorkers(2), lambda _: None, pytest.fail)
    assert len(started) >= 2
    assert None not in [each.code for each in started]
