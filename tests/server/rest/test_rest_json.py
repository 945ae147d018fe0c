"""JSON at the REST door: written exactly as protobuf writes it, only faster."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import example, given
from hypothesis import strategies as st
from matches.random_matches import bounded

from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_server.json_writer import write_json
from seatwise_server.rest.routes import HTTP_ROUTES

TYPES: dict[str, type[Message]] = {
    route.method.output_type.full_name: message_factory.GetMessageClass(route.method.output_type)
    for route in HTTP_ROUTES
} | {
    each.DESCRIPTOR.full_name: each
    for each in (play_service_pb2.PlayResponse, lobby_service_pb2.AttendResponse)
}

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Values that the field takes, odd ones too."""
    if field.message_type is not None:
        return messages(field.message_type)
    if field.enum_type is not None:
        return st.sampled_from([*(value.number for value in field.enum_type.values), 12345])
    if field.cpp_type in _INTEGERS:
        return st.integers(*_INTEGERS[field.cpp_type])
    return {
        FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
        FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
        FieldDescriptor.CPPTYPE_STRING: st.binary()
        if field.type == FieldDescriptor.TYPE_BYTES
        else st.text(),
    }[field.cpp_type]


def messages(type_: Descriptor) -> st.SearchStrategy[dict[str, Any]]:
    """Fields of a message, any of them missing."""
    if type_.full_name == Timestamp.DESCRIPTOR.full_name:
        seconds = st.integers(-62_135_596_800, 253_402_300_799)
        nanos = st.sampled_from([0, 1, 1000, 999_000, 1_000_000, 999_999_999])
        return st.fixed_dictionaries({"seconds": seconds, "nanos": nanos})
    fields = {}
    for field in type_.fields:
        if field.message_type is not None and field.message_type.full_name == "seatwise.v1.JsonValue":
            continue  # the value itself is written, which protobuf cannot
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (values(field.message_type.fields_by_name[name]) for name in ("key", "value"))
            fields[field.name] = st.dictionaries(key, value, max_size=4)
        elif field.is_repeated:
            fields[field.name] = st.lists(values(field), max_size=3)
        else:
            fields[field.name] = values(field)
    return st.fixed_dictionaries({}, optional=fields)


DEEP = {"seatwise.v1.PlayResponse", "seatwise.v1.WatchMatchResponse"}
"""Messages of views: to draw one takes a second."""


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=[pytest.mark.slow] * (it in DEEP)) for it in sorted(TYPES)]
)
@given(data=st.data())
@bounded(5)
def test_a_message_is_written_as_protobuf_writes_it_with_sorted_keys(name: str, data: Any) -> None:
    message = TYPES[name](**data.draw(messages(TYPES[name].DESCRIPTOR)))
    wanted = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
    assert write_json(message).decode() == json.dumps(
        wanted, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


@given(st.floats())
@example(math.nan)
@example(-math.inf)
@bounded(50)
def test_written_json_reads_back_as_it_was(strength: float) -> None:
    from seatwise.v1 import ladder_pb2

    message = ladder_pb2.Standing(bot="bots/a/versions/1", strength=strength, high=1e300, low=-0.0)
    again = json_format.Parse(write_json(message), ladder_pb2.Standing())
    assert again.SerializeToString() == message.SerializeToString()
