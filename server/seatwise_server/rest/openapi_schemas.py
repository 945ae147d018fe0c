"""Messages and enums of the protos as JSON schemas.

The rules of fields (proto/seatwise/api/v1/annotations.proto) become patterns, ranges and lengths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from seatwise.codec.json_values import JSON_VALUE
from seatwise_server.services.declarations import FieldRule, read_comments, rule_of_field

Schema = dict[str, Any]

_INT32 = {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}
_SCALARS: dict[int, Schema] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64", "pattern": "^-?[0-9]{1,19}$"},
}
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    JSON_VALUE: {},  # any JSON
}

_RESOURCE_ID = "[a-z0-9][a-z0-9-]{0,62}"
ID_PATTERNS = {
    "bot": "[a-z]([a-z0-9-]{0,38}[a-z0-9])?",
    "version": "[a-z0-9]([a-z0-9.-]{0,18}[a-z0-9])?",
    "game": "[a-z][a-z0-9-]{0,39}",
    "match": "[a-z0-9]{1,40}",
    "referee": "[A-Za-z0-9._:-]{1,200}",
    "ladder": _RESOURCE_ID,
    "league": _RESOURCE_ID,
    "set": _RESOURCE_ID,
    "token": "[a-z2-7]{16}",
    "invite": "[a-z2-7]{16}",
    "owner": "[a-z][a-z0-9-]{0,39}",
}
"""The pattern of each variable part of a resource name."""


class SchemaRegistry:
    """The schemas of one document, under the names by which they refer to each other."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}

    def all_schemas(self) -> dict[str, Schema]:
        """Returns all that was referred to, by name."""
        return dict(sorted(self._schemas.items()))

    def refer_to(self, type_: Descriptor | EnumDescriptor, *, is_input: bool = False) -> Schema:
        """Returns a reference to the schema of this type, which is registered with all that it refers to."""
        is_input = is_input and isinstance(type_, Descriptor)
        name = schema_name(type_) + ("Input" if is_input and not type_.name.endswith("Request") else "")
        if name not in self._schemas:
            self._schemas[name] = {}  # a type may contain itself
            self._schemas[name] = (
                _enum_schema(type_)
                if isinstance(type_, EnumDescriptor)
                else self.message_schema(type_, is_input=is_input)
            )
        return {"$ref": f"#/components/schemas/{name}"}

    def message_schema(self, type_: Descriptor, *, is_input: bool, without: str = "") -> Schema:
        """Returns the schema of a message, without one of its fields if one is named.

        A response always has the fields without presence. A request needs only those that the proto declares as required.
        """
        fields = [field for field in type_.fields if field.name != without]
        required = [
            field.json_name
            for field in fields
            if (rule_of_field(field).is_required if is_input else not field.has_presence)
        ]
        return {
            "type": "object",
            **_description_of(type_),
            "properties": {field.json_name: self.field_schema(field, is_input=is_input) for field in fields},
            **({"required": required} if required else {}),
            **({"additionalProperties": False} if is_input else {}),
        }

    def field_schema(self, field: FieldDescriptor, *, is_input: bool) -> Schema:
        """Returns the schema of a field, with its comment."""
        entry = map_value(field)
        schema = self._value_schema(entry or field, field, is_input=is_input)
        if entry is not None:
            schema = {"type": "object", "additionalProperties": schema}
        elif field.is_repeated:
            schema = {"type": "array", "items": schema}
        if is_input and rule_of_field(field).is_output_only:
            schema["readOnly"] = True
        return {**schema, **_description_of(field)}

    def _value_schema(self, value: FieldDescriptor, field: FieldDescriptor, *, is_input: bool) -> Schema:
        if value.message_type is not None:
            well_known = _WELL_KNOWN.get(value.message_type.full_name)
            return (
                self.refer_to(value.message_type, is_input=is_input)
                if well_known is None
                else dict(well_known)
            )
        if value.enum_type is not None:
            return self.refer_to(value.enum_type)
        is_optional = is_input and not field.is_repeated and not rule_of_field(field).is_required
        return _scalar_schema(value, rule_of_field(field), may_be_empty=is_optional)


def schema_name(type_: Descriptor | EnumDescriptor) -> str:
    """Returns the name of a type's schema: seatwise.games.ugo.v1.View is UgoView, seatwise.v1.Match.State is MatchState."""
    own = re.sub(r"^seatwise\.(?:games\.)?|(?:(?<=\.)|^)v1\.", "", type_.full_name)
    return "".join(part[:1].upper() + part[1:] for part in own.split("."))


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Returns the field of a map's values, or None for a field that is no map."""
    type_ = field.message_type
    return type_.fields_by_name["value"] if type_ is not None and type_.GetOptions().map_entry else None


def _description_of(element: Descriptor | EnumDescriptor | FieldDescriptor) -> Schema:
    comment = read_comments().get(element.full_name)
    return {"description": comment} if comment else {}


def _enum_schema(type_: EnumDescriptor) -> Schema:
    """Returns the schema of an enum, with each value and its comment. A client must expect values that a newer server adds."""
    comments = read_comments()  # they name a value with its enum, which protobuf's own full names leave out
    values = [f"- `{value.name}`: {comments[f'{type_.full_name}.{value.name}']}" for value in type_.values]
    return {
        "type": "string",
        "enum": [value.name for value in type_.values],
        "description": "\n".join([comments[type_.full_name], "", *values]),
    }


def _scalar_schema(field: FieldDescriptor, rule: FieldRule, *, may_be_empty: bool) -> Schema:
    """Returns the schema of a scalar. A text that a request leaves out is read as the empty text."""
    schema = dict(_SCALARS[field.type])
    if schema["type"] == "integer":
        schema |= {} if rule.least is None else {"minimum": rule.least}
        schema |= {} if rule.most is None else {"maximum": rule.most}
    if field.type == FieldDescriptor.TYPE_STRING and rule.formats:
        schema["pattern"] = resource_pattern(rule.formats, may_be_empty=may_be_empty or rule.may_be_empty)
    elif field.type == FieldDescriptor.TYPE_STRING:
        schema |= {"maxLength": rule.max_length} if rule.max_length else {}
        schema |= {"minLength": 1} if rule.is_required else {}
    return schema


def resource_pattern(formats: Sequence[str], *, may_be_empty: bool = False) -> str:
    """Returns the pattern of a resource name from its formats, as in ["ladders/{ladder}", "leagues/{league}"]."""
    forms = [re.sub(r"\{([a-z]+)\}", lambda found: ID_PATTERNS[found[1]], each) for each in formats]
    return f"^({'|'.join(forms)}){'?' if may_be_empty else ''}$"
