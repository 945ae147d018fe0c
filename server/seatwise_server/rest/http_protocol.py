"""HTTP/1.1 as uvicorn speaks it, with bounds that uvicorn lacks: on time, on sizes and on connections.

uvicorn waits for ever for the rest of a request, takes a head of any size, and answers what is not HTTP with plain text. It loses
the body of a request that offers to go on in another protocol, as clients do that would rather speak HTTP/2.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from seatwise_server.counts import COUNTS
from seatwise_server.limits import HTTP_CONNECTIONS, Places
from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.refusal import Refusal, write_error_body
from seatwise_server.rest.http_call import HttpRefusal, error_headers

REQUEST_S = 10.0
"""A request has arrived in full by then, or its connection is closed."""
HTTP_IDLE_S = 30.0
"""How long a connection may stay open between two requests."""
WRITE_S = 10.0
"""A caller that has not read anything for so long is hung up on."""
HALF_OPEN_S = 30.0
"""A caller whose machine does not confirm what it was sent for so long is gone."""
LARGEST_HEAD = 16 * 1024
"""Bytes of the request line and all headers."""
PARSED_AT_ONCE = 8 * 1024
"""Bytes. A head that is too large is refused while it comes, even if all of it comes at once."""
ONCE_ONLY_HEADERS = frozenset({b"authorization", b"content-type", b"host"})
"""Headers that decide who calls and what is asked: two of them could be read differently by a proxy and by this server."""
MOST_DISCARDED = 4 * 2**20
"""Bytes of a request that was refused already and is still sent."""
LINGER_S = 2.0
"""How long a caller that was refused may go on sending: a connection that is closed at once drops the refusal too."""
MOST_PIPELINED = 16
"""Requests that a connection may send before it has the response to the first."""


ABOVE = 3
"""Connections above the number of a port, for each below. A burst of more than these can shut a bot out for a moment: it asks again."""


class HttpConnections:
    """The connections of one port, and some above their number: only for bots, so that these play on while strangers have all others.

    A connection above the number is heard, and refused unless a bot asks. Strangers cannot use these up as well: the oldest
    that is not known to be a bot's makes way for the next.
    """

    def __init__(self, most: int, proxies: ProxyNetworks, paths_of_bots: Collection[str]) -> None:
        self._most = most
        self._of_addresses = Places(HTTP_CONNECTIONS, proxies=proxies)
        self._ordinary: set[BoundedHttpProtocol] = set()
        self._paths = frozenset(path.encode() for path in paths_of_bots)
        self._above: dict[BoundedHttpProtocol, bool] = {}
        """Whether each is known to be a bot's, the oldest first."""

    @property
    def is_full(self) -> bool:
        """Whether the next connection is one above the number."""
        return len(self._ordinary) >= self._most

    def admit(self, connection: BoundedHttpProtocol, address: str) -> tuple[Refusal | None, bool]:
        """Count a connection. Return why it is refused, if it is, and whether it is heard before, because a bot may ask."""
        refusal = self._of_addresses.find_refusal(address)
        self._of_addresses.take_place(address)
        if refusal:
            return refusal, False
        if not self.is_full:
            self._ordinary.add(connection)
            return None, True
        text = f"{self._most} {HTTP_CONNECTIONS.when_full}; try again soon"
        if is_heard := self._make_room():
            self._above[connection] = False
        else:
            COUNTS.count_fault("LIMIT")
        return Refusal("SERVER_FULL", text, retry_after=str(HTTP_CONNECTIONS.retry_after_s)), is_heard

    def _make_room(self) -> bool:
        if len(self._above) < ABOVE * self._most:
            return True
        oldest = next((each for each, is_known in self._above.items() if not is_known), None)
        if oldest:
            del self._above[oldest]
            oldest.transport.abort()
        return oldest is not None

    def is_of_bot(self, url: bytes) -> bool:
        """Whether only bots use this URL."""
        return url.partition(b"?")[0] in self._paths

    def note_bot(self, connection: BoundedHttpProtocol) -> None:
        """The request of a bot is there in full."""
        if connection in self._above:
            self._above[connection] = True

    def give_back(self, connection: BoundedHttpProtocol, address: str) -> None:
        """The connection has ended."""
        self._of_addresses.give_back(address)
        self._ordinary.discard(connection)
        self._above.pop(connection, None)


