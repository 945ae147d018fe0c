"""Offline work in units: lost workers, units that end them, wrong answers, files, and the same bytes from each make."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from seatwise.cli import main
from seatwise.errors import UsageError
from seatwise.local.comparison import Comparison, StopRule, compare_versions
from seatwise.local.deal_block import BlockPlan
from seatwise.units import (
    LocalWorkers,
    PartFiles,
    RayWorkers,
    UnitAnswer,
    UnitFile,
    UnitPlan,
    UnitRun,
    UnitWorkers,
    make_workers,
)

DEALS = 8
RULE = StopRule(most_matches=2 * DEALS)
BOT = """
import os, pathlib, time
import seatwise
HERE = pathlib.Path(__file__).parent
class Mine(seatwise.Bot):
    def setup(self, offer):
        {setup}
    def choose(self, view):
        return {choose}
"""
DRAWS = "self.chance.choice(sorted(view.legal_cards))"


@pytest.fixture(autouse=True)
def no_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that say nothing of replays make none: at random they would play a few matches more."""
    monkeypatch.setitem(UnitRun.__init__.__kwdefaults__, "replay_share", 0.0)


def write_bot(folder: Path, setup: str = "pass", choose: str = DRAWS) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(BOT.format(setup=setup, choose=choose))
    return f"{folder}/mine.py:Mine"


def plan_of(*bots: str) -> BlockPlan:
    return BlockPlan("ugo", bots, tuple(map(str, range(len(bots)))), {"rounds": 1}, "7")


def compare(plan: BlockPlan, workers: UnitWorkers, file: UnitFile | None = None) -> Comparison:
    return compare_versions(plan, RULE, workers, lambda _: None, pytest.fail, file)


def run_units(
    plan: UnitPlan, workers: UnitWorkers, count: int = DEALS, *, replays: float = 0.0
) -> tuple[list[UnitAnswer], UnitRun]:
    async def collect() -> list[UnitAnswer]:
        async with run:
            return [answer async for answer in run.read_units((number, None) for number in range(count))]

    run = UnitRun(plan, workers, replay_share=replays)
    return asyncio.run(collect()), run


class ChangedWorkers:
    """Workers, something of which a test changes."""

    def __init__(self, change: Callable[[Any, UnitAnswer], UnitAnswer], inner: UnitWorkers) -> None:
        self.count = inner.count
        self._change = change
        self._inner = inner

    async def start_worker(self, plan: UnitPlan, place: int) -> Any:
        worker: Any = await self._inner.start_worker(plan, place)
        honest = worker.run_unit

        async def run_unit(number: int, told: Any) -> UnitAnswer:
            return self._change(worker, await honest(number, told))

        worker.run_unit = run_unit
        return worker


def lie(worker: Any, answer: UnitAnswer) -> UnitAnswer:
    forged = answer.result | {"difference": 99.0}
    return replace(answer, result=forged) if worker.name.endswith(" 2") else answer


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    plan = plan_of(write_bot(tmp_path), "random")
    assert len({compare(plan, LocalWorkers(count)).results for count in (1, 2, 4)}) == 1


