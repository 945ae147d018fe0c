"""A stream ends when its token is rotated or revoked, whenever that happens, and when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import replace

import pytest
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


class Counting:
    """A stream of numbers, one each second, which knows whether it was closed."""

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self.given = 0
        self.is_closed = False

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(1, self._most):
                self.given = number
                yield number
                await asyncio.sleep(1)
        finally:
            self.is_closed = True


async def read_all(items: AsyncGenerator[int, None]) -> list[int]:
    return [item async for item in items]


@in_virtual_time
async def test_a_watch_ends_within_a_second_when_its_token_is_taken_away_and_is_closed() -> None:
    bots, counting = FakeBots(), Counting()
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    asyncio.get_running_loop().call_later(5.5, bots.refuse, ANN)
    with pytest.raises(Refusal) as refused:
        await read_all(streams_open.end_with_token(caller_with(ANN), counting.items()))
    assert (refused.value.reason, counting.is_closed) == ("TOKEN_REVOKED", True)
    assert 5 <= counting.given <= 7
    task.cancel()


@in_virtual_time
async def test_a_watch_whose_token_is_good_ends_as_it_would_without() -> None:
    counting, streams_open = Counting(4), OpenStreams(FakeBots())  # type: ignore[arg-type]
    watched = streams_open.end_with_token(caller_with(ANN), counting.items())
    assert await read_all(watched) == [1, 2, 3]
    left = Counting()
    watched = streams_open.end_with_token(caller_with(ANN), left.items())
    await anext(watched)
    await watched.aclose()
    assert (counting.is_closed, left.is_closed) == (True, True)


@in_virtual_time
async def test_a_stream_of_the_local_admin_token_ends_within_a_second_of_its_change() -> None:
    text, stream, bots = ["first"], FakeStream(), FakeBots()
    streams_open = OpenStreams(bots, lambda: text[0])  # type: ignore[arg-type]
    task = asyncio.create_task(streams_open.watch_tokens())
    with streams_open.track_stream(Caller(token="first", name="admin"), stream):
        await asyncio.sleep(5)
        assert stream.reason is None
        text[0] = "second"
        await asyncio.sleep(0.9)
        assert stream.reason == "TOKEN_REVOKED"
    task.cancel()


@in_virtual_time
async def test_a_token_with_many_streams_is_read_once() -> None:
    bots, streams = FakeBots(), [FakeStream() for _ in range(100)]
    streams_open = OpenStreams(bots)  # type: ignore[arg-type]
    with ExitStack() as opened:
        for stream in streams:
            opened.enter_context(streams_open.track_stream(caller_with(ANN), stream))
        bots.refuse(ANN)
        task = asyncio.create_task(streams_open.watch_tokens())
        await asyncio.sleep(0.9)
        assert {stream.reason for stream in streams} == {"TOKEN_REVOKED"}
        assert bots.asked <= 2
    task.cancel()
