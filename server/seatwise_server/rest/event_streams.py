"""Streams over HTTP: server-sent events for browsers, a line of JSON for each item for programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.counts import COUNTS
from seatwise_server.json_writer import write_json
from seatwise_server.limits import HTTP_STREAMS, PlaceLimit, Places
from seatwise_server.refusal import Refusal, write_error_body
from seatwise_server.rest.http_call import JSON_TYPE, accepted_type, call_log_of

Items: TypeAlias = AsyncGenerator[Any, None]

HEARTBEAT_S = 15.0
"""After so long without an item the stream sends a sign of life: proxies close silent connections."""
MOST_ENCODED_ITEMS = 512
"""Items that are kept as JSON: all spectators of a match are sent the same ones."""


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How items are written."""

    media_type: str
    heartbeat: bytes
    after_item: bytes
    opening: bytes = b""
    before_item: bytes = b""
    before_error: bytes = b""
    ending: bytes = b""


SSE = StreamForm(
    media_type="text/event-stream",
    heartbeat=b":\n\n",
    after_item=b"\n\n",
    opening=b"retry: 3000\n\n",
    before_item=b"data: ",
    before_error=b"event: refused\ndata: ",
    ending=b"event: end\ndata: {}\n\n",
)
"""An EventSource connects again after every end. So a page closes it when it has read `end` or `refused`."""

NDJSON = StreamForm(media_type="application/x-ndjson", heartbeat=b"\n", after_item=b"\n")
"""An empty line is a sign of life. The line of a refusal has `error` as its only key."""

STREAM_TYPES = (NDJSON.media_type, SSE.media_type, JSON_TYPE)
"""All but those who want events get lines. Clients that are made for Java accept JSON alone, because errors come as JSON."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""nginx would keep items back to fill its buffers."""


class EventStreams:
    """The streams that are open in this process."""

    def __init__(self, limit: PlaceLimit = HTTP_STREAMS) -> None:
        self._places = Places(limit)
        self._stopping = asyncio.Event()
        self._encoded: LRUCache[int, tuple[Any, bytes]] = LRUCache(MOST_ENCODED_ITEMS)
        """By identity. The item is kept beside its JSON, so that no other one has its identity."""

    def encode_item(self, item: Any) -> bytes:
        """Return the item as JSON; bytes are JSON already. A message is written once for all streams: nobody may change it."""
        if isinstance(item, bytes):
            return item
        kept = self._encoded.get(id(item))
        if kept is None:
            kept = self._encoded[id(item)] = item, write_json(item)
        return kept[1]

    def end_all(self) -> None:
        """End every open stream with SERVER_STOPPING, and refuse new ones."""
        self._stopping.set()

    def response_of(self, request: Request, items: Items) -> Response:
        """Return the response that sends all items, in the form that the caller accepts. Raises `Refusal` NOT_ACCEPTABLE."""
        form = SSE if accepted_type(request, *STREAM_TYPES) == SSE.media_type else NDJSON
        return _EventStreamResponse(self, request, items, form)

    @contextmanager
    def count_stream(self, address: str) -> Iterator[asyncio.Event]:
        """Count one stream inside this block; the event is set when all streams are to end. `Refusal` if there are too many."""
        if self._stopping.is_set():
            raise _stopping_refusal()
        with self._places.reserve_place(address):
            yield self._stopping


class _EventStreamResponse(Response):
    def __init__(self, streams: EventStreams, request: Request, items: Items, form: StreamForm) -> None:
        super().__init__(headers=_HEADERS, media_type=form.media_type)
        del self.headers["content-length"]
        self._streams, self._request, self._items, self._form = streams, request, items, form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. It waits for the first item before the status: what is refused by then is no 200."""
        address = self._request.client.host if self._request.client else ""
        with self._streams.count_stream(address) as stopping:
            async with aclosing(self._items):
                first = await anext(self._items, None)
                headers = self.raw_headers
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                is_open = first is not None and scope["method"] != "HEAD"
                await self._send_chunk(send, self._form.opening + self._encode_item(first), is_open=is_open)
                if is_open:
                    await self._send_rest(receive, send, stopping)

    async def _send_rest(self, receive: Receive, send: Send, stopping: asyncio.Event) -> None:
        gone = asyncio.create_task(_wait_for_disconnect(receive))
        stop = asyncio.create_task(stopping.wait())
        news: asyncio.Task[Any] | None = None
        try:
            is_open = True
            while is_open:
                news = news or asyncio.ensure_future(anext(self._items, None))
                await asyncio.wait(
                    (news, gone, stop), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    call_log_of(self._request).code = "CANCELLED"
                    return
                chunk, is_open = self._chunk_after(news, is_stopping=stop.done())
                await self._send_chunk(send, chunk, is_open=is_open)
                news = None if news.done() else news
        finally:
            # The items can be closed only when nobody waits for one any more.
            await cancel_until_ended(task for task in (gone, stop, news) if task is not None)

    def _chunk_after(self, news: asyncio.Task[Any], *, is_stopping: bool) -> tuple[bytes, bool]:
        """The bytes to send next, and whether more may follow."""
        if not news.done():
            if is_stopping:
                return self._encode_error(_stopping_refusal()), False
            return self._form.heartbeat, True
        try:
            item = news.result()
        except Exception as error:
            return self._encode_error(error), False
        return self._encode_item(item), item is not None

    def _encode_item(self, item: Any) -> bytes:
        """None is the end."""
        form = self._form
        if item is None:
            return form.ending
        return form.before_item + self._streams.encode_item(item) + form.after_item

    def _encode_error(self, error: Exception) -> bytes:
        refusal = call_log_of(self._request).refusal_for(error)
        COUNTS.count_http_refusal(refusal.reason)
        return self._form.before_error + write_error_body(refusal) + self._form.after_item

    async def _send_chunk(self, send: Send, chunk: bytes, *, is_open: bool) -> None:
        await send({"type": "http.response.body", "body": chunk, "more_body": is_open})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _stopping_refusal() -> Refusal:
    return Refusal("SERVER_STOPPING", "the server stops; come back soon")
