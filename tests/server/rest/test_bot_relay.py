"""The relay of bots over HTTP, with referees that do what a test says: what a lost referee costs, and what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from harness import until
from starlette.requests import Request

from seatwise.errors import ReplacedError, SeatwiseError, UnavailableError
from seatwise.v1.lobby_service_pb2 import AttendRequest, AttendResponse, SeatOffer
from seatwise.v1.play_service_pb2 import MoveRejected, PlayRequest, PlayRequestItem, PlayResponse, Sit
from seatwise_server.refusal import Refusal
from seatwise_server.rest.bot_relay import (
    MOST_RELAYED_SEATS,
    MOST_UNSENT_BYTES,
    BotEndpoints,
    BotRelays,
    RelayedPlay,
)
from seatwise_server.services.authentication import Caller
from seatwise_server.services.matches import LivingReferee
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import Store
from seatwise_server.streams import StreamArrival, note_arrival_of_stream

pytestmark = pytest.mark.asyncio(loop_scope="function")

BOT = Caller("bots/one/versions/1", "token one")


class FakeStream:
    """One stream to a lobby or a referee: keeps what is written, and says what the test tells it to say."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.is_closed = False
        self.says: asyncio.Queue[Any] = asyncio.Queue()

    async def write(self, message: Any) -> None:
        self.written.append(message)

    async def read(self) -> Any:
        said = await self.says.get()
        if isinstance(said, SeatwiseError):
            raise said
        return said


class FakeWire:
    """The wire of a bot. No address in `unreachable` answers, and none refuses: a dial lasts for ever."""

    address = "lobby"
    unreachable = "nowhere"

    def __init__(self) -> None:
        self.streams: list[tuple[str, FakeStream]] = []

    def address_in(self, offer: SeatOffer) -> str:
        return offer.address or self.address

    @asynccontextmanager
    async def attend(self) -> AsyncIterator[FakeStream]:
        async with self.play(self.address) as stream:
            yield stream

    @asynccontextmanager
    async def play(self, address: str) -> AsyncIterator[FakeStream]:
        if address == self.unreachable:
            await asyncio.Event().wait()
        stream = FakeStream()
        self.streams.append((address, stream))
        try:
            yield stream
        finally:
            stream.is_closed = True

    async def opened(self, count: int) -> list[tuple[str, FakeStream]]:
        """All streams, when there are so many."""
        await until(lambda: len(self.streams) >= count)
        return self.streams


def sit(match: str, seat: int = 0) -> PlayRequestItem:
    return PlayRequestItem(match=match, seat=seat, sit=Sit())


def relays_over(wire: FakeWire) -> BotRelays:
    return BotRelays(lambda _: wire, find_referee, OpenStreams(SimpleNamespace()))  # type: ignore[arg-type]


@asynccontextmanager
async def play_at(**referees: str) -> AsyncIterator[tuple[RelayedPlay, FakeWire]]:
    """A play stream, and the referee of each match."""
    wire = FakeWire()

    async def find_address(match: str) -> str:
        return referees[match]

    play = RelayedPlay(wire, find_address)
    try:
        yield play, wire
    finally:
        await play.close()


async def test_a_referee_that_is_lost_ends_its_own_seats_and_nothing_else() -> None:
    async with play_at(a="one", b="two") as (play, wire):
        await play.send_items([sit("a", 1), sit("b")])
        [(_, one), (_, two)] = await wire.opened(2)
        one.says.put_nowait(UnavailableError("the link is lost"))
        lost = await play.next_message()
        assert [(item.match, item.seat) for item in lost.items] == [("a", 1)]
        assert lost.items[0].move_rejected.reason == MoveRejected.REASON_NOT_SEATED
        assert "sit down again" in lost.items[0].move_rejected.message
        two.says.put_nowait(PlayResponse(items=[{"match": "b"}]))
        assert (await play.next_message()).items[0].match == "b"
        await play.send_items([sit("a", 1)])
        assert [address for address, _ in await wire.opened(3)] == ["one", "two", "one"]


