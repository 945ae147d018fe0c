"""Which URL is which method, as the protos declare it in the syntax of google.api.http."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from starlette.requests import Request
from starlette.responses import Response

from seatwise.v1 import (  # noqa: F401
    access_service_pb2,
    admin_service_pb2,
    bot_service_pb2,
    game_service_pb2,
    ladder_service_pb2,
    league_service_pb2,
    match_service_pb2,
    owner_service_pb2,
)
from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_call import HttpRefusal
from seatwise_server.services.declarations import MethodRule, method_rules

NO_BODY = ""
WHOLE_BODY = "*"
"""The body is the request, except the field that the path holds."""

_VARIABLE = re.compile(r"\{(\w+)=([^}]+)\}")
_PARAMETERS = {"matches": "match", "tokens": "id"}
"""A token is what callers send. Its resource has an id, which is no secret."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """The URL of one method."""

    method: MethodDescriptor
    verb: str
    """GET, POST or DELETE."""
    template: str
    """As google.api.http has it: /v1/{name=matches/*}:abort."""
    body: str
    """`WHOLE_BODY`, `NO_BODY`, or the field that the body becomes."""
    path_field: str
    """The field of the request that the path holds; empty if there is none."""
    name_pattern: str
    """The form of the value of `path_field`: bots/*/versions/*."""
    path: str
    """As OpenAPI has it: /v1/bots/{bot}/versions/{version}."""
    own_reasons: tuple[str, ...]
    """The reasons for which only this method is refused."""

    @property
    def operation(self) -> str:
        """The method's name as gRPC has it: /seatwise.v1.MatchService/GetMatch."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    @property
    def request(self) -> Descriptor:
        return self.method.input_type

    @property
    def body_type(self) -> Descriptor | None:
        """The type of the body; None without one."""
        if self.body in (NO_BODY, WHOLE_BODY):
            return self.request if self.body else None
        return self.request.fields_by_name[self.body].message_type

    @property
    def path_parameters(self) -> list[str]:
        """The variable parts of `path`, in order: ["bot", "version"]."""
        return re.findall(r"\{(\w+)\}", self.path)

    @property
    def query_fields(self) -> list[FieldDescriptor]:
        """The fields of the request that are query parameters."""
        if self.body == WHOLE_BODY:
            return []
        return [field for field in self.request.fields if field.name not in (self.path_field, self.body)]

    def resource_name(self, values: list[str]) -> str:
        """Put the values of `path_parameters` into `name_pattern`: ["my-bot", "1"] gives bots/my-bot/versions/1."""
        return self.name_pattern.replace("*", "{}").format(*values)


def _route_of(method: MethodDescriptor, rule: MethodRule) -> HttpRoute:
    variable = _VARIABLE.search(rule.template)
    field, pattern = variable.groups() if variable else ("", "")
    path = rule.template.replace(variable[0], _with_parameters(pattern)) if variable else rule.template
    body = rule.body or (WHOLE_BODY if rule.verb == "POST" else NO_BODY)
    return HttpRoute(method, rule.verb, rule.template, body, field, pattern, path, rule.reasons)


def _with_parameters(pattern: str) -> str:
    """Name each variable part after its collection: leagues/* becomes leagues/{league}."""

    def name_part(found: re.Match[str]) -> str:
        collection = found[1]
        return f"{collection}/{{{_PARAMETERS.get(collection, collection.removesuffix('s'))}}}"

    return re.sub(r"(\w+)/\*", name_part, pattern)


def find_method(operation: str) -> MethodDescriptor:
    """Return the descriptor of a method: /seatwise.v1.MatchService/GetMatch."""
    return descriptor_pool.Default().FindMethodByName(operation[1:].replace("/", "."))


HTTP_ROUTES = tuple(
    _route_of(find_method(operation), rule) for operation, rule in method_rules().items() if rule.verb
)


# Finds the endpoint of a URL. A tree of path parts costs the same for the first route and for the last.

Endpoint: TypeAlias = Callable[[Request, list[str]], Awaitable[Response]]
"""Answers a request; the list has the values of the variable parts of the path."""


@dataclass(frozen=True, slots=True)
class FoundEndpoint:
    """The endpoint of a URL."""

    name: str
    """The gRPC method behind it, or the path of what is no method; for the log."""
    endpoint: Endpoint
    path: str
    values: list[str]


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    """By path part; `{}` stands for every part."""
    endpoints: dict[str, tuple[str, Endpoint, str]] = field(default_factory=dict)
    """By verb: the name and the endpoint."""
    answers_head: bool = True

    def verbs(self) -> set[str]:
        """Return those that are served here."""
        return {*self.endpoints, *(["HEAD"] if self.answers_head and "GET" in self.endpoints else [])}


_ANY_PART = "{}"


class UrlTree:
    """Endpoints by path and verb. A path is written as OpenAPI has it: /v1/matches/{match}:abort."""

    def __init__(self) -> None:
        self._root = _Node()

    def add_endpoint(
        self, path: str, verb: str, name: str, endpoint: Endpoint, *, answers_head: bool = True
    ) -> None:
        """Add an endpoint. A GET answers HEAD too, unless `answers_head` says that it changes something."""
        node = self._root
        for part in _split_path(path):
            key = _ANY_PART if part.startswith("{") else part
            node = node.children.setdefault(key, _Node())
        node.endpoints[verb] = (name, endpoint, path)
        node.answers_head &= answers_head

    def find_endpoint(self, raw_path: str, verb: str) -> FoundEndpoint:
        """Return the endpoint. Raises `Refusal` NOT_FOUND, or 405 METHOD_NOT_ALLOWED with the verbs that are served."""
        node, values = self._find_node(raw_path)
        if verb not in node.verbs():
            allowed = ", ".join(sorted(node.verbs()))
            message = f"there is no {verb[:10]} here; there is {allowed}"
            raise HttpRefusal(405, "METHOD_NOT_ALLOWED", message, {"allow": allowed})
        return FoundEndpoint(*node.endpoints["GET" if verb == "HEAD" else verb], values)

    def _find_node(self, raw_path: str) -> tuple[_Node, list[str]]:
        node, values = self._root, []
        for part in _split_path(raw_path):
            child = node.children.get(part)
            if child is None:
                child = node.children.get(_ANY_PART)
                if child is None or not part or part.startswith(":"):
                    raise _no_such_url(raw_path)
                values.append(_decode_part(part, raw_path))
            node = child
        if not node.endpoints:
            raise _no_such_url(raw_path)
        return node, values


def _split_path(path: str) -> list[str]:
    """Split off the verb after the colon as a part of its own, which begins with the colon."""
    head, _, last = path.rpartition("/")
    last, colon, verb = last.partition(":")
    return [*head.split("/"), last, *([colon + verb] if colon else [])]


def _decode_part(part: str, raw_path: str) -> str:
    """Undo percent encoding. No name has a slash or a colon in one of its parts, however it is written."""
    if "%" not in part:
        return part
    try:
        decoded = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise _no_such_url(raw_path) from None
    if "/" in decoded or ":" in decoded:
        raise _no_such_url(raw_path)
    return decoded


def _no_such_url(raw_path: str) -> Refusal:
    return Refusal("NOT_FOUND", f"there is nothing at {raw_path[:80]!r}; /v1/openapi.json lists all URLs")
