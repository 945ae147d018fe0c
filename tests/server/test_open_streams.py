"""A stream ends when its token is rotated or revoked, whenever that happens, and when the server stops."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from doubles.fake_bots import ANN, BOB, FakeBots
from doubles.virtual import in_virtual_time

from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.open_streams import OpenStreams


class FakeStream:
    """Keeps why it was ended."""

    def __init__(self) -> None:
        self.why: Refusal | None = None

    def end(self, why: Refusal | None) -> None:
        self.why = self.why or why

    @property
    def reason(self) -> str | None:
        return self.why and self.why.reason


def caller_with(token: str) -> Caller:
    return Caller("bots/" + token.removeprefix("token-of-"), token)


@in_virtual_time
async def test_streams_of_a_token_that_is_taken_away_end_within_a_second() -> None:
    bots, streams = FakeBots(), [FakeStream() for _ in range(3)]
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    tokens = (ANN, ANN, BOB)
    callers = [caller_with(token) for token in tokens]
    with (
        streams_open.track_stream(callers[0], streams[0]),
        streams_open.track_stream(callers[1], streams[1]),
        streams_open.track_stream(callers[2], streams[2]),
    ):
        await asyncio.sleep(5)
        bots.refuse(ANN, "UNKNOWN")
        await asyncio.sleep(0.9)
        assert [stream.reason for stream in streams] == ["TOKEN_REVOKED", "TOKEN_REVOKED", None]
    task.cancel()


@in_virtual_time
async def test_a_token_that_goes_while_its_stream_opens_is_noticed() -> None:
    """Its last change came between the reading of the token and the opening of the stream."""
    bots, stream = FakeBots(), FakeStream()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    caller = caller_with(ANN)
    bots.refuse(ANN)
    await asyncio.sleep(5)
    with streams_open.track_stream(caller, stream):
        await asyncio.sleep(0.9)
        assert stream.reason == "TOKEN_REVOKED"
    task.cancel()


@in_virtual_time
async def test_a_stream_ends_within_a_second_of_the_expiry_of_its_token() -> None:
    bots, stream, other = FakeBots(), FakeStream(), FakeStream()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    expiring = replace(caller_with(ANN), left_ms=5_000)
    with streams_open.track_stream(expiring, stream), streams_open.track_stream(caller_with(BOB), other):
        await asyncio.sleep(4.9)
        bots.refused[ANN] = "EXPIRED"
        assert stream.reason is None
        await asyncio.sleep(1)
        assert (stream.reason, other.reason) == ("TOKEN_EXPIRED", None)
    task.cancel()


@in_virtual_time
async def test_while_nothing_changes_no_token_is_read_again() -> None:
    bots = FakeBots()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    caller = caller_with(ANN)
    with streams_open.track_stream(caller, FakeStream()):
        await asyncio.sleep(3600)
    assert bots.asked <= 3
    task.cancel()


@in_virtual_time
async def test_a_change_while_the_store_is_away_is_noticed_when_it_is_back() -> None:
    bots, stream = FakeBots(), FakeStream()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    caller = caller_with(ANN)
    with streams_open.track_stream(caller, stream):
        await asyncio.sleep(5)
        bots.is_away = True
        bots.refuse(ANN)
        await asyncio.sleep(5)
        assert stream.reason is None
        bots.is_away = False
        await asyncio.sleep(0.9)
        assert stream.reason == "TOKEN_REVOKED"
    task.cancel()


@in_virtual_time
async def test_a_stream_that_has_ended_is_forgotten() -> None:
    bots, stream = FakeBots(), FakeStream()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    with streams_open.track_stream(caller_with(ANN), stream):
        pass
    bots.refuse(ANN)
    task = asyncio.create_task(streams_open.watch_tokens())
    await asyncio.sleep(5)
    streams_open.end_all(Refusal("SERVER_STOPPING", "stop"))
    assert stream.why is None
    task.cancel()


@in_virtual_time
async def test_all_streams_are_told_when_the_server_stops() -> None:
    streams_open, streams = OpenStreams(FakeBots()), [FakeStream(), FakeStream()]
    callers = [caller_with(token) for token in (ANN, BOB)]
    with streams_open.track_stream(callers[0], streams[0]), streams_open.track_stream(callers[1], streams[1]):
        streams_open.end_all(Refusal("SERVER_STOPPING", "stop"))
    assert [stream.reason for stream in streams] == ["SERVER_STOPPING"] * 2