def test_a_worker_that_is_killed_costs_time_only(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one(worker: Any, answer: UnitAnswer) -> UnitAnswer:
        if answer.number in (1, 3) and answer.number not in killed:
            killed.append(answer.number)
            os.kill(worker._process.pid, signal.SIGKILL)
        return answer

    plan = plan_of(write_bot(tmp_path), "random").to_unit_plan()
    right, _ = run_units(plan, LocalWorkers(1))
    found, _ = run_units(plan, ChangedWorkers(kill_one, LocalWorkers(2)))
    assert killed == [1, 3]
    assert [each.result for each in found] == [each.result for each in right]


def test_a_unit_that_ends_three_workers_is_named_and_the_run_ends_in_order(tmp_path: Path) -> None:
    count = "starts = len(list(HERE.glob('start*'))); (HERE / f'start{starts}').touch(); starts >= 4 and os._exit(3)"
    found = compare(plan_of(write_bot(tmp_path, count), "random"), LocalWorkers(1))
    assert found.broken_deal == 2
    assert found.matches == 4
    assert "deal 2 has ended three workers: does a bot end its process" in found.why
    assert len(list(tmp_path.glob("start*"))) == 4 + 3


def test_a_worker_that_lies_is_named_by_replay(tmp_path: Path) -> None:
    plan = plan_of(write_bot(tmp_path), "random").to_unit_plan()
    with pytest.raises(UsageError, match=r"process 2 has answered unit \d wrongly: .* 4 times the same"):
        run_units(plan, ChangedWorkers(lie, LocalWorkers(2)), replays=1.0)
    _, run = run_units(plan, LocalWorkers(2), 3, replays=1.0)
    assert run.is_repeatable


def test_where_a_unit_gives_two_results_nobody_is_named(tmp_path: Path) -> None:
    bot = write_bot(tmp_path, choose="sorted(view.legal_cards)[os.urandom(1)[0] % len(view.legal_cards)]")
    _, run = run_units(plan_of(bot, "random").to_unit_plan(), LocalWorkers(1), 3, replays=1.0)
    assert not run.is_repeatable


COMPARE = ["compare", "--seed", "7", "--option", "rounds=1", "--matches", "24", "--json", "--jobs"]


def test_a_coordinator_that_was_killed_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bot, out = (
        write_bot(tmp_path / "bot", "time.sleep(0.05); (HERE.parent / 'matches').open('a').write('x')"),
        tmp_path / "run.jsonl",
    )
    command = [*COMPARE, "1", bot, "random", "--out", str(out)]
    killed = subprocess.Popen([sys.executable, "-m", "seatwise", *command], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    done = out.read_bytes().count(b"\n") - 1
    assert done < 12
    with out.open("ab") as file:
        file.write(b'{"unit": 99, "res')  # half a line
    before = (tmp_path / "matches").stat().st_size
    assert main(command) == 0
    resumed = json.loads(capfd.readouterr().out)
    assert (tmp_path / "matches").stat().st_size - before <= 2 * (12 - done + 1)
    assert main([*COMPARE, "2", bot, "random"]) == 0
    assert json.loads(capfd.readouterr().out)["results"] == resumed["results"]


@pytest.fixture
def parts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[str, str], Path]:
    """Writes a part of a comparison with a bot in a folder of its own."""

    def write(folder: str, units: str, choose: str = DRAWS) -> Path:
        out = tmp_path / f"{folder}-{units.replace(':', '-')}.jsonl"
        bot = write_bot(tmp_path / folder, choose=choose)
        assert main([*COMPARE, "1", bot, "random", "--units", units, "--out", str(out)]) == 0
        capfd.readouterr()
        return out

    return write


def test_parts_are_merged_in_any_order_and_refused_where_they_do_not_fit(
    tmp_path: Path, parts: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = parts("one", "0:5"), parts("two", "5:12")
    other = parts("three", "5:12", "min(view.legal_cards)")
    bot = f"{tmp_path}/one/mine.py:Mine"
    found = []
    for files in permutations([first, second]):
        assert main([*COMPARE, "1", bot, "random", "--merge", *map(str, files)]) == 0
        found.append(json.loads(capfd.readouterr().out)["results"])
    assert main([*COMPARE, "2", bot, "random"]) == 0
    assert {json.loads(capfd.readouterr().out)["results"]} == set(found)
    short = tmp_path / "short.jsonl"
    short.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:-1]))
    for files, said in (
        ([first, other], "it was made of another plan"),
        ([first, second, first], "unit 0 is in"),
        ([second], "units are missing: 0:5"),
        ([short, second], "units are missing: 4:5"),
        ([tmp_path / "one/mine.py"], "these are no answers"),
    ):
        assert main([*COMPARE, "1", bot, "random", "--merge", *map(str, files)]) == 2
        assert said in capfd.readouterr().err
    assert main([*COMPARE, "1", bot, "random", "--out", str(other)]) == 2
    assert "another plan" in capfd.readouterr().err


