"""An outbox is bounded, holds only the newest view, and lets nothing urgent wait."""

from __future__ import annotations

import asyncio

import pytest
from virtual import in_virtual_time, running, settle

from seatwise_server.play.outbox import MOST_ANSWERS, SWEEP_S, Outbox


class FakeTable:
    """Shows a number that rises with each look."""

    def __init__(self, name: str = "table", prompt: int = 0) -> None:
        self.name = name
        self.prompt = prompt
        self.looks = 0
        self.heard: list[tuple[object, ...]] = []

    def update_item(self, seat: int) -> tuple[bytes, int]:
        self.looks += 1
        return f"{self.name}/{seat}: look {self.looks}".encode(), self.prompt

    def handed(self, seat: int, prompt: int, allowance_ms: int) -> None:
        self.heard.append(("handed", seat, prompt, allowance_ms))

    def leave(self, seat: int, outbox: Outbox) -> None:
        self.heard.append(("leave", seat, outbox))


def outbox() -> Outbox:
    return Outbox(running())


async def is_due_within(box: Outbox, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await box.due()
    except TimeoutError:
        return False
    return True


@in_virtual_time
async def test_answers_come_out_in_their_order_then_views_then_ends() -> None:
    box, table = outbox(), FakeTable()
    box.end(table, 0, b"end")
    box.show(table, 1, at_once=True)
    for number in range(3):
        box.answer(b"answer %d" % number, at_once=False)
    assert box.drain().items == [
        b"answer 0", b"answer 1", b"answer 2", b"table/0: look 1", b"table/1: look 2", b"end",
    ]  # fmt: skip
    assert box.drain().items == []


@in_virtual_time
async def test_a_view_is_made_when_it_is_written_and_only_once() -> None:
    box, table = outbox(), FakeTable()
    for _ in range(100):
        box.show(table, 0, at_once=True)
    assert table.looks == 0
    assert box.drain().items == [b"table/0: look 1"]


@in_virtual_time
async def test_only_open_prompts_are_to_be_handed_over() -> None:
    box, asking, resting = outbox(), FakeTable("asking", prompt=7), FakeTable("resting")
    box.show(asking, 2, at_once=True)
    box.show(resting, 0, at_once=True)
    assert box.drain().prompts == [(asking, 2, 7)]
    assert asking.heard == resting.heard == []


@in_virtual_time
async def test_what_is_urgent_is_due_at_once() -> None:
    for put in (
        lambda box: box.answer(b"rejected", at_once=True),
        lambda box: box.show(FakeTable(), 0, at_once=True),
        lambda box: box.end(FakeTable(), 0, b"end"),
        lambda box: box.wake(),
    ):
        box = outbox()
        put(box)
        began = running().time()
        await box.due()
        assert running().time() == began


@in_virtual_time
async def test_what_can_wait_is_due_after_a_sweep() -> None:
    for put in (
        lambda box: box.answer(b"accepted", at_once=False),
        lambda box: box.show(FakeTable(), 0, at_once=False),
    ):
        box = outbox()
        put(box)
        assert not await is_due_within(box, SWEEP_S - 0.01)
        assert await is_due_within(box, 0.02)


@in_virtual_time
async def test_what_can_wait_rides_with_what_cannot() -> None:
    box = outbox()
    box.answer(b"accepted", at_once=False)
    box.answer(b"rejected", at_once=True)
    await box.due()
    assert box.drain().items == [b"accepted", b"rejected"]
    assert not await is_due_within(box, 10 * SWEEP_S)


@in_virtual_time
async def test_the_sweep_begins_with_the_first_that_waits() -> None:
    box = outbox()
    box.answer(b"first", at_once=False)
    await asyncio.sleep(SWEEP_S * 0.8)
    box.answer(b"second", at_once=False)
    assert await is_due_within(box, SWEEP_S * 0.3)


@in_virtual_time
async def test_nothing_is_due_of_an_empty_outbox() -> None:
    assert not await is_due_within(outbox(), 3600)


@in_virtual_time
async def test_with_too_many_answers_there_is_no_room_until_they_are_taken_out() -> None:
    box = outbox()
    for _ in range(MOST_ANSWERS - 1):
        box.answer(b"accepted", at_once=False)
    assert not box.is_full
    box.answer(b"accepted", at_once=False)
    assert box.is_full
    assert await is_due_within(box, 0)
    waiting = asyncio.create_task(box.room())
    await settle()
    assert not waiting.done()
    assert len(box.drain().items) == MOST_ANSWERS
    await settle()
    assert waiting.done()
    assert not box.is_full


@in_virtual_time
async def test_views_of_a_table_that_closed_are_not_shown_but_its_end_is() -> None:
    box, table = outbox(), FakeTable()
    box.seats[table, 0] = None
    box.show(table, 0, at_once=True)
    box.let_go(table, 0, may_show=False)
    assert box.drain().items == []
    assert not box.seats
    box.end(table, 0, b"end")
    box.let_go(table, 0, may_show=True)
    assert box.drain().items == [b"table/0: look 1", b"end"]


@in_virtual_time
async def test_an_end_that_is_told_again_before_it_was_written_is_written_once() -> None:
    box, table = outbox(), FakeTable()
    for _ in range(1000):
        box.end(table, 0, b"end")
    assert box.drain().items == [b"table/0: look 1", b"end"]


@pytest.mark.parametrize("seats", [1, 4])
def test_a_closed_seat_takes_nothing_from_the_others(seats: int) -> None:
    @in_virtual_time
    async def check() -> None:
        box, table, other = outbox(), FakeTable(), FakeTable("other")
        for seat in range(seats):
            box.show(table, seat, at_once=True)
            box.show(other, seat, at_once=True)
        box.let_go(table, 0, may_show=False)
        assert len(box.drain().items) == 2 * seats - 1

    check()
