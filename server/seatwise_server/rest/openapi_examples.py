"""Examples of the values of fields, for the OpenAPI document."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from seatwise.codec.json_values import JSON_VALUE
from seatwise.kits import DEFAULT_GAME
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.journal import canonical_json
from seatwise_server.league.settings import Entrant, League
from seatwise_server.services.declarations import rule_of_field

ID_EXAMPLES = {
    "bot": "lowest",
    "version": "1",
    "game": DEFAULT_GAME,
    "match": "kq3v8mzt2nwa",
    "referee": "referee-1",
    "ladder": "main",
    "league": "summer",
    "set": "round-1",
    "id": "k2v5tq7nx3m4b6za",
    "invite": "m3x7qa2kz5n4b6tv",
    "owner": "joan",
}
"""An example of each variable part of a resource name."""

_LEAGUE = League(
    name="summer",
    game=DEFAULT_GAME,
    format="round-robin",
    seats=2,
    entrants=(Entrant("lowest", "bots/lowest/versions/1"), Entrant("greedy", "bots/house-greedy/versions/1")),
    options={"rounds": 1},
    time=default_time_control(DEFAULT_GAME),
)
_BY_TYPE: dict[int, Any] = {
    FieldDescriptor.TYPE_BOOL: False,
    FieldDescriptor.TYPE_STRING: "",
    FieldDescriptor.TYPE_BYTES: base64.b64encode(hashlib.sha256(b"seatwise").digest()).decode(),
    FieldDescriptor.TYPE_DOUBLE: 25.0,
    FieldDescriptor.TYPE_INT32: 1,
    FieldDescriptor.TYPE_SINT32: 1,
    FieldDescriptor.TYPE_INT64: "1500",
}
_BY_NAME: dict[str, Any] = {
    "address": "https://referee-1.example:7433",
    "bank_ms": 60000,
    "bot": "lowest",
    "bots": ["bots/lowest/versions/1", "bots/house-greedy/versions/1"],
    "durability": "fsync",
    "endings": ["COMPLETED", "COMPLETED"],
    "free_ms": dict(GAMES[DEFAULT_GAME].paces),
    "high": 61.5,
    "holder": "referee-1",
    "low": 12.5,
    "max_seats": 4,
    "min_seats": 2,
    "mu": 27.5,
    "next_page_token": "20",
    "options": {"rounds": "1"},
    "outcome_ranks": [1, 2],
    "owner": "Team Lowest",
    "owner_id": "joan",
    "paces": dict(GAMES[DEFAULT_GAME].paces),
    "page_size": 20,
    "page_token": "20",
    "points": [31, 24],
    "ranks": [1, 2],
    "reason": "the bot of seat 1 was broken",
    "record": '{"match":"kq3v8mzt2nwa"}',
    "request_id": "0b2f7a4e-5a0e-4f0e-9c0e-7f1f6f4f8a11",
    "rules_version": "1",
    "score": 0.75,
    "seats": 2,
    "settings": canonical_json(_LEAGUE.to_json()).decode(),
    "setup_ms": 30000,
    "sigma": 2.5,
    "strength": 37.0,
    "text": "the match is finished, but the list does not show it",
    "token": "a-token-that-the-server-shows-once",
    "version": "1",
    "void_reason": "ABORTED",
    "what": "house-bots",
    "wins": 3,
}
"""Values by the names of their fields, where the type alone makes a poor example."""

_SHOWN_IN_REQUESTS = {"options", "owner", "request_id"}
"""Fields that an example of a request has although they are not required."""


def example_of_message(type_: Descriptor, *, is_input: bool, without: str = "") -> dict[str, Any]:
    """Return an example of a message as JSON: a request with what it needs, an answer with one value of each list."""
    chosen = {oneof.fields[0].name for oneof in type_.oneofs}
    return {
        field.json_name: _example_of_field(field, is_input=is_input)
        for field in type_.fields
        if field.name != without
        and (field.containing_oneof is None or field.name in chosen)
        and (not is_input or rule_of_field(field).required or field.name in _SHOWN_IN_REQUESTS)
    }


def _example_of_field(field: FieldDescriptor, *, is_input: bool) -> Any:
    type_ = field.message_type
    if type_ is None or type_.GetOptions().map_entry or type_.full_name == "google.protobuf.Timestamp":
        return example_of_value(field)
    example: Any = (
        {"action": 1} if type_.full_name == JSON_VALUE else example_of_message(type_, is_input=is_input)
    )
    return [example] if field.is_repeated else example


def example_of_value(field: FieldDescriptor) -> Any:
    """Return an example of the JSON value of a field that is no message."""
    if formats := rule_of_field(field).formats:
        name = example_of_name(formats[0])
        others = [name.replace("lowest", "house-greedy")] if field.name == "bots" else []
        return [name, *others] if field.is_repeated else name
    example = None if field.enum_type is not None else _BY_NAME.get(field.name)
    if field.is_repeated:
        if field.message_type is not None:
            return example if isinstance(example, dict) else {}
        return example if isinstance(example, list) else [_by_type(field)]
    return _by_type(field) if example is None or isinstance(example, list | dict) else example


def _by_type(field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return "2026-05-01T12:00:00Z"
    return field.enum_type.values[1].name if field.enum_type is not None else _BY_TYPE[field.type]


def example_of_name(format_: str) -> str:
    """Return an example of a resource name, as in matches/{match}."""
    return re.sub(r"\{([a-z]+)\}", lambda found: ID_EXAMPLES[found[1]], format_)
