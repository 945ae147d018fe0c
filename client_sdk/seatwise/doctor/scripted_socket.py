"""The server's end of a WebSocket of the bot, in both subprotocols of docs/protocol.md, and the port that takes them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import picows
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from seatwise.doctor.stream_link import UnreadableMessage
from seatwise.link.web_socket_wire import FIRST_CLOSE_CODE, SUBPROTOCOL

JSON_SUBPROTOCOL: Final = "seatwise.v1.json"
LARGEST_EXAMINED_REQUEST: Final = 256 * 1024
"""Bytes of one message of the bot, as the protocol allows."""
IDLE_PING_S: Final = 10.0
"""A bot that is silent for so long, in seconds, is sent a ping of WebSocket, and has as long to answer."""
HTTP_STATUS_OF_CODE: Final = {"RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503, "ABORTED": 409, "INTERNAL": 500}
"""Of the gRPC codes with which checks end a stream."""
MESSAGE_TYPES: Final = (picows.WSMsgType.TEXT, picows.WSMsgType.BINARY, picows.WSMsgType.CONTINUATION)
LATER_FIELD: Final = "aFieldOfALaterVersion"
LATER_VALUE: Final = "A_VALUE_OF_A_LATER_VERSION"

StreamServer: TypeAlias = Callable[["ScriptedSocket"], Awaitable[None]]
"""Serves one WebSocket, from its upgrade to its end."""

_picows_log = logging.Logger("seatwise.picows", logging.CRITICAL + 1)  # the transcript has a bot's mistakes
_picows_log.propagate = False


class ScriptedSocket(picows.WSListener):
    """One WebSocket: a `StreamLink`."""

    def __init__(self, authorization: str, subprotocol: str, serve: StreamServer) -> None:
        """`authorization` is the header of that name; without it the token is the first message."""
        self.metadata = {"authorization": authorization} if authorization else {}
        self._is_json = subprotocol == JSON_SUBPROTOCOL
        self._serve = serve
        self._transport: picows.WSTransport | None = None
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._parts = b""
        self.task: asyncio.Task[None] | None = None

    # As the scripted server uses it

    async def read_requests(self, kind: type[Message]) -> AsyncIterator[Any]:
        """Yield the messages of the bot. Raises `UnreadableMessage`."""
        while (payload := await self._messages.get()) is not None:
            if not self.metadata and (token := _read_token(payload)):
                self.metadata = {"authorization": f"Bearer {token}"}
                continue
            yield self._read_message(payload, kind)

    async def write(self, message: Message) -> None:
        """Send a message; to nowhere if the socket is closed."""
        if self._transport is None:
            return
        if self._is_json:
            self._transport.send(picows.WSMsgType.TEXT, json.dumps(later_json_of(message)).encode())
        else:
            self._transport.send(picows.WSMsgType.BINARY, message.SerializeToString())

    async def refuse(self, number: int, code: str, reason: str, metadata: dict[str, str]) -> None:
        """End the socket as the real server does: a text frame with the error, and a close code."""
        kind, text = "type.googleapis.com/google.rpc.ErrorInfo", "as the doctor wants it"
        info = {"@type": kind, "domain": "seatwise", "metadata": metadata, "reason": reason}
        error = {"code": HTTP_STATUS_OF_CODE[code], "message": text, "status": code, "details": [info]}
        if self._transport is not None:
            self._transport.send(picows.WSMsgType.TEXT, json.dumps({"error": error}).encode())
        self.close(FIRST_CLOSE_CODE + number, reason)

    def close(self, code: Any = picows.WSCloseCode.OK, reason: str = "") -> None:
        """Close the socket."""
        if self._transport is not None:
            self._transport.send_close(code, reason.encode())
            self._transport.disconnect()

    def _read_message(self, payload: bytes, kind: type[Message]) -> Message:
        try:
            return json_format.Parse(payload, kind()) if self._is_json else kind.FromString(payload)
        except (json_format.ParseError, DecodeError, UnicodeDecodeError) as error:
            raise UnreadableMessage(f"its message is no {kind.DESCRIPTOR.name}: {error}") from None

    # As picows calls it

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """The upgrade is done."""
        self._transport = transport
        self.task = asyncio.create_task(self._serve_and_close())

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """A frame has arrived."""
        if frame.msg_type == picows.WSMsgType.CLOSE:
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
        elif frame.msg_type in MESSAGE_TYPES:
            self._parts += frame.get_payload_as_bytes()
            if len(self._parts) > LARGEST_EXAMINED_REQUEST:
                self.close(picows.WSCloseCode.MESSAGE_TOO_BIG, "a message is too large")
            elif frame.fin:
                self._messages.put_nowait(self._parts)
                self._parts = b""

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:  # noqa: ARG002
        """The connection is gone."""
        self._transport = None
        self._messages.put_nowait(None)

    async def _serve_and_close(self) -> None:
        try:
            await self._serve(self)
        finally:
            self.close()


def later_json_of(message: Message) -> dict[str, Any]:
    """Return the message in canonical JSON, as a later version writes it: what is unknown has a name."""
    told = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
    _name_unknown(message, told)
    return told


def _name_unknown(message: Message, told: dict[str, Any]) -> None:
    """Name unknown fields and values of enums, which protobuf leaves out and writes as numbers."""
    if len(UnknownFieldSet(message)):
        told[LATER_FIELD] = "hello"
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_ENUM and field.json_name in told:
            if isinstance(told[field.json_name], int):
                told[field.json_name] = LATER_VALUE
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            inner = told[field.json_name]
            pairs = zip(value, inner, strict=True) if isinstance(inner, list) else [(value, inner)]
            for each, shown in pairs:
                if isinstance(shown, dict):
                    _name_unknown(each, shown)


def _read_token(payload: bytes) -> str:
    """Return the token of a first message; empty if it is no such message."""
    try:
        said = json.loads(payload)
    except ValueError:
        return ""
    token = said.get("token", "") if isinstance(said, dict) and said.keys() == {"token"} else ""
    return str(token).removeprefix("Bearer ")


@asynccontextmanager
async def open_sockets(
    servers: Mapping[str, StreamServer], note: Callable[[str], None]
) -> AsyncIterator[int]:
    """Take WebSockets on a free port of loopback as long as the context lasts. Yields the port.

    `servers` are the servers of sockets by path. `note` is told of each upgrade that is refused.
    """
    sockets: list[ScriptedSocket] = []

    def answer(request: picows.WSUpgradeRequest) -> Any:
        path = request.path.decode("ascii", "replace")
        offered = [each.strip() for each in str(request.headers.get("Sec-WebSocket-Protocol", "")).split(",")]
        chosen = next((each for each in offered if each in (JSON_SUBPROTOCOL, SUBPROTOCOL)), "")
        if path not in servers or not chosen:
            fault = f"the upgrade at {path} is refused: the paths are {' and '.join(servers)}; subprotocols offered: {offered}"
            note(fault)
            status = HTTPStatus.BAD_REQUEST if path in servers else HTTPStatus.NOT_FOUND
            return picows.WSUpgradeResponseWithListener(
                picows.WSUpgradeResponse.create_error_response(status, fault.encode()), None
            )
        sockets.append(ScriptedSocket(str(request.headers.get("Authorization", "")), chosen, servers[path]))
        response = picows.WSUpgradeResponse.create_101_response({"Sec-WebSocket-Protocol": chosen})
        return picows.WSUpgradeResponseWithListener(response, sockets[-1])

    server = await picows.ws_create_server(
        answer,
        "127.0.0.1",
        0,
        logger_name=_picows_log,
        max_frame_size=LARGEST_EXAMINED_REQUEST,
        use_aiofastnet=False,
        enable_auto_ping=True,
        auto_ping_idle_timeout=IDLE_PING_S,
        auto_ping_reply_timeout=IDLE_PING_S,
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        tasks = [each.task for each in sockets if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
