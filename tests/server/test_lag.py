"""Time in which the process stood still is noticed, once, and small delays are not."""

from __future__ import annotations

import asyncio

import pytest
from virtual import in_virtual_time, running

from seatwise_server.play.lag import BEAT_S, BOUND_S, Lag


def started() -> Lag:
    lag = Lag(running())
    lag.start()
    return lag


@in_virtual_time
async def test_a_loop_that_runs_has_no_stalls() -> None:
    lag = started()
    await asyncio.sleep(10)
    assert lag.notice(running().time()) == 0


@in_virtual_time
async def test_a_stall_is_noticed_before_any_timer_has_rung() -> None:
    lag = started()
    await asyncio.sleep(1)
    running().stand_still(0.7)
    assert lag.notice(running().time()) == pytest.approx(0.7, abs=BEAT_S)


@in_virtual_time
async def test_a_stall_is_counted_once() -> None:
    lag = started()
    running().stand_still(0.7)
    first = lag.notice(running().time())
    await asyncio.sleep(1)
    assert lag.notice(running().time()) == first == lag.stalled_s


@in_virtual_time
async def test_a_stall_that_nobody_asked_about_is_found_by_the_beat() -> None:
    lag = started()
    running().stand_still(0.7)
    await asyncio.sleep(1)
    assert lag.stalled_s == pytest.approx(0.7, abs=BEAT_S)


@in_virtual_time
async def test_stalls_add_up() -> None:
    lag = started()
    for _ in range(3):
        await asyncio.sleep(1)
        running().stand_still(0.5)
    assert lag.notice(running().time()) == pytest.approx(1.5, abs=3 * BEAT_S)


@in_virtual_time
async def test_delays_within_the_bound_are_no_stalls() -> None:
    lag = started()
    for _ in range(100):
        await asyncio.sleep(0.1)
        running().stand_still(BOUND_S - 0.001)
    assert lag.notice(running().time()) == 0


@in_virtual_time
async def test_no_beat_after_the_stop() -> None:
    lag = started()
    lag.stop()
    running().stand_still(5)
    await asyncio.sleep(1)
    assert lag.stalled_s == 0
