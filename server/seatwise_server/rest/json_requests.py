"""Turns the path, the query and the body of an HTTP request into the request message of a method."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from seatwise.codec.json_values import JSON_VALUE, holds_json_values, wrap_json_values
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.rest.routes import WHOLE_BODY, HttpRoute

# Refuses values of JSON whose type their field does not take, by the field's name.

_TEXT = ("a text", (str,))
_NUMBER = ("a number", (int, float, str))
"""Large numbers are written as texts."""
_JSON_TYPES: Mapping[int, tuple[str, tuple[type, ...]]] = {
    FieldDescriptor.CPPTYPE_BOOL: ("true or false", (bool,)),
    FieldDescriptor.CPPTYPE_ENUM: ("the name of a value", (str, int)),
    FieldDescriptor.CPPTYPE_STRING: _TEXT,
    FieldDescriptor.CPPTYPE_MESSAGE: ("an object", (dict,)),
}
"""By the type of the field: what it takes, for people, and as types of Python. All others are numbers."""
_WHOLE_RANGES: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
"""The least and the most that a field of whole numbers takes, by its type."""
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def check_json_types(given: Mapping[str, Any], type_: Descriptor, path: str = "") -> None:
    """Raise `Refusal` INVALID_ARGUMENT that names the field, as timeControl.bankMs, unless all fields exist and fit."""
    spelling: dict[int, str] = {}
    for name, value in given.items():
        field = type_.fields_by_camelcase_name.get(name) or type_.fields_by_name.get(name)
        where = f"{path}{name[:40]}"
        if field is None:
            raise bad_argument(where, f"there is no field {where!r} here")
        if (other := spelling.setdefault(field.number, name)) != name:
            raise bad_argument(where, f"{path}{other} and {where} are the same field")
        if value is not None:  # null is the default of every field
            _check_field(value, field, where)


def _check_field(value: Any, field: FieldDescriptor, where: str) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _check_one(value, _JSON_TYPES[FieldDescriptor.CPPTYPE_MESSAGE], where)
        entry = field.message_type.fields_by_name["value"]
        for key, each in value.items():
            _check_value(each, entry, f"{where}.{key[:40]}")
    elif field.is_repeated:
        _check_one(value, ("a list", (list,)), where)
        for place, each in enumerate(value):
            _check_value(each, field, f"{where}[{place}]")
    else:
        _check_value(value, field, where)


def _check_value(value: Any, field: FieldDescriptor, where: str) -> None:
    if field.message_type is not None and field.message_type.full_name == JSON_VALUE:
        return  # any JSON: the referee looks it up among the legal moves
    if field.message_type is not None and field.message_type.full_name.startswith("google.protobuf."):
        _check_one(value, _TEXT, where)  # a Timestamp or a Duration
        if field.message_type.name == "Timestamp":
            _check_time(value, where)
        return
    _check_one(value, _JSON_TYPES.get(field.cpp_type, _NUMBER), where)
    if field.cpp_type in _WHOLE_RANGES:
        _check_whole_number(value, _WHOLE_RANGES[field.cpp_type], where)
    if field.message_type is not None:
        check_json_types(value, field.message_type, f"{where}.")


def _check_time(value: str, where: str) -> None:
    if not _RFC_3339.fullmatch(value):
        message = f"{where} must be a time such as 2026-11-22T12:00:00Z; in a URL, write + as %2B"
        raise bad_argument(where, message)


def _check_whole_number(value: int | float | str, limits: tuple[int, int], where: str) -> None:
    least, most = limits
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        message = f"{where} must be a whole number from {least} to {most}"
        raise bad_argument(where, message)


def _check_one(value: Any, wanted: tuple[str, tuple[type, ...]], where: str) -> None:
    what, types = wanted
    is_truth = isinstance(value, bool)
    if not isinstance(value, types) or (is_truth and bool not in types):
        raise bad_argument(where, f"{where} must be {what}")


LONGEST_NUMBER = 20
"""Digits of a number, a sign included. Our fields have at most 64 bits."""
DEEPEST_JSON = 20
"""Levels of objects in a body. Our messages have four."""
MOST_QUERY_FIELDS = 100
_BOOLS = {"true": True, "false": False}


class RequestDecoder:
    """Makes the request messages of one route."""

    def __init__(self, route: HttpRoute) -> None:
        self._route = route
        self._new_message = message_factory.GetMessageClass(route.request)
        self._query_fields = {
            name: field for field in route.query_fields for name in (field.json_name, field.name)
        }

    def decode_request(self, values: list[str], query: bytes, body: bytes) -> Message:
        """Return the message. `values` are those of the path's variable parts.

        Raises `Refusal` MALFORMED or INVALID_ARGUMENT, which names the field or parameter.
        """
        message: Message = self._new_message()
        if body.strip() not in (b"", b"null"):  # generated clients write null where there is no body
            self._read_body(message, body)
        if query:
            self._read_query(message, query)
        if self._route.path_field:
            self._set_name(message, self._route.resource_name(values))
        return message

    def _read_body(self, message: Message, body: bytes) -> None:
        body_type = self._route.body_type
        if body_type is None:
            raise Refusal("MALFORMED", "this URL takes no body")
        given = _parse_json(body)
        target = message if self._route.body == WHOLE_BODY else getattr(message, self._route.body)
        target.SetInParent()
        check_json_types(given, body_type)
        if holds_json_values(body):
            given = wrap_json_values(given, body_type)
        _merge_dict(given, target, "the body")

    def _read_query(self, message: Message, query: bytes) -> None:
        given: dict[str, Any] = {}
        for name, text in _parse_query(query):
            field = self._query_fields.get(name)
            if field is None:
                raise self._unknown_parameter(name)
            if field.is_repeated:
                given.setdefault(field.json_name, []).append(_parse_value(field, text))
            elif field.json_name in given:
                raise bad_argument(field.name, f"the parameter {name} is given twice")
            else:
                given[field.json_name] = _parse_value(field, text)
        for name, value in given.items():
            check_json_types({name: value}, self._route.request)
            _merge_dict({name: value}, message, f"the parameter {name}")

    def _unknown_parameter(self, name: str) -> Refusal:
        known = ", ".join(sorted(field.json_name for field in self._route.query_fields))
        there_is = f"there are {known}" if known else "there is none"
        return bad_argument(name[:40], f"there is no parameter {name[:40]!r} here; {there_is}")

    def _set_name(self, message: Message, name: str) -> None:
        field = self._route.path_field
        if getattr(message, field) not in ("", name):
            raise bad_argument(field, f"{field} is another in the body than in the path")
        setattr(message, field, name)


def _parse_query(query: bytes) -> list[tuple[str, str]]:
    try:
        text = query.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_QUERY_FIELDS)
    except ValueError:  # more fields than that, or bytes that are no UTF-8
        message = (
            f"the query is not UTF-8 in percent encoding, or has more than {MOST_QUERY_FIELDS} parameters"
        )
        raise Refusal("MALFORMED", message) from None


def _parse_value(field: FieldDescriptor, text: str) -> Any:
    """JSON has numbers as texts too; only booleans need a type of their own, and enums are given by name."""
    if field.enum_type is not None and text not in field.enum_type.values_by_name:
        known = ", ".join(field.enum_type.values_by_name)
        raise bad_argument(field.name, f"{field.json_name} is {text[:40]!r}; there are {known}")
    if field.cpp_type != FieldDescriptor.CPPTYPE_BOOL:
        return text
    if text not in _BOOLS:
        raise bad_argument(field.name, f"{field.json_name} is {text[:40]!r}; it is true or false")
    return _BOOLS[text]


def _parse_json(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(
            body.decode(),
            object_pairs_hook=_check_object,
            parse_constant=_refuse_constant,
            parse_int=_parse_whole_number,
        )
    except RecursionError:
        raise Refusal("MALFORMED", "the body has too many brackets inside one another") from None
    except ValueError as bad:
        raise Refusal("MALFORMED", f"the body is not JSON: {_first_line(bad)}") from None
    if not isinstance(given, dict):
        raise Refusal("MALFORMED", "the body must be a JSON object")
    return given


def _parse_whole_number(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        why = f"a number has {len(text)} digits; none has more than {LONGEST_NUMBER}"
        raise Refusal("INVALID_ARGUMENT", why)
    return int(text)


def _merge_dict(given: dict[str, Any], target: Message, what: str) -> None:
    """Raise `Refusal` INVALID_ARGUMENT that names the field as far as protobuf does."""
    try:
        json_format.ParseDict(given, target, max_recursion_depth=DEEPEST_JSON)
    except json_format.ParseError as bad:
        raise Refusal("INVALID_ARGUMENT", f"{what} is refused: {_first_line(bad)}") from None
    except (ValueError, TypeError, AttributeError, OverflowError):  # json_format lets these through
        message = f"{what} has a value of a type that its field does not take"
        raise Refusal("INVALID_ARGUMENT", message) from None


def _check_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a key is there twice")
    for name, value in pairs:
        if value is None:
            raise bad_argument(name[:40], f"{name[:40]} is null; leave the field out instead")
    return given


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is written as a text: "{name}"')


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error).partition("\n")[0]