async def test_a_lost_referee_names_no_match_that_is_over() -> None:
    async with play_at(a="one", b="one") as (play, wire):
        await play.send_items([sit("a"), sit("a", 1), sit("b")])
        [(_, one)] = await wire.opened(1)
        one.says.put_nowait(PlayResponse(items=[{"match": "a", "match_ended": {}}]))
        one.says.put_nowait(UnavailableError("the link is lost"))
        assert (await play.next_message()).items[0].HasField("match_ended")
        assert [(item.match, item.seat) for item in (await play.next_message()).items] == [("a", 1), ("b", 0)]


@pytest.mark.parametrize("ended", [None, UnavailableError("it stops", "SERVER_STOPPING")])
async def test_a_referee_that_ends_its_stream_is_sat_down_at_again(ended: Any) -> None:
    async with play_at(a="one") as (play, wire):
        await play.send_items([sit("a")])
        [(_, one)] = await wire.opened(1)
        one.says.put_nowait(ended)
        assert (await play.next_message()).items[0].move_rejected.reason == MoveRejected.REASON_NOT_SEATED


async def test_a_referee_that_cannot_be_reached_holds_up_nobody() -> None:
    async with play_at(a=FakeWire.unreachable, b="two") as (play, wire):
        await play.send_items([sit("a"), sit("b")])
        await play.send_items([sit("b", 1)])
        [(address, two)] = await wire.opened(1)
        assert address == "two"
        await until(lambda: sum(len(request.items) for request in two.written) == 2)


