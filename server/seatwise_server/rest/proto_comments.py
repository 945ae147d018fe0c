"""The comments of the protos. Stubs have none, so the build writes them beside this module, with all descriptors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

_CODE = re.compile(r"`[^`]*`")
_SNAKE = re.compile(r"(?<=[a-z0-9])_([a-z])")


@cache
def read_comments() -> dict[str, str]:
    """Returns every comment, by the full name of what it describes, on one line and in the terms of JSON."""
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(
        (files("seatwise_server.rest") / "descriptors.binpb").read_bytes()
    )
    return {
        _name_at(file, location.path): _in_json_terms(" ".join(location.leading_comments.split()))
        for file in descriptors.file
        for location in file.source_code_info.location
        if location.leading_comments
    }


def is_required(field: FieldDescriptor) -> bool:
    """Whether a request without this field is refused."""
    return bool(re.search(r"\bRequired\b", read_comments().get(field.full_name, "")))


def is_output_only(field: FieldDescriptor) -> bool:
    """Whether only answers have this field."""
    return bool(re.search(r"\bOutput only\b", read_comments().get(field.full_name, "")))


def first_sentence(comment: str) -> str:
    """Returns the first sentence, without its full stop."""
    return comment.split(". ")[0].removesuffix(".")


def _name_at(file: descriptor_pb2.FileDescriptorProto, path: Sequence[int]) -> str:
    """Returns the full name at a path, which alternates between numbers of fields and of elements.

    The path of a file's own comment has a single number; the name is then that of the package.
    """
    element: Any = file
    names = [file.package]
    for field, index in zip(path[::2], path[1::2], strict=False):
        element = getattr(element, element.DESCRIPTOR.fields_by_number[field].name)[index]
        names.append(element.name)
    return ".".join(names)


def _in_json_terms(comment: str) -> str:
    """Writes names of fields as JSON has them: `void_reason` becomes `voidReason`."""
    return _CODE.sub(lambda code: _SNAKE.sub(lambda found: found[1].upper(), code[0]), comment)