def test_a_part_that_lies_is_named_by_its_file(tmp_path: Path, parts: Callable[..., Path]) -> None:
    part = parts("one", "0:2")
    head, *lines = map(json.loads, part.read_text().splitlines())
    lines[0]["result"]["difference"] += 1
    part.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    plan = replace(
        plan_of(f"{tmp_path}/one/mine.py:Mine", "random"), names=("old Mine", "new random")
    ).to_unit_plan()
    with pytest.raises(UsageError, match=rf"{part.name} has answered unit 0 wrongly"):
        run_units(plan, PartFiles([part], plan), 2, replays=1.0)


def test_records_are_verified_in_parts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import seatwise
    from seatwise.replay.record_units import BATCH_LINES

    records = tmp_path / "records.jsonl"
    seatwise.play(
        ["random", "random"], matches=BATCH_LINES + 2, seed=1, options={"rounds": 1}, records=records
    )
    records.write_bytes(records.read_bytes() + records.read_bytes().splitlines(keepends=True)[0])
    assert main(["verify", str(records)]) == 1
    whole = capfd.readouterr().out
    files = []
    for units in ("0:1", "1:2"):
        files.append(str(tmp_path / f"part{units[0]}.jsonl"))
        assert main(["verify", str(records), "--units", units, "--out", files[-1]]) == 0
    capfd.readouterr()
    assert main(["verify", str(records), "--merge", *files]) == 1
    assert capfd.readouterr().out == whole
    assert main(["verify", str(records), "--merge", files[0]]) == 2
    assert "units are missing: 1 and those after it" in capfd.readouterr().err


def test_a_plan_knows_its_bots_by_what_they_are_and_not_where(tmp_path: Path) -> None:
    here = plan_of(write_bot(tmp_path / "here"), "random").to_unit_plan()
    there = plan_of(write_bot(tmp_path / "there"), "random").to_unit_plan()
    assert here.digest == there.digest
    UnitFile(tmp_path / "here" / "part.jsonl", here).__exit__()
    assert here.digest == plan_of(write_bot(tmp_path / "here"), "random").to_unit_plan().digest
    (tmp_path / "there" / "weights.bin").write_bytes(b"1")
    assert here.digest != plan_of(write_bot(tmp_path / "there"), "random").to_unit_plan().digest


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--units", "0:5"], "--units needs --out"),
        (["--merge", "a.jsonl", "--out", "b.jsonl"], "--merge reads answers"),
        (["--out", "b.jsonl"], "need --seed"),
        (["--units", "5:5", "--out", "b"], "is not START:END"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "random", "greedy", *options]) == 2
    assert said in capsys.readouterr().err


# --- Ray ---


def test_without_ray_the_command_says_how_to_get_it() -> None:
    try:
        import ray  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(UsageError, match=r"pip install '.\[ray\]' in a clone"):
            make_workers("ray")


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.filterwarnings("ignore")  # an error in a thread of Ray would keep its answer for ever
def test_ray_gives_the_same_bytes_also_where_actors_are_killed_and_lie(tmp_path: Path) -> None:
    """Two actors of a cluster on this machine."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'seatwise[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, logging_level="error")
    try:
        plan = plan_of(
            write_bot(tmp_path / "old"), write_bot(tmp_path / "new", choose="min(view.legal_cards)")
        )
        units = plan.to_unit_plan()
        right, _ = run_units(units, LocalWorkers(1))
        found, run = run_units(units, RayWorkers("ray"), replays=0.5)
        assert run.is_repeatable
        assert [each.result for each in found] == [each.result for each in right]

        async def kill_one() -> list[UnitAnswer]:
            async with UnitRun(units, RayWorkers("ray"), replay_share=0.0) as run:
                answers = []
                async for answer in run.read_units((number, None) for number in range(40)):
                    answers.append(answer)
                    if answer.number == 1:
                        worker: Any = run._workers[0]
                        ray.kill(worker._actor)
                return answers

        assert [each.result for each in asyncio.run(kill_one())][:DEALS] == [each.result for each in right]
        with pytest.raises(UsageError, match=r"actor 2 has answered unit . wrongly"):
            run_units(units, ChangedWorkers(lie, RayWorkers("ray")), replays=1.0)
        ends = write_bot(tmp_path / "ends", "os._exit(3)")
        assert compare(plan_of(ends, "random"), RayWorkers("ray")).broken_deal == 0
    finally:
        ray.shutdown()
