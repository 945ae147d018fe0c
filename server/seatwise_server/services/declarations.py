"""The declarations of the protos about methods and fields: rights, URLs, costs, limits, and comments.

proto/seatwise/api/v1/annotations.proto says what each declaration means. Stubs have none of them, so the build writes all
descriptors beside this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_CODE = re.compile(r"`[^`]*`")
_SNAKE = re.compile(r"(?<=[a-z0-9])_([a-z])")
_ANNOTATIONS = "seatwise.api.v1"


@dataclass(frozen=True, slots=True)
class MethodRule:
    """The right, the URL and the cost of a method."""

    right: str
    """The name of an `Access`, in lower case."""
    is_for_owners: bool
    verb: str
    """GET, POST or DELETE; empty for a method without a URL."""
    template: str
    """The URL as google.api.http has it: /v1/{name=matches/*}:abort."""
    body: str
    """The field that the body becomes; empty if the body is the request, or if there is none."""
    cost: int
    """Units of the budget of reads, besides its rows."""
    reasons: tuple[str, ...]
    """The reasons for which only this method is refused."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The limits of a field, by their names in annotations.proto, which says what each means."""

    required: bool = False
    output_only: bool = False
    formats: Sequence[str] = ()
    least: int | None = None
    most: int | None = None
    max_length: int = 0
    may_be_empty: bool = False
    always: bool = False
    max_items: int = 0


NO_RULE: Final = FieldRule()


def rule_of_field(field: FieldDescriptor) -> FieldRule:
    """Return what the proto declares of a field."""
    return _read_protos().fields.get(field.full_name, NO_RULE)


def method_rules() -> Mapping[str, MethodRule]:
    """Return the rule of every method, in the form in which gRPC calls it: /seatwise.v1.MatchService/GetMatch."""
    return _read_protos().methods


@cache
def read_comments() -> Mapping[str, str]:
    """Return every comment, by the full name of what it describes, on one line and in the terms of JSON."""
    return {name: _in_json_terms(comment) for name, comment in _read_protos().comments.items()}


def first_sentence(comment: str) -> str:
    """Return the first sentence, without its full stop."""
    return comment.split(". ")[0].removesuffix(".")


@dataclass(frozen=True, slots=True)
class Declarations:
    """All declarations. The keys are full names: seatwise.v1.Match.state."""

    methods: dict[str, MethodRule]
    """By /seatwise.v1.MatchService/GetMatch."""
    fields: dict[str, FieldRule]
    comments: dict[str, str]
    """Each comment on one line."""


@cache
def _read_protos() -> Declarations:
    return parse_declarations((files("seatwise_server.services") / "descriptors.binpb").read_bytes())


def parse_declarations(written: bytes) -> Declarations:
    """Read a `FileDescriptorSet` with annotations and comments. The build calls it for the methods of the clients."""
    protos = descriptor_pb2.FileDescriptorSet.FromString(written).file
    pool = descriptor_pool.DescriptorPool()
    for file in protos:
        pool.Add(file)
    method_rule, field_rule = _rule_reader(pool, "Method"), _rule_reader(pool, "Field")
    ours = [file for file in protos if file.package.startswith("seatwise.")]
    return Declarations(
        methods={
            f"/{file.package}.{service.name}/{method.name}": _method_rule(method_rule(method.options))
            for file in ours
            for service in file.service
            for method in service.method
        },
        fields={
            f"{name}.{field.name}": FieldRule(
                **{it.name: limit for it, limit in field_rule(field.options).ListFields()}
            )
            for file in ours
            for name, type_ in _types_of(file.package, file.message_type)
            for field in type_.field
            if field.HasField("options")
        },
        comments={
            _name_at(file, location.path): " ".join(location.leading_comments.split())
            for file in ours
            for location in file.source_code_info.location
            if location.leading_comments
        },
    )


def _rule_reader(pool: descriptor_pool.DescriptorPool, kind: str) -> Any:
    """Return the function that reads the rule in options. The annotations are known to this pool alone."""
    extension = pool.FindExtensionByName(f"{_ANNOTATIONS}.{kind.lower()}")
    options_class: Any = message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"google.protobuf.{kind}Options")
    )
    return lambda options: options_class.FromString(options.SerializeToString()).Extensions[extension]


def _method_rule(rule: Any) -> MethodRule:
    right = rule.DESCRIPTOR.fields_by_name["right"].enum_type.values_by_number[rule.right].name
    verb = rule.WhichOneof("url") or ""
    return MethodRule(
        right=right.removeprefix("RIGHT_").lower(),
        is_for_owners=rule.owners,
        verb=verb.upper(),
        template=getattr(rule, verb) if verb else "",
        body=rule.body,
        cost=rule.cost or 1,
        reasons=tuple(rule.reasons),
    )


def _types_of(
    package: str, types: Sequence[descriptor_pb2.DescriptorProto]
) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    """Yield each message with its full name, and those that are declared in it."""
    for type_ in types:
        yield f"{package}.{type_.name}", type_
        yield from _types_of(f"{package}.{type_.name}", type_.nested_type)


def _name_at(file: descriptor_pb2.FileDescriptorProto, path: Sequence[int]) -> str:
    """Return the full name at a path, which alternates between numbers of fields and of elements.

    The path of a file's own comment has a single number; the name is then that of the package.
    """
    element: Message | Any = file
    names = [file.package]
    for field, index in zip(path[::2], path[1::2], strict=False):
        element = getattr(element, element.DESCRIPTOR.fields_by_number[field].name)[index]
        names.append(element.name)
    return ".".join(names)


def _in_json_terms(comment: str) -> str:
    """Write names of fields as JSON has them: `void_reason` becomes `voidReason`."""
    return _CODE.sub(lambda code: _SNAKE.sub(lambda found: found[1].upper(), code[0]), comment)
