"""The loop on which the tests of tables stand."""

from __future__ import annotations

import asyncio
import time

import pytest
from doubles import virtual
from doubles.virtual import Deadlock, in_virtual_time, running, settle


@in_virtual_time
async def test_a_day_takes_no_time() -> None:
    began, real = running().time(), time.monotonic()
    await asyncio.sleep(86_400)
    assert running().time() == began + 86_400
    assert time.monotonic() - real < 5


@in_virtual_time
async def test_timers_ring_in_order_each_at_its_time() -> None:
    rung: list[tuple[str, float]] = []
    loop, began = running(), running().time()
    for name, after in (("late", 0.3), ("early", 0.1), ("cancelled", 0.2)):
        timer = loop.call_later(after, lambda name=name: rung.append((name, loop.time() - began)))
        if name == "cancelled":
            timer.cancel()
    await asyncio.sleep(1)
    assert rung == [("early", pytest.approx(0.1)), ("late", pytest.approx(0.3))]


@in_virtual_time
async def test_standing_still_makes_timers_late() -> None:
    rung: list[float] = []
    loop, began = running(), running().time()
    loop.call_later(0.1, lambda: rung.append(loop.time() - began))
    loop.stand_still(0.5)
    await settle()
    assert rung == [pytest.approx(0.5)]


@in_virtual_time
async def test_time_does_not_move_while_there_is_something_to_do() -> None:
    began = running().time()
    running().call_later(0.1, lambda: None)
    await settle()
    assert running().time() == began


def test_a_task_that_nothing_will_wake_up_is_named() -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        virtual.run(forever())


def test_the_same_program_runs_the_same_way() -> None:
    async def program() -> list[int]:
        seen: list[int] = []

        async def work(number: int) -> None:
            for step in range(5):
                await asyncio.sleep(((number * 7 + step * 3) % 5) / 10)
                seen.append(number)

        await asyncio.gather(*map(work, range(20)))
        return seen

    assert virtual.run(program()) == virtual.run(program())


def test_a_test_in_virtual_time_may_have_arguments_and_answers() -> None:
    @in_virtual_time
    async def doubled(number: int) -> int:
        await asyncio.sleep(1)
        return 2 * number

    assert doubled(21) == 42
