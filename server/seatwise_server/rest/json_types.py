"""Refuses values of JSON whose type their field does not take, by the field's name.

`google.protobuf.json_format` takes `[]` for a message and `true` for a number, and some of its errors name no field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from seatwise.codec.json_values import JSON_VALUE
from seatwise_server.refusal import Refusal

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
    """Raises `Refusal` INVALID_ARGUMENT that names the field, as timeControl.bankMs, unless all fields exist and fit."""
    spelling: dict[int, str] = {}
    for name, value in given.items():
        field = type_.fields_by_camelcase_name.get(name) or type_.fields_by_name.get(name)
        where = f"{path}{name[:40]}"
        if field is None:
            raise Refusal("INVALID_ARGUMENT", f"there is no field {where!r} here", field=where)
        if (other := spelling.setdefault(field.number, name)) != name:
            raise Refusal("INVALID_ARGUMENT", f"{path}{other} and {where} are the same field", field=where)
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
        raise Refusal("INVALID_ARGUMENT", message, field=where)


def _check_whole_number(value: int | float | str, limits: tuple[int, int], where: str) -> None:
    least, most = limits
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        message = f"{where} must be a whole number from {least} to {most}"
        raise Refusal("INVALID_ARGUMENT", message, field=where)


def _check_one(value: Any, wanted: tuple[str, tuple[type, ...]], where: str) -> None:
    what, types = wanted
    is_truth = isinstance(value, bool)
    if not isinstance(value, types) or (is_truth and bool not in types):
        raise Refusal("INVALID_ARGUMENT", f"{where} must be {what}", field=where)