async def test_items_that_wait_for_a_referee_are_bounded() -> None:
    async with play_at(a=FakeWire.unreachable) as (play, _):
        half = PlayRequestItem(match="a", sit=Sit(receipt=bytes(MOST_UNSENT_BYTES // 2)))
        await play.send_items([half])
        with pytest.raises(Refusal) as refused:
            await play.send_items([half])
        assert refused.value.reason == "RATE_EXCEEDED"


async def test_the_seats_that_a_bot_may_name_are_bounded() -> None:
    names = [f"m{number}" for number in range(MOST_RELAYED_SEATS)]
    async with play_at(**dict.fromkeys([*names, "own", "unknown"], "one")) as (play, wire):
        for match in (*names, "own"):
            await play.send_items([sit(match)])
        await play.send_items([PlayRequestItem(match="unknown")])
        [(_, one)] = await wire.opened(1)
        one.says.put_nowait(UnavailableError("the link is lost"))
        lost = [item.match for item in (await play.next_message()).items]
        assert lost == [*names[1:], "own"]


async def test_a_bot_that_is_replaced_at_a_referee_is_told_so() -> None:
    async with play_at(a="one", b="two") as (play, wire):
        await play.send_items([sit("a"), sit("b")])
        [(_, one), _] = await wire.opened(2)
        one.says.put_nowait(ReplacedError("a newer stream", "REPLACED"))
        with pytest.raises(Refusal) as refused:
            await play.next_message()
        assert refused.value.reason == "REPLACED"


async def test_a_newer_stream_begins_when_those_of_the_older_one_are_closed() -> None:
    """Of two streams of a bot at a referee the one that opens last replaces the other, and it would be the older one."""
    wire = FakeWire()
    relays = relays_over(wire)
    older, newer = (relays.play(BOT, note_arrival_of_stream()) for _ in range(2))
    await anext(older)
    relayed = relays.open_play(BOT.token)
    assert relayed
    await relayed.send_items([sit("a")])
    [(_, stream)] = await wire.opened(1)
    await anext(newer)
    assert stream.is_closed
    with pytest.raises(Refusal, match="newer stream"):
        await anext(older)
    await older.aclose()
    await newer.aclose()


class Watched:
    """What stands for the relays: notes the stream that it is asked for."""

    def __init__(self) -> None:
        self.arrivals: list[tuple[str, StreamArrival]] = []

    def attend(self, caller: Caller, _: AttendRequest, arrival: StreamArrival) -> None:
        self.arrivals.append((caller.bot, arrival))

    def play(self, caller: Caller, arrival: StreamArrival) -> None:
        self.arrivals.append((caller.bot, arrival))


class SlowAuthenticator:
    """Takes its time for the token "slow"."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def authorize(self, _: str, token: str, __: str) -> Caller:
        if token == "slow":
            await self.may_answer.wait()
        return Caller(token, token)


@pytest.mark.parametrize("name", ["answer_attendance", "answer_play"])
async def test_a_request_comes_when_it_is_read_however_long_its_token_is_looked_up(name: str) -> None:
    relays, authenticator = Watched(), SlowAuthenticator()
    streams = SimpleNamespace(response_of=lambda *_, **__: None)
    endpoint = getattr(BotEndpoints(relays, authenticator, streams), name)  # type: ignore[arg-type]

    def ask(token: str) -> asyncio.Task[Any]:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "headers": headers, "query_string": b"", "client": None}
        return asyncio.create_task(endpoint(Request(scope), []))

    slow = ask("slow")
    await asyncio.sleep(0)
    await ask("quick")
    authenticator.may_answer.set()
    await slow
    (first, quick), (last, late) = relays.arrivals
    assert (first, last) == ("quick", "slow")
    assert late < quick


@pytest.mark.parametrize("what", ["attend", "play"])
async def test_a_stream_that_came_earlier_replaces_none_although_it_is_answered_later(what: str) -> None:
    wire = FakeWire()
    relays = relays_over(wire)

    def stream_that_came(arrival: StreamArrival) -> AsyncGenerator[Any, None]:
        return relays.play(BOT, arrival) if what == "play" else relays.attend(BOT, AttendRequest(), arrival)

    older, newer = (stream_that_came(note_arrival_of_stream()) for _ in range(2))
    going_on = asyncio.ensure_future(anext(newer))
    await until(lambda: bool(wire.streams) or going_on.done())
    with pytest.raises(Refusal, match="newer stream") as refused:
        async with asyncio.timeout(5):
            await anext(older)
    assert refused.value.reason == "REPLACED"
    assert len(wire.streams) == (what == "attend")
    assert not any(stream.is_closed for _, stream in wire.streams)
    going_on.cancel()


async def find_referee() -> str:
    """Some referee."""
    return "one"


async def test_items_for_a_match_that_was_never_offered_go_to_a_referee() -> None:
    """A lobby without a referee answers nothing; every referee can say that a match is over or elsewhere."""
    wire = FakeWire()
    relays = relays_over(wire)
    play = relays.play(BOT, note_arrival_of_stream())
    await anext(play)
    relayed = relays.open_play(BOT.token)
    assert relayed
    await relayed.send_items([sit("over long ago")])
    assert [address for address, _ in await wire.opened(1)] == ["one"]
    await play.aclose()


async def test_the_newest_offer_of_a_match_says_at_which_referee_it_is() -> None:
    """Another referee has taken the match over from one that has died."""
    wire = FakeWire()
    relays = relays_over(wire)
    attending = relays.attend(BOT, AttendRequest(), note_arrival_of_stream())
    for address in ("dead", "two"):
        offered = asyncio.ensure_future(anext(attending))
        [(_, lobby)] = await wire.opened(1)
        lobby.says.put_nowait(AttendResponse(offer=SeatOffer(match="a", address=address)))
        assert (await offered).offer.address == address
    play = relays.play(BOT, note_arrival_of_stream())
    await anext(play)
    relayed = relays.open_play(BOT.token)
    assert relayed
    await relayed.send_items([sit("a")])
    assert [address for address, _ in await wire.opened(2)] == ["lobby", "two"]
    await play.aclose()
    await attending.aclose()


async def test_the_referee_with_the_newest_heartbeat_is_found(store: Store) -> None:
    assert await LivingReferee(store).find_address() == ""
    for name in ("a", "b"):
        await store.processes.write_heartbeat(name, f"host:{name}", 0, 9)
        await asyncio.sleep(0.01)
    referee = LivingReferee(store)
    assert await referee.find_address() == "host:b"
    await store.processes.write_heartbeat("a", "host:a", 0, 9)
    assert await referee.find_address() == "host:b", "it looks once a second"
    assert await LivingReferee(store).find_address() == "host:a"


async def test_items_of_one_message_reach_their_referee_in_order() -> None:
    async with play_at(a="one") as (play, wire):
        await play.send_items([sit("a", seat) for seat in range(3)])
        await play.send_items([sit("a", 3)])
        [(_, one)] = await wire.opened(1)
        await until(lambda: sum(len(request.items) for request in one.written) == 4)
        assert [item.seat for request in one.written for item in request.items] == [0, 1, 2, 3]
        assert all(isinstance(request, PlayRequest) for request in one.written)
