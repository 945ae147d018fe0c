"""The two forms of messages on a WebSocket: canonical JSON of protobuf in text frames, and protobuf in binary frames."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from seatwise.codec.json_values import holds_json_values, wrap_json_values
from seatwise.v1 import lobby_service_pb2 as lobby_pb
from seatwise.v1 import play_service_pb2 as play_pb
from seatwise_server.json_writer import write_json
from seatwise_server.play import inbound
from seatwise_server.refusal import Refusal

JSON_FORMAT = "seatwise.v1.json"
PROTO_FORMAT = "seatwise.v1.proto"
"""The names of the subprotocols, as `Sec-WebSocket-Protocol` has them."""

LONGEST_FAULT = 200
"""Characters of what a parser says."""

MOST_JSON_LEVELS = 20
"""Levels of objects in a message. Ours have six."""

_BAD_MESSAGE = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, json_format.ParseError)
"""The exceptions that the parser of protobuf raises for JSON that is not a message of ours."""
_PARSED_FIELDS = re.compile(r"(Failed to parse \w+ field: )*")
_OTHER_TYPE = "a value has a type that its field does not take"


class BadJson(ValueError):
    """The bytes are not the JSON of a message. The text says why, for the owner of the bot."""


Parsed = TypeVar("Parsed", bound=Message)


class ReadItem(NamedTuple):
    """An item of a bot, or why it cannot be read."""

    item: play_pb.PlayRequestItem | None
    fault: str = ""


class MessageFormat(Protocol):
    """How messages are written on one WebSocket."""

    name: str
    """The subprotocol."""
    is_text: bool
    """Whether its frames are text frames."""

    def read_items(self, raw: bytes) -> Iterator[ReadItem]:
        """Read the items of a PlayRequest in their order."""

    def read_attend_request(self, raw: bytes) -> lobby_pb.AttendRequest:
        """Read an AttendRequest. Raises `Refusal` MALFORMED."""

    def encode_play_response(self, raw: bytes) -> bytes:
        """Encode a PlayResponse that is already protobuf."""

    def encode_attend_response(self, response: lobby_pb.AttendResponse) -> bytes:
        """Encode an AttendResponse."""


class ProtoMessages:
    """Protobuf in binary frames."""

    name = PROTO_FORMAT
    is_text = False

    def read_items(self, raw: bytes) -> Iterator[ReadItem]:
        for item in inbound.read_items(raw):
            yield ReadItem(item)

    def read_attend_request(self, raw: bytes) -> lobby_pb.AttendRequest:
        try:
            return lobby_pb.AttendRequest.FromString(raw)
        except DecodeError:
            raise Refusal("MALFORMED", "these bytes are no AttendRequest") from None

    def encode_play_response(self, raw: bytes) -> bytes:
        return raw

    def encode_attend_response(self, response: lobby_pb.AttendResponse) -> bytes:
        return response.SerializeToString()


class JsonMessages:
    """Canonical JSON of protobuf in text frames. Fields without a value are written too, with their default."""

    name = JSON_FORMAT
    is_text = True

    def read_items(self, raw: bytes) -> Iterator[ReadItem]:
        """See `MessageFormat`. An unknown field is a fault, so that a misspelt name does not go unnoticed."""
        try:
            items = _read_item_list(raw)
            if holds_json_values(raw):
                items = [_wrap_item(each) for each in items]
        except BadJson as fault:
            yield ReadItem(None, f'this is no PlayRequest in JSON, as in {{"items": [...]}}: {fault}')
            return
        for each in items:
            try:
                yield ReadItem(_parse_message(each, play_pb.PlayRequestItem()))
            except BadJson as fault:
                yield ReadItem(None, f"this is no PlayRequestItem in JSON: {fault}")

    def read_attend_request(self, raw: bytes) -> lobby_pb.AttendRequest:
        try:
            return _parse_message(_parse_json(raw), lobby_pb.AttendRequest())
        except BadJson as fault:
            raise Refusal("MALFORMED", f"this is no AttendRequest in JSON: {fault}") from None

    def encode_play_response(self, raw: bytes) -> bytes:
        return write_json(play_pb.PlayResponse.FromString(raw))

    def encode_attend_response(self, response: lobby_pb.AttendResponse) -> bytes:
        return write_json(response)


FORMATS: dict[str, MessageFormat] = {each.name: each for each in (JsonMessages(), ProtoMessages())}
"""By subprotocol."""


def _read_item_list(raw: bytes) -> list[Any]:
    said = _parse_json(raw)
    if not isinstance(said, dict) or said.keys() - {"items"} or not isinstance(said.get("items", []), list):
        raise BadJson('it must be an object whose only field is "items", a list')
    items: list[Any] = said.get("items", [])
    return items


def _wrap_item(given: Any) -> Any:
    return wrap_json_values(given, play_pb.PlayRequestItem.DESCRIPTOR)  # type: ignore[arg-type]  # the stubs name two classes


def _parse_json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode(), object_pairs_hook=_check_object)
    except (BadJson, json.JSONDecodeError) as bad:
        raise BadJson(_one_line(str(bad))) from None
    except UnicodeDecodeError:
        raise BadJson("it is not UTF-8") from None
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except ValueError:
        raise BadJson("a number has too many digits") from None


def _check_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len({key.replace("_", "").lower() for key, _ in pairs}) < len(pairs):  # requestId is request_id
        raise BadJson("a key is there twice")
    return given


def _parse_message(given: Any, message: Parsed) -> Parsed:
    if not isinstance(given, dict):
        raise BadJson("it must be an object")
    try:
        return json_format.ParseDict(given, message, max_recursion_depth=MOST_JSON_LEVELS)
    except _BAD_MESSAGE as fault:
        raise BadJson(_explain(fault)) from None


def _explain(fault: Exception) -> str:
    """Return the text of protobuf's parser, without that of an error of the language which it may quote."""
    text, source = str(fault), fault
    while isinstance(source.__cause__, Exception):
        source = source.__cause__
    if not isinstance(source, json_format.ParseError):
        named = _PARSED_FIELDS.match(text)
        text = (named.group() if named else "") + _OTHER_TYPE
    return _one_line(text)


def _one_line(text: str) -> str:
    """It may quote what the bot sent."""
    text = " ".join(text[:LONGEST_FAULT].split())
    return text.encode("ascii", "backslashreplace").decode()
