"""A match as it is played, as steps for the viewer: the positions that a spectator may see, in the same form as a replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.pages.live_steps import LiveSteps, Responses
from seatwise_server.pages.page_calls import PageCalls, note_peer
from seatwise_server.pages.position_writer import PositionWriter
from seatwise_server.refusal import Refusal
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_errors import JSON_TYPE
from seatwise_server.services.stream_quota import StreamQuota

MOST_PAGE_SPECTATORS = 4_000
"""The most pages of this process that follow live matches at a time. They share one call of `WatchMatch` for each match, so
its own limit does not count them."""
POSITION_S = 2.0
"""How long a page waits for the position of a match."""
WATCH = "MatchService/WatchMatch"


class LiveFrames:
    """Answers /matches/{match}/live, a stream of steps, and /matches/{match}/live/steps, all of them so far."""

    def __init__(self, calls: PageCalls, streams: EventStreams) -> None:
        self._calls = calls
        self._streams = streams
        self._matches: dict[str, LiveSteps] = {}
        self._quota = StreamQuota(MOST_PAGE_SPECTATORS, "watch matches")

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Returns the stream, which is refused where `WatchMatch` is refused."""
        note_peer(request)
        return self._streams.response_of(request, self._follow_news(f"matches/{values[0]}"))

    async def answer_steps(self, request: Request, values: list[str]) -> Response:
        """Returns the steps so far; none if spectators are shown none yet. Refused as the stream."""
        note_peer(request)
        written = b'{"frames":[]}'
        async with self._steps_of(f"matches/{values[0]}") as steps:
            with suppress(TimeoutError):
                async with asyncio.timeout(POSITION_S):
                    written = await steps.write_steps()
        headers = {"cache-control": "no-store", "vary": "accept-encoding"}
        return Response(written, headers=headers, media_type=JSON_TYPE)

    async def describe_position(self, name: str) -> str:
        """Returns the newest position that spectators may see as text; empty if there is none, or none comes soon."""
        with suppress(Refusal, TimeoutError):
            async with asyncio.timeout(POSITION_S):
                return await self._read_position(name)
        return ""

    async def _read_position(self, name: str) -> str:
        writer: PositionWriter | None = None
        responses = await self._calls.open_stream(WATCH, name=name)
        async with aclosing(responses):
            async for response in responses:
                if response.HasField("match"):
                    writer = PositionWriter(response.match)
                elif writer and response.WhichOneof("view"):
                    return writer.draw_position(response)
        return ""

    async def _follow_news(self, name: str) -> AsyncGenerator[bytes, None]:
        with self._quota.reserve_stream():
            async with self._steps_of(name) as steps:
                async for news in steps.follow_news():
                    yield news

    @asynccontextmanager
    async def _steps_of(self, name: str) -> AsyncIterator[LiveSteps]:
        """The steps of a match, which are read as long as somebody is inside this block."""
        await self._calls.admit(WATCH, name=name, all_positions=name not in self._matches)
        steps = self._matches.get(name) or self._begin_steps(name)
        steps.visitors += 1
        try:
            yield steps
        finally:
            steps.visitors -= 1
            if not steps.visitors:
                self._forget_steps(name, steps)  # now: who comes while they stop needs others
                await steps.stop()

    def _begin_steps(self, name: str) -> LiveSteps:
        steps = self._matches[name] = LiveSteps()
        steps.start(self._read_all(name), on_end=lambda: self._forget_steps(name, steps))
        return steps

    def _forget_steps(self, name: str, steps: LiveSteps) -> None:
        if self._matches.get(name) is steps:
            del self._matches[name]

    async def _read_all(self, name: str) -> Responses:
        responses = await self._calls.open_shared_stream(WATCH, name=name, all_positions=True)
        async with aclosing(responses):
            async for response in responses:
                yield response
