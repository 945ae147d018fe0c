"""The methods of both clients, written from the protos: names, types, docstrings. proto/build_stubs.py calls it."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet, MethodDescriptorProto

PACKAGE = "seatwise.v1"
BY_HAND = {"RegisterBot", "SetBotKind", "CreateMatch", "ListMatches", "CreateLeague"}
"""Methods whose functions do more than one call, or take other types: seatwise/async_client.py has them."""
ERRORS = {
    "NOT_FOUND": ("NotFoundError", "Something that the request names does not exist."),
    "ALREADY_EXISTS": ("AlreadyExistsError", "There is one of this name with other settings."),
    "MATCH_NOT_OVER": (
        "WrongStateError",
        "The match is not over, is void, or shares its deals with matches that are not over.",
    ),
    "SET_OVER": ("WrongStateError", "The set is over or closed."),
}
"""The errors that docstrings name, by the reason of a refusal."""
RIGHTS = {
    "public": "",
    "token": "Needs a token.",
    "join": "The token is that of an invite, or an ID token.",
}
SCALARS = {
    FieldDescriptorProto.TYPE_BOOL: ("bool", "False"),
    FieldDescriptorProto.TYPE_STRING: ("str", '""'),
    FieldDescriptorProto.TYPE_BYTES: ("bytes", 'b""'),
    FieldDescriptorProto.TYPE_DOUBLE: ("float", "0.0"),
    FieldDescriptorProto.TYPE_INT32: ("int", "0"),
    FieldDescriptorProto.TYPE_INT64: ("int", "0"),
    FieldDescriptorProto.TYPE_SINT32: ("int", "0"),
}
HEAD = '''"""Generated from proto/ by proto/client_methods.py: what both clients do with one call each."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from google.protobuf.message import Message

from seatwise.v1 import {modules}

Response = TypeVar("Response", bound=Message)
Result = TypeVar("Result")
'''
ASYNC_CLASS = '''

class AsyncMethods:
    """The methods of `AsyncClient` that are one call each."""

    async def _call_method(self, path: str, request: Message, response: type[Response]) -> Response:
        raise NotImplementedError
'''
SYNC_CLASS = '''

