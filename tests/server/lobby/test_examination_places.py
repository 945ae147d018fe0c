"""Places of examinations: fair between owners, and never held up for long by bots that dawdle."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from doubles.virtual import in_virtual_time, running, settle

from seatwise_server.examination.examination_places import (
    LONGEST_PLACE_S,
    MOST_EXAMINATIONS,
    ExaminationPlaces,
)


@in_virtual_time
async def test_bots_that_dawdle_hold_up_those_of_others_for_one_minute() -> None:
    places, began_s = ExaminationPlaces(), running().time()
    async with AsyncExitStack() as stack:
        for number in range(MOST_EXAMINATIONS):
            await stack.enter_async_context(places.wait_for_place(f"owners/slow-{number}"))
        assert running().time() == began_s
        async with places.wait_for_place("owners/honest"):
            assert running().time() == began_s + LONGEST_PLACE_S
    assert places._places._value == MOST_EXAMINATIONS


@in_virtual_time
async def test_an_owner_has_one_examination_at_once_even_after_its_place_is_given_back() -> None:
    places, order = ExaminationPlaces(), list[str]()

    async def examine(owner: str, name: str, seconds: float) -> None:
        async with places.wait_for_place(owner):
            order.append(name)
            await asyncio.sleep(seconds)
        order.append(f"{name} is over")

    async with asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(examine("owners/one", name, 3 * LONGEST_PLACE_S))
        group.create_task(examine("owners/other", "other", 1))
    assert order == ["first", "other", "other is over", "first is over", "second", "second is over"]
    assert len(places._owners) == 0


@in_virtual_time
async def test_a_bot_that_leaves_while_it_waits_takes_nothing_with_it() -> None:
    places = ExaminationPlaces(most=1)
    async with places.wait_for_place("owners/one"):
        waiting = [asyncio.create_task(enter(places, owner)) for owner in ("owners/one", "owners/two")]
        await settle()
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
    with pytest.raises(ValueError, match="the examination breaks"):
        async with places.wait_for_place("owners/one"):
            raise ValueError("the examination breaks")
    assert places._places._value == 1


async def enter(places: ExaminationPlaces, owner: str) -> None:
    async with places.wait_for_place(owner):
        raise AssertionError("there is no place")
