"""An outbox is bounded, holds only the newest view, and lets nothing urgent wait."""

from __future__ import annotations

import asyncio

import pytest
from doubles.virtual import in_virtual_time, running, settle

from seatwise_server.play.outbox import MOST_ANSWERS, SWEEP_S, Outbox


class FakeTable:
    """Shows a number that rises with each look."""

    def __init__(self, name: str = "table", prompt: int = 0) -> None:
        self.name = name
        self.prompt = prompt
        self.looks = 0
        self.heard: list[tuple[object, ...]] = []

    def encode_update(self, seat: int) -> tuple[bytes, int]:
        self.looks += 1
        return f"{self.name}/{seat}: look {self.looks}".encode(), self.prompt

    def on_prompt_delivered(self, seat: int, prompt: int, allowance_ms: int) -> None:
        self.heard.append(("handed", seat, prompt, allowance_ms))

    def drop_link(self, seat: int, outbox: Outbox) -> None:
        self.heard.append(("leave", seat, outbox))


def outbox() -> Outbox:
    return Outbox(running())


async def is_due_within(box: Outbox, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await box.wait_until_due()
    except TimeoutError:
        return False
    return True


@in_virtual_time
async def test_answers_come_out_in_their_order_then_views_then_ends() -> None:
    box, table = outbox(), FakeTable()
    box.add_match_end(table, 0, b"end")
    box.mark_view_due(table, 1, at_once=True)
    for number in range(3):
        box.add_answer(b"answer %d" % number, at_once=False)
    assert box.take_draft().items == [
        b"answer 0", b"answer 1", b"answer 2", b"table/0: look 1", b"table/1: look 2", b"end",
    ]  # fmt: skip
    assert box.take_draft().items == []


@in_virtual_time
async def test_a_view_is_made_when_it_is_written_and_only_once() -> None:
    box, table = outbox(), FakeTable()
    for _ in range(100):
        box.mark_view_due(table, 0, at_once=True)
    assert table.looks == 0
    assert box.take_draft().items == [b"table/0: look 1"]


@in_virtual_time
async def test_only_open_prompts_are_to_be_handed_over() -> None:
    box, asking, resting = outbox(), FakeTable("asking", prompt=7), FakeTable("resting")
    box.mark_view_due(asking, 2, at_once=True)
    box.mark_view_due(resting, 0, at_once=True)
    assert box.take_draft().prompts == [(asking, 2, 7)]
    assert asking.heard == resting.heard == []


@in_virtual_time
async def test_an_urgent_item_is_due_at_once() -> None:
    for put in (
        lambda box: box.add_answer(b"rejected", at_once=True),
        lambda box: box.mark_view_due(FakeTable(), 0, at_once=True),
        lambda box: box.add_match_end(FakeTable(), 0, b"end"),
        lambda box: box.wake_writer(),
    ):
        box = outbox()
        put(box)
        began = running().time()
        await box.wait_until_due()
        assert running().time() == began


@in_virtual_time
async def test_an_item_that_can_wait_is_due_after_a_sweep() -> None:
    for put in (
        lambda box: box.add_answer(b"accepted", at_once=False),
        lambda box: box.mark_view_due(FakeTable(), 0, at_once=False),
    ):
        box = outbox()
        put(box)
        assert not await is_due_within(box, SWEEP_S - 0.01)
        assert await is_due_within(box, 0.02)


@in_virtual_time
async def test_an_item_that_can_wait_rides_with_one_that_cannot() -> None:
    box = outbox()
    box.add_answer(b"accepted", at_once=False)
    box.add_answer(b"rejected", at_once=True)
    await box.wait_until_due()
    assert box.take_draft().items == [b"accepted", b"rejected"]
    assert not await is_due_within(box, 10 * SWEEP_S)


@in_virtual_time
async def test_the_sweep_begins_with_the_first_that_waits() -> None:
    box = outbox()
    box.add_answer(b"first", at_once=False)
    await asyncio.sleep(SWEEP_S * 0.8)
    box.add_answer(b"second", at_once=False)
    assert await is_due_within(box, SWEEP_S * 0.3)


@in_virtual_time
async def test_nothing_is_due_of_an_empty_outbox() -> None:
    assert not await is_due_within(outbox(), 3600)


@in_virtual_time
async def test_with_too_many_answers_there_is_no_room_until_they_are_taken_out() -> None:
    box = outbox()
    for _ in range(MOST_ANSWERS - 1):
        box.add_answer(b"accepted", at_once=False)
    assert not box.is_full
    box.add_answer(b"accepted", at_once=False)
    assert box.is_full
    assert await is_due_within(box, 0)
    waiting = asyncio.create_task(box.wait_for_room())
    await settle()
    assert not waiting.done()
    assert len(box.take_draft().items) == MOST_ANSWERS
    await settle()
    assert waiting.done()
    assert not box.is_full


@in_virtual_time
async def test_views_of_a_table_that_closed_are_not_shown_but_its_end_is() -> None:
    box, table = outbox(), FakeTable()
    box.seats[table, 0] = None
    box.mark_view_due(table, 0, at_once=True)
    box.forget_seat(table, 0, may_show=False)
    assert box.take_draft().items == []
    assert not box.seats
    box.add_match_end(table, 0, b"end")
    box.forget_seat(table, 0, may_show=True)
    assert box.take_draft().items == [b"table/0: look 1", b"end"]


@in_virtual_time
async def test_an_end_that_is_told_again_before_it_was_written_is_written_once() -> None:
    box, table = outbox(), FakeTable()
    for _ in range(1000):
        box.add_match_end(table, 0, b"end")
    assert box.take_draft().items == [b"table/0: look 1", b"end"]


@pytest.mark.parametrize("seats", [1, 4])
def test_a_closed_seat_takes_nothing_from_the_others(seats: int) -> None:
    @in_virtual_time
    async def check() -> None:
        box, table, other = outbox(), FakeTable(), FakeTable("other")
        for seat in range(seats):
            box.mark_view_due(table, seat, at_once=True)
            box.mark_view_due(other, seat, at_once=True)
        box.forget_seat(table, 0, may_show=False)
        assert len(box.take_draft().items) == 2 * seats - 1

    check()
