"""A bot's stream has one writer, hands prompts over, measures the round trip, and ends when it is not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from doubles.room import Link, PushedLink, Room
from doubles.virtual import in_virtual_time, running, settle

from seatwise.v1 import play_service_pb2 as pb
from seatwise_server.play.allowance import HANDLING_MS, DistanceMeter, DistanceMeters
from seatwise_server.play.outbox import MOST_ANSWERS
from seatwise_server.play.play_stream import (
    BLOCKED_S,
    FIRST_PINGS,
    MOST_OPEN_PINGS,
    PING_S,
    PlayStream,
    PlayStreams,
    PushedPlayStream,
)
from seatwise_server.refusal import REFUSAL_DELIVERY_S, Refusal
from seatwise_server.rpc.play_servicer import PlayServicer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, params=[Link, PushedLink], ids=["task", "pushed"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[Link]:
    """The writer of each stream: a task, as over gRPC, or none, as over WebSocket."""
    monkeypatch.setattr(Room, "link_type", request.param)
    return request.param  # type: ignore[no-any-return]


async def pong(link: Link, after_ms: float) -> None:
    """Measures a round trip of so long."""
    link.new()
    link.stream.check_reader()
    await asyncio.sleep(after_ms / 1000)
    *_, ping = link.new("ping")
    link.send(pb.PlayRequestItem(pong=pb.Pong(number=ping.number)))


# --- Round trips ----------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_stream_that_answered_no_ping_has_no_allowance() -> None:
    assert Room().link(0).allowance_ms is None


@in_virtual_time
async def test_the_allowance_is_the_least_round_trip_and_not_of_the_last_ones_alone() -> None:
    link = Room().link(0)
    for ms in (80, 20, *(60,) * 12):
        await pong(link, ms)
    assert link.allowance_ms == pytest.approx(20, abs=1)


@in_virtual_time
@pytest.mark.parametrize("kernel_ms", [None, 30.0])
async def test_the_first_pings_follow_each_other_where_pongs_count(kernel_ms: float | None) -> None:
    """So that a stream whose first pong is late is not taken to be far away until the next ping."""
    link = Room().link(0)
    link.stream.meter = DistanceMeter(read_kernel=(lambda: kernel_ms) if kernel_ms else None)
    link.stream.ping_first()
    for ms in (70, 20, 40, 50, 10):
        await asyncio.sleep(ms / 1000)
        for ping in link.new("ping"):
            link.send(pb.PlayRequestItem(pong=pb.Pong(number=ping.number)))
    pings = 1 if kernel_ms else FIRST_PINGS
    assert [item.ping.number for item in link.items() if item.HasField("ping")] == list(range(1, pings + 1))
    assert link.allowance_ms == pytest.approx(kernel_ms + HANDLING_MS if kernel_ms else 20, abs=1)


@in_virtual_time
async def test_a_pong_to_no_ping_and_a_second_one_count_for_nothing() -> None:
    link = Room().link(0)
    await pong(link, 50)
    await asyncio.sleep(1)
    for number in (1, 2, 99, -1, 2**62):
        link.send(pb.PlayRequestItem(pong=pb.Pong(number=number)))
    assert link.allowance_ms == pytest.approx(50, abs=1)
    assert link.new() == []


@in_virtual_time
async def test_a_later_pong_answers_the_earlier_pings_too() -> None:
    """Or a bot could keep an early ping to answer it late."""
    link = Room().link(0)
    link.stream.check_reader()
    await asyncio.sleep(0.03)
    link.stream.check_reader()
    await asyncio.sleep(0.04)
    first, second = link.new("ping")
    for ping in (second, first):
        link.send(pb.PlayRequestItem(pong=pb.Pong(number=ping.number)))
    assert link.allowance_ms == pytest.approx(40, abs=1)


@in_virtual_time
async def test_a_bot_that_never_answers_is_asked_eight_times() -> None:
    link = Room().link(0)
    for _ in range(50):
        link.stream.check_reader()
        await asyncio.sleep(PING_S)
    assert len(link.new("ping")) == MOST_OPEN_PINGS


# --- One writer -----------------------------------------------------------------------------------------


@in_virtual_time
async def test_while_a_write_is_under_way_the_next_message_gathers(writer: type[Link]) -> None:
    room = Room(4)
    links = await room.seat_all()
    link = links[room.other]
    link.stop_reading()
    written = len(link.messages)
    for _ in range(3):
        link.sit(room.other)
        await settle()
    link.send(pb.PlayRequestItem(match="matches/none"), pb.PlayRequestItem(match="matches/none"))
    link.read_on()
    await settle()
    events = [
        [item.WhichOneof("event") for item in pb.PlayResponse.FromString(raw).items]
        for _, raw in link.messages[written:]
    ]
    gathered = ["move_rejected", "move_rejected", "update"]
    assert events == ([gathered] if writer is PushedLink else [["update"], gathered])


@in_virtual_time
async def test_a_view_that_waited_for_the_writer_is_the_newest(writer: type[Link]) -> None:
    room = Room(3)
    links = await room.seat_all()
    watcher = (room.asked + 2) % 3
    links[watcher].stop_reading()
    links[watcher].sit(watcher, every_change=True)
    await settle()
    links[watcher].sit(watcher, every_change=True)
    await room.move(links)
    links[watcher].read_on()
    await settle()
    *before, after = links[watcher].new("update")
    assert [len(each.ugo.trick) for each in before] == ([] if writer is PushedLink else [0])
    assert len(after.ugo.trick) == 1
    assert after.to_act is False or after.prompt == room.prompt


@in_virtual_time
async def test_an_ended_stream_says_why_when_all_is_written() -> None:
    link = Room().link(0)
    await settle()
    link.send(pb.PlayRequestItem())
    link.stream.end(Refusal("REPLACED", "a newer stream"))
    link.stream.end(Refusal("SERVER_STOPPING", "too late to matter"))
    await settle()
    assert link.is_over
    assert link.refusal
    assert link.refusal.reason == "REPLACED"
    assert len(link.new("move_rejected")) == 1


@in_virtual_time
async def test_a_bot_that_hangs_up_ends_its_stream_without_a_reason() -> None:
    link = Room().link(0)
    link.stream.end(None)
    await settle()
    assert link.is_over
    assert link.refusal is None


@in_virtual_time
async def test_a_stream_whose_bot_does_not_read_is_ended() -> None:
    link = Room().link(0)
    link.stop_reading()
    for _ in range(int(BLOCKED_S / PING_S) + 1):
        link.stream.check_reader()
        await asyncio.sleep(PING_S)
        assert not link.is_over
    link.stream.check_reader()
    await settle()
    assert link.is_over
    assert link.stream.refusal
    assert link.stream.refusal.reason == "SLOW_READER"


@in_virtual_time
async def test_a_blocked_writer_is_sent_no_more_pings(writer: type[Link]) -> None:
    link = Room().link(0)
    link.stop_reading()
    for _ in range(5):
        link.stream.check_reader()
        await asyncio.sleep(0.5)
    link.read_on()
    await settle()
    assert len(link.new("ping")) == (0 if writer is PushedLink else 1)


@in_virtual_time
async def test_due_items_leave_in_the_next_turn_and_in_one_message() -> None:
    stream, raws = pushed()
    for number in range(3):
        stream.outbox.add_answer(b"answer %d" % number, at_once=True)
    assert raws == []
    await asyncio.sleep(0)
    assert len(raws) == 1


@in_virtual_time
async def test_a_fault_while_a_message_is_made_ends_its_stream_only() -> None:
    stream, raws = pushed()
    stream.outbox.mark_view_due(None, 0, at_once=True)  # type: ignore[arg-type]  # it cannot be encoded
    with pytest.raises(AttributeError):
        await stream.wait_until_over()
    stream.outbox.add_answer(b"answer", at_once=True)
    await settle()
    assert raws == []


@in_virtual_time
async def test_a_stream_whose_transport_is_gone_is_over_although_it_was_blocked() -> None:
    stream, raws = pushed()
    stream.pause_pushing()
    stream.outbox.add_answer(b"answer", at_once=True)
    await settle()
    stream.abandon()
    assert await stream.wait_until_over() is None
    assert raws == []


@in_virtual_time
async def test_a_blocked_stream_that_we_end_waits_a_moment_for_its_reader() -> None:
    stream, raws = pushed()
    stream.pause_pushing()
    stream.outbox.add_answer(b"answer", at_once=True)
    began = running().time()
    stream.end(Refusal("SERVER_STOPPING", "come back"))
    refusal = await stream.wait_until_over()
    assert refusal
    assert refusal.reason == "SERVER_STOPPING"
    assert running().time() - began == pytest.approx(REFUSAL_DELIVERY_S)
    stream.resume_pushing()
    await settle()
    assert raws == []


# --- Only who is certain of its matches speaks -----------------------------------------------------------


class Mute:
    """A lease that holds when a test says so."""

    def __init__(self) -> None:
        self.holds = True

    def __call__(self) -> bool:
        return self.holds


def pushed(may_speak: Any = lambda: True) -> tuple[PushedPlayStream, list[bytes]]:
    """A stream without a writer task, and what it pushes."""
    raws: list[bytes] = []
    return PushedPlayStream("bots/a/versions/1", raws.append, may_speak), raws


def new_stream(writer: type[Link], may_speak: Mute) -> PlayStream:
    return pushed(may_speak)[0] if writer is PushedLink else PlayStream("bots/a/versions/1", may_speak)


async def written(stream: PlayStream) -> list[bytes]:
    """What the stream's writer puts on the wire; the list grows."""
    raws: list[bytes] = []
    if isinstance(stream, PushedPlayStream):
        stream._push = raws.append
        return raws

    async def write(raw: bytes) -> None:
        raws.append(raw)

    running().create_task(stream.write_all(write))
    await settle()
    return raws


