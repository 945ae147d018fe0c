"""Real servers are harmed at every step that changes something. The orders for that are claimed once, whoever is quicker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from harness import processes_with
from simulation.paths import Failpoint

from chaos.every_step import SIZE, run_steps
from chaos.steps import REST_S, STEP_HARMS, Orders, StepHarm, Striker

KILLED, ASLEEP = STEP_HARMS[1], STEP_HARMS[2]
PATH = ("play.referee.serve",)
LONGEST_S = 900.0
"""For one harm. All steps that this world comes by have been harmed sooner, but for those of sleepers, which take 10 s each."""
MUST_BE_MET = {
    "append", "claim", "job_push", "job_done", "match_create", "offer_put", "queue_take", "result_append (ladders)",
    "result_append (leagues)", "retire", "seat_release", "seat_reserve",
}  # fmt: skip
"""Steps of seating, play, delivery and results."""


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def step(name: str) -> Failpoint:
    return Failpoint("referee", (*PATH, name))


def test_an_order_is_claimed_once(orders: Orders) -> None:
    orders.give(KILLED, 1)
    assert Orders(orders.folder).next == (KILLED, 1)
    assert orders.claim(KILLED, 1, step("append"))
    assert not orders.is_given
    assert not orders.claim(KILLED, 1, step("retire"))
    orders.give(KILLED, 2)
    assert orders.claim(KILLED, 2, step("retire")), "the first claim came to nothing"


def test_a_step_is_harmed_once_in_each_way(orders: Orders) -> None:
    for number, (harm, is_new) in enumerate([(KILLED, True), (KILLED, False), (ASLEEP, True)]):
        orders.give(harm, number)
        assert orders.claim(harm, number, step("append")) == is_new


def test_who_does_the_harm_says_so_before(orders: Orders) -> None:
    orders.give(KILLED, 1)
    assert orders.told(1) is None
    orders.tell(1, step("append"))
    assert orders.told(1) == (os.getpid(), "referee: play.referee.serve > append")


@pytest.mark.parametrize(
    ("harm", "name", "is_after", "is_done"),
    [
        (STEP_HARMS[0], "append", False, True),
        (STEP_HARMS[0], "append", True, False),
        (STEP_HARMS[1], "append", False, False),
        (STEP_HARMS[1], "message", True, True),
        (STEP_HARMS[1], "HGETALL", True, False),
        (STEP_HARMS[1], "HGETALL (ladders)", True, False),
        (STEP_HARMS[3], "append", False, True),
        (STEP_HARMS[4], "message", True, False),
    ],
)
def test_harms_are_done_before_or_after_steps_that_change_something(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, harm: StepHarm, name: str, is_after: bool, is_done: bool
) -> None:
    done: list[tuple[int, signal.Signals]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: done.append((pid, number)))
    redis_pid = orders.folder / "redis.pid"
    redis_pid.write_text("77 started")
    orders.give(harm, 1)
    Striker(orders, "referee", redis_pid).meet(PATH, name, is_after=is_after)
    victim = 77 if harm.is_at_redis else os.getpid()
    assert done == ([(victim, harm.signal)] if is_done else [])


def test_who_has_slept_is_not_put_to_sleep_again_at_once(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[signal.Signals] = []
    now_s = 1000.0
    monkeypatch.setattr(os, "kill", lambda _, number: done.append(number))
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    striker = Striker(orders, "referee", orders.folder / "redis.pid")
    for number, (name, later_s) in enumerate([("append", 0), ("retire", REST_S - 1), ("retire", 2)], start=1):
        now_s += later_s
        orders.give(ASLEEP, number)
        striker.meet(PATH, name, is_after=True)
    assert done == [signal.SIGSTOP] * 2
    assert orders.told(2) is None
    assert orders.told(3) is not None


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S + 600)
@pytest.mark.parametrize("harm", STEP_HARMS, ids=lambda harm: harm.name)
async def test_every_harm_at_every_step_of_real_servers_comes_to_the_same_end(
    tmp_path: Path, harm: StepHarm
) -> None:
    results, wrong, steps = await run_steps(tmp_path, LONGEST_S, harm, SIZE)
    assert wrong == []
    assert results.checked >= 100
    met = {step.rpartition(" > ")[2] for step in steps}
    assert harm is ASLEEP or met >= MUST_BE_MET, MUST_BE_MET - met
    assert not processes_with(str(tmp_path))
