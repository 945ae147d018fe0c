"""The steps of a match that is played, written once for all who look at it from this process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from seatwise.v1 import match_service_pb2
from seatwise_server.pages.page_filters import state_words
from seatwise_server.pages.position_writer import PositionWriter
from seatwise_server.shared_stream import SharedStream

Responses = AsyncGenerator[match_service_pb2.WatchMatchResponse, None]


class LiveSteps:
    """The steps of one match so far, and its state. One task reads them while somebody looks."""

    def __init__(self) -> None:
        self.visitors = 0
        self._state = ""
        self._steps: list[bytes] = []
        """Frames as JSON."""
        self._writer: PositionWriter | None = None
        self._before: match_service_pb2.WatchMatchResponse | None = None
        self._written: tuple[int, bytes] = 0, b""
        self._stream = SharedStream()

    def start(self, responses: Responses, on_end: Callable[[], object]) -> None:
        """Begins to read all positions of the match. `on_end` is called at their end."""
        self._stream.start(responses, self._add_response, on_end)

    async def stop(self) -> None:
        """Stops reading."""
        await self._stream.stop()

    async def follow_news(self) -> AsyncIterator[bytes]:
        """Yields the state of the match whenever it changes, and steps: the newest one, then all others as they come.

        `first` is the number of the first of these steps, from 0. Raises what has ended the reading.
        """
        state, count = "", -1
        while True:
            if state != self._state:
                state = self._state
                yield _to_json({"state": state})
            if len(self._steps) > max(count, 0):
                count = len(self._steps) - 1 if count < 0 else count
                yield b'{"frames":[%s],"first":%d}' % (b",".join(self._steps[count:]), count)
                count = len(self._steps)
            elif state == self._state and not await self._stream.wait_for_change():
                return

    async def write_steps(self) -> bytes:
        """Returns all steps so far as JSON: `{"frames": [...]}`. Waits for the first one. Raises as `follow_news`."""
        while not self._steps and await self._stream.wait_for_change():
            pass
        if self._written[0] != len(self._steps) or not self._steps:
            self._written = len(self._steps), b'{"frames":[%s]}' % b",".join(self._steps)
        return self._written[1]

    def _add_response(self, response: match_service_pb2.WatchMatchResponse) -> None:
        if response.HasField("match"):
            self._writer = self._writer or PositionWriter(response.match)
            self._state = state_words(response.match.state)
        elif self._writer and response.WhichOneof("view"):
            frames = self._writer.frames_between(self._before, response)
            self._steps += [_to_json(frame.to_json()) for frame in frames]
            self._before = response


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