@in_virtual_time
async def test_a_stream_that_may_not_speak_is_silent_until_it_may_again(writer: type[Link]) -> None:
    may_speak = Mute()
    stream = new_stream(writer, may_speak)
    raws = await written(stream)
    may_speak.holds = False
    for number in range(3):
        stream.outbox.add_answer(b"answer %d" % number, at_once=True)
        await asyncio.sleep(1)
    assert raws == []
    may_speak.holds = True
    stream.outbox.wake_writer()
    await settle()
    assert len(raws) == 1
    assert all(b"answer %d" % number in raws[0] for number in range(3))


@in_virtual_time
async def test_a_stream_that_is_cut_says_no_word_of_what_is_unwritten(writer: type[Link]) -> None:
    may_speak = Mute()
    stream = new_stream(writer, may_speak)
    raws = await written(stream)
    may_speak.holds = False
    stream.outbox.add_answer(b"answer", at_once=True)
    stream.cut_off(Refusal("MATCH_MOVED", "another referee has it"))
    may_speak.holds = True
    stream.outbox.wake_writer()
    await settle()
    assert raws == []
    assert stream.refusal
    assert stream.refusal.reason == "MATCH_MOVED"


# --- With its reader ------------------------------------------------------------------------------------


class FakeContext:
    """The server's end of a gRPC stream."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.aborted: Any = None

    async def write(self, raw: bytes) -> None:
        await self.may_write.wait()
        self.written.append(raw)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def peer(self) -> str:
        return ""

    async def abort(self, code: Any, message: str, trailing_metadata: Any) -> None:
        self.aborted = (code, message, trailing_metadata)
        raise RuntimeError("aborted")


class FakeAuthenticator:
    """Lets everybody in as one bot."""

    def __init__(self, bot: str) -> None:
        self.who = SimpleNamespace(bot=bot)
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def authorize(self, *_: Any) -> Any:
        await self.may_answer.wait()
        return self.who


class Said:
    """What a bot sends, as the door reads it."""

    def __init__(self) -> None:
        self.read = 0
        self._raws: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, *items: pb.PlayRequestItem) -> None:
        self._raws.put_nowait(pb.PlayRequest(items=items).SerializeToString())

    async def raws(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._raws.get()
            self.read += 1


def servicer_at(room: Room, house: PlayStreams, authenticator: FakeAuthenticator) -> PlayServicer:
    lease = SimpleNamespace(holds=lambda: True)
    referee: Any = SimpleNamespace(intake=room.intake, streams=house, lease=lease, meters=DistanceMeters())
    open_streams: Any = SimpleNamespace(track_stream=lambda *_: nullcontext())
    return PlayServicer(referee, authenticator, open_streams)  # type: ignore[arg-type]


@contextmanager
def a_door(room: Room, streams: PlayStreams | None = None) -> Iterator[tuple[FakeContext, Said]]:
    """The real door of PlayService before this room's table."""
    house = PlayStreams() if streams is None else streams
    servicer = servicer_at(room, house, FakeAuthenticator(room.setup.bots[0]))
    context, said = FakeContext(), Said()
    task = asyncio.create_task(servicer.play(said.raws(), context))  # type: ignore[arg-type]
    yield context, said
    task.cancel()


