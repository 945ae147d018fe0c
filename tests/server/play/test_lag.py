"""Time in which the process stood still is noticed, once, and small delays are not."""

from __future__ import annotations

import asyncio

import pytest
from doubles.virtual import in_virtual_time, running

from seatwise_server.play.match_clock import LAG_BEAT_S, LINK_BREAKING_S, STALL_BOUND_S, EventLoopLag


def started() -> EventLoopLag:
    lag = EventLoopLag(running())
    lag.start_beat()
    return lag


@in_virtual_time
async def test_a_loop_that_runs_has_no_stalls() -> None:
    lag = started()
    await asyncio.sleep(10)
    assert lag.note_stall(running().time()) == 0


@in_virtual_time
async def test_a_stall_is_noticed_before_any_timer_has_rung() -> None:
    lag = started()
    await asyncio.sleep(1)
    running().stand_still(0.7)
    assert lag.note_stall(running().time()) == pytest.approx(0.7, abs=LAG_BEAT_S)


@in_virtual_time
async def test_a_stall_is_counted_once() -> None:
    lag = started()
    running().stand_still(0.7)
    first = lag.note_stall(running().time())
    await asyncio.sleep(1)
    assert lag.note_stall(running().time()) == first == lag.stalled_s


@in_virtual_time
async def test_a_stall_that_nobody_asked_about_is_found_by_the_beat() -> None:
    lag = started()
    running().stand_still(0.7)
    await asyncio.sleep(1)
    assert lag.stalled_s == pytest.approx(0.7, abs=LAG_BEAT_S)


@in_virtual_time
async def test_stalls_add_up() -> None:
    lag = started()
    for _ in range(3):
        await asyncio.sleep(1)
        running().stand_still(0.5)
    assert lag.note_stall(running().time()) == pytest.approx(1.5, abs=3 * LAG_BEAT_S)


@in_virtual_time
async def test_delays_within_the_bound_are_no_stalls() -> None:
    lag = started()
    for _ in range(100):
        await asyncio.sleep(0.1)
        running().stand_still(STALL_BOUND_S - 0.001)
    assert lag.note_stall(running().time()) == 0


@in_virtual_time
async def test_no_beat_after_the_stop() -> None:
    lag = started()
    lag.stop_beat()
    running().stand_still(5)
    await asyncio.sleep(1)
    assert lag.stalled_s == 0


# --- Lag that is no stall -------------------------------------------------------------------------------


@in_virtual_time
async def test_the_longest_delay_of_the_last_second_is_known() -> None:
    lag = started()
    await asyncio.sleep(1)
    for delay_s in (0.03, 0.04, 0.025):
        running().stand_still(delay_s)
        await asyncio.sleep(0.1)
    assert 20 <= lag.recent_ms(running().time()) <= 40
    await asyncio.sleep(1.5)
    assert lag.recent_ms(running().time()) == 0


@in_virtual_time
async def test_a_delay_that_no_beat_has_seen_is_known_too() -> None:
    lag = started()
    running().stand_still(LAG_BEAT_S + 0.03)
    assert lag.recent_ms(running().time()) == 30


@in_virtual_time
async def test_of_a_stall_only_what_is_within_the_bound_counts_as_lag() -> None:
    lag = started()
    running().stand_still(7)
    assert lag.recent_ms(running().time()) == STALL_BOUND_S * 1000
    lag.note_stall(running().time())
    assert lag.recent_ms(running().time()) == STALL_BOUND_S * 1000


@in_virtual_time
async def test_when_the_last_stall_was_over_is_known() -> None:
    lag = started()
    await asyncio.sleep(1)
    running().stand_still(0.7)
    over = running().time()
    await asyncio.sleep(3)
    assert lag.stalled_until == over


@in_virtual_time
async def test_a_stall_that_breaks_links_is_remembered() -> None:
    lag = started()
    running().stand_still(LINK_BREAKING_S - 0.1)
    lag.note_stall(running().time())
    assert lag.broke_at < 0
    running().stand_still(LINK_BREAKING_S + 0.1)
    broke_at = running().time()
    await asyncio.sleep(1)
    running().stand_still(0.5)
    await asyncio.sleep(1)
    assert lag.broke_at == broke_at


@in_virtual_time
async def test_delays_are_not_kept() -> None:
    lag = started()
    for _ in range(1000):
        await asyncio.sleep(0.1)
        running().stand_still(0.03)
    assert len(lag._delays) < 100