class _Refused(Exception):
    """Leaves the parser when a request is refused while it is parsed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        connections: HttpConnections,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._counted = connections
        self._address = ""
        self._request_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._is_in_head = True
        self._has_boundary = False
        """Whether a request began or ended in the chunk that is being parsed."""
        self._unfinished_bytes = 0
        """Bytes of a head that is not complete."""
        self._head_bytes = 0
        self._single_headers = set[bytes]()
        """Those of `ONCE_ONLY_HEADERS` that this request has had."""
        self._body_bytes = 0
        self._refusal: Refusal | None = None
        self._only_for_bots: Refusal | None = None
        """The refusal for all callers but bots: no other connection was left."""
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered, or was last. `cycle` is the request that was read last."""
        self._is_hung_up = False
        self._discarded_bytes = 0

    # The life of a connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _notice_half_open(transport)
        self._address = self.client[0] if self.client else ""
        self._only_for_bots, is_heard = self._counted.admit(self, self._address)
        if is_heard:
            self._start_request_timer()
        elif self._only_for_bots:
            self._hang_up(self._only_for_bots)

    def connection_lost(self, exc: Exception | None) -> None:
        self._counted.give_back(self, self._address)
        for timer in (self._request_timer, self._write_timer, self._close_timer):
            if timer:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PARSED_AT_ONCE):
            self._parse(data[start : start + PARSED_AT_ONCE])

    def _parse(self, data: bytes) -> None:
        if self._is_hung_up:
            self._discard(data)
            return
        self._has_boundary = False
        self._unset_keepalive_if_required()
        self._feed(data)
        if self._is_in_head and not self._is_hung_up:
            self._unfinished_bytes = 0 if self._has_boundary else self._unfinished_bytes + len(data)
            if self._unfinished_bytes > LARGEST_HEAD:
                self._hang_up(_head_too_large())

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offered:
            self._decline_upgrade(data[offered.args[0] :])
        except httptools.HttpParserError:
            self._hang_up(self._refusal or Refusal("MALFORMED", "this is not HTTP/1.1"))

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read the request again without its offer of another protocol: the parser takes its body for bytes of that protocol."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._hang_up(HttpRefusal(405, "METHOD_NOT_ALLOWED", "this is no proxy", {"allow": "GET, POST"}))
            return
        stays = b"keep-alive" if self.parser.should_keep_alive() else b"close"
        kept = [header for header in self.headers if header[0] != b"connection"]
        lines = [method + b" " + self.url + b" HTTP/" + self.parser.get_http_version().encode()]
        lines += [b"%s: %s" % header for header in (*kept, (b"connection", stays))]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._feed(b"\r\n".join([*lines, b"", rest]))

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = self._has_boundary = True
        self._head_bytes = self._body_bytes = 0
        self._single_headers.clear()
        if self._request_timer is None:
            self._start_request_timer()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        if self._is_in_head:  # what follows a body in chunks decides nothing
            self._check_single(name.lower())
            super().on_header(name, value)

    def _check_single(self, name: bytes) -> None:
        if name in ONCE_ONLY_HEADERS:
            if name in self._single_headers:
                self._refuse(Refusal("MALFORMED", f"the header {name.decode()} is given twice"))
            self._single_headers.add(name)

    def on_headers_complete(self) -> None:
        """The head is complete: the application begins."""
        if self.parser.should_upgrade():
            return  # `_decline_upgrade` comes next
        if len(self.pipeline) >= MOST_PIPELINED:
            self._refuse(
                Refusal("SERVER_FULL", "too many requests at once on this connection; wait for the responses")
            )
        if b"host" not in self._single_headers and self.parser.get_http_version() != "1.0":
            self._refuse(Refusal("MALFORMED", "a request of HTTP/1.1 has the header host"))
        if self._only_for_bots and not self._is_of_bot():
            self._refuse(self._only_for_bots)
        self._is_in_head, self._unfinished_bytes = False, 0
        super().on_headers_complete()

    def _is_of_bot(self) -> bool:
        return b"authorization" in self._single_headers and self._counted.is_of_bot(self.url)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        if self._only_for_bots:
            cycle.keep_alive = False
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MOST_DISCARDED:
            self._refuse(HttpRefusal(413, "REQUEST_TOO_LARGE", "the body is much too large"))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if self._request_timer:
            self._request_timer.cancel()
            self._request_timer = None
        self._is_in_head = self._has_boundary = True
        if self._only_for_bots:
            self._counted.note_bot(self)
        super().on_message_complete()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > LARGEST_HEAD:
            self._refuse(_head_too_large())

    def _refuse(self, refusal: Refusal) -> None:
        """The parser stops at an exception."""
        self._refusal = refusal
        raise _Refused(refusal)

    # Time

    def _start_request_timer(self) -> None:
        self._request_timer = self.loop.call_later(REQUEST_S, self._on_dawdling)

    def _on_dawdling(self) -> None:
        self._request_timer = None
        message = f"the request did not arrive in full within {REQUEST_S:g} s"
        self._hang_up(HttpRefusal(408, "REQUEST_TIMEOUT", message))

    def timeout_keep_alive_handler(self) -> None:
        """No request came for a while."""
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    # The end

    def _hang_up(self, refusal: Refusal) -> None:
        """Say why, unless the request has a response already, and close the connection when the caller has had time to read it."""
        if not self._is_hung_up and not self.transport.is_closing():
            self._is_hung_up = True
            COUNTS.count_http_refusal(refusal.reason)
            if not self._is_answered():
                self.transport.write(_raw_response(refusal))
            # The application may go on, but nothing of it is sent any more.
            if self._answered is not None:
                self._answered.disconnected = True
                self._answered.message_event.set()
            self.flow.resume_writing()
            self._linger()

    def _is_answered(self) -> bool:
        """Whether a response is on its way, or the request that is still arriving has had one: none gets a second."""
        answered = self._answered
        if answered is None or not answered.response_started:
            return False
        is_arriving = answered is self.cycle and not self._is_in_head
        return is_arriving or not answered.response_complete

    def _linger(self) -> None:
        if not self.transport.can_write_eof():  # TLS
            self._close()
            return
        self.transport.write_eof()
        self.transport.resume_reading()
        self._close_timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def _discard(self, data: bytes) -> None:
        self._discarded_bytes += len(data)
        if self._discarded_bytes > MOST_DISCARDED:
            self.transport.abort()

    def _close(self) -> None:
        """Closes, and waits for the caller to read the rest no longer than `WRITE_S`."""
        if not self.transport.is_closing():
            self.transport.close()
            self._close_timer = self.loop.call_later(WRITE_S, self.transport.abort)


def _head_too_large() -> HttpRefusal:
    message = f"the URL and the headers of a request have at most {LARGEST_HEAD} bytes"
    return HttpRefusal(431, "REQUEST_TOO_LARGE", message)


def _raw_response(refusal: Refusal) -> bytes:
    """The response where no application is asked."""
    status, body = HTTPStatus(refusal.http_status), write_error_body(refusal)
    headers = error_headers(refusal) | {
        "connection": "close",
        "content-length": str(len(body)),
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
    }
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _notice_half_open(transport: asyncio.Transport) -> None:
    """The system drops a connection whose other end has vanished; a stream that waits for news would keep it for minutes."""
    sock = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if sock is not None and option is not None and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, option, int(HALF_OPEN_S * 1000))
