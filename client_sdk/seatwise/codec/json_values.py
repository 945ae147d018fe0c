"""`seatwise.v1.JsonValue` in JSON: REST and WebSocket show the value itself, not the message around its text."""

from __future__ import annotations

import json
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict

from seatwise.codec.game_codec import GameCodec
from seatwise.v1.json_payload_pb2 import JsonValue
from seatwise.v1.play_service_pb2 import Update

JSON_VALUE: Final = JsonValue.DESCRIPTOR.full_name
"""The name of the message that holds a JSON value as text."""


def holds_json_values(raw: bytes) -> bool:
    """Return whether a message in JSON may hold such a value. Most messages hold none, and need no conversion."""
    return b'"json"' in raw


def wrap_json_values(given: Any, type_: Descriptor) -> Any:
    """Return a message in JSON, as `google.protobuf.json_format` reads it, from the form that REST and WebSocket show.

    Anything that does not fit the type stays as it is: the parser of protobuf refuses it, and says why.
    """
    return _convert(
        given, type_, lambda value: {"json": json.dumps(value, sort_keys=True, separators=(",", ":"))}
    )


def unwrap_json_values(given: Any, type_: Descriptor) -> Any:
    """Return a message as REST and WebSocket show it, from the JSON that `google.protobuf.json_format` writes."""
    return _convert(given, type_, lambda value: json.loads(value.get("json", "null")))


def _convert(given: Any, type_: Descriptor, change: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return {name: _convert_field(value, _field_of(type_, name), change) for name, value in given.items()}


def _field_of(type_: Descriptor, name: str) -> FieldDescriptor | None:
    return type_.fields_by_name.get(name) or type_.fields_by_camelcase_name.get(name)


def _convert_field(value: Any, field: FieldDescriptor | None, change: Any) -> Any:
    if field is None or field.message_type is None or field.message_type.GetOptions().map_entry:
        return value
    if not field.is_repeated:
        return _convert_one(value, field.message_type, change)
    is_list = isinstance(value, list)
    return [_convert_one(each, field.message_type, change) for each in value] if is_list else value


def _convert_one(value: Any, type_: Descriptor, change: Any) -> Any:
    return change(value) if type_.full_name == JSON_VALUE else _convert(value, type_, change)


def view_to_json(codec: GameCodec, view: Any) -> dict[str, Any]:
    """Return a view as plain values, as JSON has it at the REST door."""
    message = type(getattr(Update(), codec.field)).FromString(codec.encode_view(view))
    return dict(MessageToDict(message, always_print_fields_with_no_presence=True))