class WaitingMethods:
    """The methods of `Client` that are one call each."""

    _client: AsyncMethods

    def _wait_for(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        raise NotImplementedError
'''


def write_client_methods(root: Path, descriptors: bytes) -> str:
    """Return the module with the methods of both clients."""
    return _MethodsWriter(root, descriptors).write()


class _MethodsWriter:
    def __init__(self, root: Path, descriptors: bytes) -> None:
        self._declared = _load_declarations(root).parse_declarations(descriptors)
        files = [file for file in FileDescriptorSet.FromString(descriptors).file if file.package == PACKAGE]
        self._services = [(service.name, service.method) for file in files for service in file.service]
        self._types = {type_.name: type_ for file in files for type_ in file.message_type}
        self._modules = {
            type_.name: file.name.rpartition("/")[2].removesuffix(".proto") + "_pb2"
            for file in files
            for type_ in (*file.message_type, *file.enum_type)
        }

    def write(self) -> str:
        methods = [
            (service, method) for service, own in self._services for method in own if _is_generated(method)
        ]
        asynchronous = "".join(self._write_async(service, method) for service, method in methods)
        waiting = "".join(self._write_waiting(service, method) for service, method in methods)
        body = ASYNC_CLASS + asynchronous + SYNC_CLASS + waiting
        modules = sorted({module for module in self._modules.values() if f"{module}." in body})
        imported = "".join(f"    {module},\n" for module in modules)
        return HEAD.replace("{modules}", f"(\n{imported})") + body

    def _write_async(self, service: str, method: MethodDescriptorProto) -> str:
        request, response = self._refer_to(method.input_type), self._refer_to(method.output_type)
        fields = [f"{field.name}={_value_of(field)}" for field in self._fields_of(method.input_type)]
        path = f'"/{PACKAGE}.{service}/{method.name}"'
        call = f"await self._call_method({path}, request, {response})"
        return (
            f"\n    async def {self._signature(method)}\n{self._docstring(service, method)}"
            f"        request = {request}({', '.join(fields)})\n"
            f"        {self._result(method, call)[1]}\n"
        )

    def _write_waiting(self, service: str, method: MethodDescriptorProto) -> str:
        arguments = ", ".join(f"{field.name}={field.name}" for field in self._fields_of(method.input_type))
        call = f"self._client.{_snake_case(method.name)}({arguments})"
        return (
            f"\n    def {self._signature(method)}\n{self._docstring(service, method)}"
            f"        return self._wait_for({call})\n"
        )

    def _fields_of(self, type_: str) -> Sequence[FieldDescriptorProto]:
        return self._types[type_.rpartition(".")[2]].field

    def _signature(self, method: MethodDescriptorProto) -> str:
        """Return name, parameters and result. Truth values are given by name."""
        plain, named = ["self"], list[str]()
        for field in self._parameters(method):
            type_, default = self._type_of(field)
            if self._is_needed(method, field):
                plain.append(f"{field.name}: {type_.removesuffix(' | None')}")
            else:
                is_truth = field.type == FieldDescriptorProto.TYPE_BOOL
                (named if is_truth else plain).append(f"{field.name}: {type_} = {default}")
        parameters = ", ".join([*plain, *(["*"] if named else []), *named])
        return f"{_snake_case(method.name)}({parameters}) -> {self._result(method)[0]}:"

    def _parameters(self, method: MethodDescriptorProto) -> list[FieldDescriptorProto]:
        """Return the fields of the request: what is needed first, and the id of the request last."""
        return sorted(
            self._fields_of(method.input_type),
            key=lambda field: (field.name == "request_id", not self._is_needed(method, field)),
        )

    def _is_needed(self, method: MethodDescriptorProto, field: FieldDescriptorProto) -> bool:
        name = f"{method.input_type[1:]}.{field.name}"
        rule = self._declared.fields.get(name)
        template = self._rule_of(method).template
        is_body = self._rule_of(method).body == field.name
        return bool(rule and rule.required) or f"{{{field.name}=" in template or is_body

    def _rule_of(self, method: MethodDescriptorProto) -> Any:
        return next(rule for name, rule in self._declared.methods.items() if name.endswith(f"/{method.name}"))

    def _result(self, method: MethodDescriptorProto, call: str = "") -> tuple[str, str]:
        """Return the type of the result, and the statement that returns it from the call."""
        fields = self._fields_of(method.output_type)
        if not fields:
            return "None", call
        if len(fields) > 1:
            return self._refer_to(method.output_type), f"return {call}"
        type_, answer = self._type_of(fields[0], is_result=True)[0], f"({call}).{fields[0].name}"
        if fields[0].label == FieldDescriptorProto.LABEL_REPEATED:
            return type_.replace("Sequence", "list", 1), f"return list({answer})"
        return type_, f"return {answer}"

    def _type_of(self, field: FieldDescriptorProto, *, is_result: bool = False) -> tuple[str, str]:
        """Return the type of a parameter, and its default."""
        is_enum = field.type == FieldDescriptorProto.TYPE_ENUM
        if field.type in SCALARS:
            type_, default = SCALARS[field.type]
        else:
            type_, default = self._refer_to(field.type_name), "0" if is_enum else "None"
        if is_enum and not is_result:
            type_ += " | str"
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            return f"Sequence[{type_}]", "()"
        if not is_result and (field.proto3_optional or default == "None"):
            return f"{type_} | None", "None"
        return type_, default

    def _refer_to(self, type_: str) -> str:
        if type_ == ".google.protobuf.Timestamp":
            return "timestamp_pb2.Timestamp"
        own = type_.removeprefix(f".{PACKAGE}.")
        return f"{self._modules[own.partition('.')[0]]}.{own}"

    def _docstring(self, service: str, method: MethodDescriptorProto) -> str:
        comment = self._declared.comments[f"{PACKAGE}.{service}.{method.name}"]
        about = " ".join(filter(None, [_imperative(comment), _tell_right(self._rule_of(method))]))
        first, _, rest = about.partition(". ")
        parts = [f'"""{first.removesuffix(".")}.', *(["", *_wrap(rest, 8)] if rest else [])]
        fields, errors = self._parameters(method), self._errors_of(method)
        sections = {
            "Args": [line for field in fields for line in self._describe(method.input_type, field)],
            "Returns": self._tell_result(method),
            "Raises": [line for name, why in errors for line in _wrap(f"{name}: {why}", 16, "    ")],
        }
        for title, lines in sections.items():
            parts += ["", f"{title}:", *lines] if lines else []
        first_lines = textwrap.wrap(parts[0], 101)
        return "".join(f"        {line}".rstrip() + "\n" for line in [*first_lines, *parts[1:], '"""'])

    def _describe(self, type_: str, field: FieldDescriptorProto) -> list[str]:
        return _wrap(f"{field.name}: {self._declared.comments[f'{type_[1:]}.{field.name}']}", 16, "    ")

    def _tell_result(self, method: MethodDescriptorProto) -> list[str]:
        fields = self._fields_of(method.output_type)
        if not fields:
            return []
        if len(fields) == 1:
            return _wrap(self._declared.comments[f"{method.output_type[1:]}.{fields[0].name}"], 12, "    ")
        about = self._declared.comments[method.output_type[1:]].removesuffix(".")
        names = ", ".join(f"`{field.name}`" for field in fields)
        return _wrap(f"{about}, with {names}.", 12, "    ")

    def _errors_of(self, method: MethodDescriptorProto) -> list[tuple[str, str]]:
        rule = self._rule_of(method)
        is_named = "=" in rule.template
        reasons = {*rule.reasons, *(["NOT_FOUND"] if is_named else [])}
        return [error for reason, error in ERRORS.items() if reason in reasons]


def _load_declarations(root: Path) -> Any:
    """Load the server's module that reads declarations. It needs nothing but protobuf, so a build can run it."""
    path = root / "server" / "seatwise_server" / "services" / "declarations.py"
    spec = importlib.util.spec_from_file_location("seatwise_declarations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _is_generated(method: MethodDescriptorProto) -> bool:
    return not (method.client_streaming or method.server_streaming or method.name in BY_HAND)


def _value_of(field: FieldDescriptorProto) -> str:
    """Return the value of a field from its parameter. A call that is repeated has one id, also where its caller gave none."""
    return f"{field.name} or str(uuid4())" if field.name == "request_id" else field.name


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _imperative(comment: str) -> str:
    """Return "Gets one match." as "Get one match."."""
    verb, _, rest = comment.partition(" ")
    stem = verb.removesuffix("es") if verb.endswith(("sses", "shes", "ches")) else verb.removesuffix("s")
    return f"{stem} {rest}"


def _tell_right(rule: Any) -> str:
    needed = RIGHTS.get(rule.right, f"Needs the scope {rule.right}.")
    of_owners = " Owners may call it for bots and tokens of their own." if rule.is_for_owners else ""
    return f"{needed}{of_owners}".strip()


def _wrap(text: str, hanging: int, indent: str = "") -> list[str]:
    """Wrap text for a docstring whose lines are indented by 8, with `hanging` as the indent of further lines of the module."""
    return textwrap.wrap(
        text, 101, initial_indent=indent, subsequent_indent=" " * (hanging - 8), break_long_words=False
    )  # fmt: skip