def answers(context: FakeContext) -> int:
    items = (item for raw in context.written for item in pb.PlayResponse.FromString(raw).items)
    return sum(1 for item in items if not item.HasField("ping"))


@in_virtual_time
async def test_with_256_answers_unread_the_reader_stops_and_goes_on_when_they_are() -> None:
    room = Room()
    with a_door(room) as (context, said):
        await settle()
        context.may_write.clear()
        for _ in range(100):
            said.say(*[pb.PlayRequestItem()] * 10)
        await settle(200)
        assert said.read <= 2 * MOST_ANSWERS // 10 + 2
        context.may_write.set()
        await settle(500)
        assert said.read == 100
        assert answers(context) == 1000


@in_virtual_time
async def test_one_stream_that_floods_does_not_hold_up_another() -> None:
    room = Room()
    links = await room.seat_all()
    with a_door(room) as (context, said):
        context.may_write.clear()
        for _ in range(100):
            said.say(*[pb.PlayRequestItem()] * 10)
        await settle(100)
        await room.play_out(links)
    assert room.match.is_over


# --- Of several streams one -----------------------------------------------------------------------------


@in_virtual_time
async def test_a_newer_stream_of_a_bot_replaces_the_older() -> None:
    house, older, newer = PlayStreams(), PlayStream("bots/a/versions/1"), PlayStream("bots/a/versions/1")
    other = PlayStream("bots/b/versions/1")
    with house.attach_stream(older), house.attach_stream(other), house.attach_stream(newer):
        assert older.refusal
        assert older.refusal.reason == "REPLACED"
        assert not newer.is_ending
        assert not other.is_ending
        assert house.has_writers
    assert not house.has_writers


