"""A play socket is read item by item: a few in each turn, none while answers are unread, and none when its stream ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from doubles.room import PushedLink, Room
from doubles.virtual import in_virtual_time, running, settle

from seatwise.v1 import play_service_pb2 as pb
from seatwise_server.play.inbound import ITEMS_PER_TURN
from seatwise_server.play.outbox import MOST_ANSWERS
from seatwise_server.ws.bot_socket import PlayInput, SocketMessage
from seatwise_server.ws.message_formats import FORMATS, PROTO_FORMAT

if TYPE_CHECKING:
    import pytest


class FakeSocket:
    """A socket that is read, or not."""

    format = FORMATS[PROTO_FORMAT]
    was_closed_by_peer = False

    def __init__(self) -> None:
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Input:
    """The reader of a socket, before the table of a room."""

    def __init__(self, room: Room) -> None:
        self.link = PushedLink(room, room.setup.bots[0])
        self.socket: Any = FakeSocket()
        self.reader = PlayInput(self.socket, self.link.stream, room.intake)

    def say(self, *items: pb.PlayRequestItem) -> None:
        raw = pb.PlayRequest(items=items).SerializeToString()
        self.reader.on_message(SocketMessage(raw, False, running().time()))


@in_virtual_time
async def test_a_message_is_taken_at_once_and_a_large_one_over_several_turns() -> None:
    mine = Input(Room())
    mine.say(pb.PlayRequestItem())
    await asyncio.sleep(0)
    assert len(mine.link.new("move_rejected")) == 1
    mine.reader.on_turn_end()
    mine.say(*[pb.PlayRequestItem()] * 3 * ITEMS_PER_TURN)
    assert mine.socket.is_paused
    turns = 0
    told = 0
    while told < 3 * ITEMS_PER_TURN:
        await asyncio.sleep(0)
        turns += 1
        told += len(mine.link.new("move_rejected"))
    assert turns >= 3
    assert not mine.socket.is_paused


@in_virtual_time
async def test_while_answers_are_unread_no_items_are_taken() -> None:
    mine = Input(Room())
    mine.link.stop_reading()
    for _ in range(4):
        mine.say(*[pb.PlayRequestItem()] * MOST_ANSWERS)
    await settle(200)
    assert mine.socket.is_paused
    assert len(mine.link.stream.outbox._answers) == MOST_ANSWERS
    mine.link.read_on()
    await settle(500)
    assert len(mine.link.new("move_rejected")) == 4 * MOST_ANSWERS
    assert not mine.socket.is_paused


@in_virtual_time
async def test_late_input_on_an_older_stream_takes_nothing_from_the_newer() -> None:
    room = Room()
    older, newer = Input(room), Input(room)
    sit = pb.PlayRequestItem(match=room.table.name, seat=0, sit=pb.Sit())
    older.say(*[pb.PlayRequestItem()] * ITEMS_PER_TURN, sit)
    older.link.stream.end(None)
    newer.say(sit)
    await settle()
    assert room.table.sits_through(0, newer.link.stream.outbox)


@in_virtual_time
async def test_a_fault_in_an_item_ends_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    mine = Input(room)
    monkeypatch.setattr(room.intake, "dispatch_item", lambda *_: 1 // 0)
    mine.say(pb.PlayRequestItem(), pb.PlayRequestItem())
    await settle()
    assert isinstance(mine.link._task.exception(), ZeroDivisionError)
