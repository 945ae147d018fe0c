"""A race whose referee goes, and another goes on with it from the journal."""

from __future__ import annotations

import asyncio
import json

import pytest
from harness import Chair, fleet
from harness.ubongo import BUILD_MS, CALL, best, build, lay, view_of

from seatwise.codec.ubongo import decode_view
from seatwise_referee.games.ubongo import GOAL, Placement

pytestmark = pytest.mark.asyncio(loop_scope="session")

THOUGHT_S = 0.5
FARTHER_S = 0.15
"""What comes so much later is charged more, however far away this machine makes the two look."""


def apart(chair: Chair) -> tuple[Placement, ...]:
    """Seven cards, none of which touches another: a call with them is false."""
    return tuple(
        Placement(side.card, 3 * number, 0, 0) for number, side in enumerate(view_of(chair).hand[:GOAL])
    )


async def test_all_go_on_from_the_last_charged_time_with_what_the_journal_had_before_them():
    async with fleet(referees=2) as (processes, house):
        seats = await processes.seated(house, 3, game="ubongo", free_ms={"build": BUILD_MS})
        wrong, right, third = seats.chairs
        for chair in seats.chairs:
            await chair.asked("build")
        cards = best(right)
        await build(right, lay(cards[:4]))
        await asyncio.sleep(THOUGHT_S)
        await build(wrong, lay(apart(wrong)), CALL)
        await wrong.expect("move_accepted")
        await build(right, lay(cards[:5]))  # after the call, and so in no journal yet
        await processes.at(seats.address).stop()
        await seats.follow(2, 10)
        update = await right.asked("build")
        assert decode_view(update.ubongo).layout == cards[:4]
        assert view_of(right).out == (wrong.seat,)
        assert update.time.move_ms <= BUILD_MS - 1000 * THOUGHT_S + 100
        await third.asked("build")
        await asyncio.sleep(FARTHER_S)
        await build(right, lay(cards), CALL)
        await asyncio.gather(*(chair.expect("match_ended") for chair in seats.chairs))
        match = await house.admin.over(seats.match.name)
        assert list(match.result.points) == [0, 10, 0]
        record = json.loads(await house.admin.record(seats.match.name))
    first, second = (entry for entry in record["entries"] if entry["kind"] == "called")
    assert [entry["epoch"] for entry in record["entries"] if entry["kind"] == "taken_over"] == [2]
    assert second["calls"][0]["charged_ms"] >= first["calls"][0]["charged_ms"] >= 1000 * THOUGHT_S - 100
