"""A match as it is played, as steps for the viewer: the positions that a spectator may see, in the same form as a replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.kits import find_kit
from seatwise.kits.codecs import CODECS
from seatwise.replay import Frame
from seatwise.replay.sentences import short_names
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.pages.page_calls import PageCalls, note_peer
from seatwise_server.pages.page_filters import last_part, show_span, state_words
from seatwise_server.refusal import Refusal
from seatwise_server.rest.event_streams import EventStreams

POSITION_S = 2.0
"""How long a page waits for the position of a match."""
KEPT_STEPS = 512
"""Steps that are kept as JSON: all spectators of a match are sent the same ones."""


class LiveFrames:
    """Answers /matches/{match}/live, a stream of steps."""

    def __init__(self, calls: PageCalls, streams: EventStreams) -> None:
        self._calls = calls
        self._streams = streams
        self._kept: LRUCache[tuple[int, int], tuple[Any, Any, bytes]] = LRUCache(KEPT_STEPS)
        """By the identities of two responses, which are kept beside the JSON so that no other has them."""

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Returns the stream, which is refused where `WatchMatch` is refused."""
        note_peer(request)
        return self._streams.response_of(request, self._watch_frames(f"matches/{values[0]}"))

    async def describe_position(self, name: str) -> str:
        """Returns the newest position that spectators may see as text; empty if there is none, or none comes soon."""
        with suppress(Refusal, TimeoutError):
            async with asyncio.timeout(POSITION_S):
                return await self._read_position(name)
        return ""

    async def _read_position(self, name: str) -> str:
        writer: PositionWriter | None = None
        responses = await self._calls.open_stream("MatchService/WatchMatch", name=name)
        async with aclosing(responses):
            async for response in responses:
                if response.HasField("match"):
                    writer = PositionWriter(response.match)
                elif writer and response.WhichOneof("view"):
                    return writer.draw_position(response)
        return ""

    async def _watch_frames(self, name: str) -> AsyncGenerator[bytes, None]:
        writer: PositionWriter | None = None
        before: match_service_pb2.WatchMatchResponse | None = None
        responses = await self._calls.open_stream("MatchService/WatchMatch", name=name)
        async with aclosing(responses):
            async for response in responses:
                if response.HasField("match"):
                    writer = writer or PositionWriter(response.match)
                    yield _to_json({"state": state_words(response.match.state)})
                elif writer and response.WhichOneof("view"):
                    yield self._write_step(writer, before, response)
                    before = response

    def _write_step(self, writer: PositionWriter, before: Any, after: Any) -> bytes:
        kept = self._kept.get((id(before), id(after)))
        if kept is None:
            frames = [frame.to_json() for frame in writer.frames_between(before, after)]
            kept = self._kept[id(before), id(after)] = before, after, _to_json({"frames": frames})
        return kept[2]


class PositionWriter:
    """Writes the positions of one match as a spectator sees them."""

    def __init__(self, match: match_pb2.Match) -> None:
        game = last_part(match.game)
        self._codec = CODECS[game]
        self._writer = find_kit(game).load_frame_writer()
        self._names = short_names(tuple(match.bots))

    def frames_between(
        self,
        before: match_service_pb2.WatchMatchResponse | None,
        after: match_service_pb2.WatchMatchResponse,
    ) -> list[Frame]:
        """Returns the step to the second position, and before it the end of a round if one ended in between."""
        old, new = self._view_of(before) if before else None, self._view_of(after)
        table = self._writer.write_table(new)
        if old is None:
            return [self._frame("round", f"{show_span(after.at_ms)} after the start.", table)]
        said = self._writer.describe_change(old, new, self._names)
        said = said or f"{show_span(after.at_ms)} after the start."
        ended = self._writer.write_round_end(old, new)
        if ended is None:
            return [self._frame("live", said, table)]
        is_over = table.get("round") == ended.get("round")
        following = [] if is_over else [self._frame("round", f"Round {table.get('round')} is dealt.", table)]
        return [self._frame("live", said, ended), *following]

    def draw_position(self, response: match_service_pb2.WatchMatchResponse) -> str:
        """Returns a position as text."""
        frame = self._frame("live", "", self._writer.write_table(self._view_of(response)))
        return self._writer.draw_text(frame, self._names)

    def _view_of(self, response: match_service_pb2.WatchMatchResponse) -> Any:
        view = getattr(response, self._codec.field)
        return self._codec.decode_view(view)

    def _frame(self, kind: str, says: str, table: Any) -> Frame:
        seats = len(self._names)
        return Frame(
            kind=kind,
            says=says,
            asked=(),
            moves=(),
            points=_total_points(table.get("points", ()), seats),
            table=table,
            own=(None,) * seats,
            times=(None,) * seats,
            left=("",) * seats,
        )


def _total_points(rounds: Sequence[Sequence[int]], seats: int) -> tuple[int, ...]:
    return tuple(sum(each[seat] for each in rounds) for seat in range(seats))


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