@in_virtual_time
async def test_late_input_on_an_older_stream_takes_nothing_from_the_newer() -> None:
    """It was under way when the link was given up."""
    room, house = Room(), PlayStreams()
    with a_door(room, house) as (context, said):
        context.may_write.clear()
        said.say(pb.PlayRequestItem())
        await settle()
        newer = room.link(0)
        with house.attach_stream(newer.stream):
            newer.sit(0)
            said.say(pb.PlayRequestItem(match=room.table.name, seat=0, sit=pb.Sit()))
            await settle()
            assert room.table.sits_through(0, newer.stream.outbox)


@in_virtual_time
async def test_a_stream_whose_token_is_looked_up_for_long_replaces_none_that_came_later() -> None:
    """After a standstill many connections of a bot wait, and all but the last one are given up."""
    room, house = Room(), PlayStreams()
    authenticator = FakeAuthenticator(room.setup.bots[0])
    authenticator.may_answer.clear()
    older = servicer_at(room, house, authenticator).play(Said().raws(), FakeContext())  # type: ignore[arg-type]
    serving = asyncio.create_task(older)
    await settle()
    with a_door(room, house):
        await settle()
        newer = house.get_stream(room.setup.bots[0])
        authenticator.may_answer.set()
        with pytest.raises(Refusal, match="a newer stream of this bot has taken over"):
            async with asyncio.timeout(1):
                await serving
        assert newer
        assert not newer.is_ending
        assert house.get_stream(room.setup.bots[0]) is newer


@in_virtual_time
async def test_the_end_of_an_older_stream_leaves_the_newer_its_seats() -> None:
    room, house = Room(), PlayStreams()
    links = await room.seat_all()
    older, newer = house.attach_stream(links[0].stream), room.link(0)
    older.__enter__()
    with house.attach_stream(newer.stream):
        newer.sit(0)
        older.__exit__(None, None, None)
        assert room.table.sits_through(0, newer.stream.outbox)
        assert house.has_writers != isinstance(newer.stream, PushedPlayStream)
    assert not room.table.sits_through(0, newer.stream.outbox)
    assert room.table.sits_through(1, links[1].stream.outbox)


@in_virtual_time
async def test_time_is_that_of_the_loop() -> None:
    """A stream must never look at another clock, or round trips would be of two of them."""
    link = Room().link(0)
    link.stream.check_reader()
    running().stand_still(0.085)
    await settle()
    link.send(pb.PlayRequestItem(pong=pb.Pong(number=1)))
    assert link.allowance_ms == pytest.approx(85, abs=1)
