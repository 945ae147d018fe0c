"""Finds the endpoint of a URL. A tree of path parts costs the same for the first route and for the last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from seatwise_server.refusal import Refusal
from seatwise_server.rest.http_errors import HttpRefusal

Endpoint: TypeAlias = Callable[[Request, list[str]], Awaitable[Response]]
"""Answers a request; the list has the values of the variable parts of the path."""


@dataclass(frozen=True, slots=True)
class FoundEndpoint:
    """The endpoint of a URL."""

    name: str
    """The gRPC method behind it, or the path of what is no method; for the log."""
    endpoint: Endpoint
    values: list[str]


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    """By path part; `{}` stands for every part."""
    endpoints: dict[str, tuple[str, Endpoint]] = field(default_factory=dict)
    """By verb: the name and the endpoint."""
    answers_head: bool = True

    def verbs(self) -> set[str]:
        """Returns those that are served here."""
        return {*self.endpoints, *(["HEAD"] if self.answers_head and "GET" in self.endpoints else [])}


_ANY_PART = "{}"


class UrlTree:
    """Endpoints by path and verb. A path is written as OpenAPI has it: /v1/matches/{match}:abort."""

    def __init__(self) -> None:
        self._root = _Node()

    def add_endpoint(
        self, path: str, verb: str, name: str, endpoint: Endpoint, *, answers_head: bool = True
    ) -> None:
        """Adds an endpoint. A GET answers HEAD too, unless `answers_head` says that it changes something."""
        node = self._root
        for part in _split_path(path):
            key = _ANY_PART if part.startswith("{") else part
            node = node.children.setdefault(key, _Node())
        node.endpoints[verb] = (name, endpoint)
        node.answers_head &= answers_head

    def find_endpoint(self, raw_path: str, verb: str) -> FoundEndpoint:
        """Returns the endpoint. Raises `Refusal` NOT_FOUND, or 405 METHOD_NOT_ALLOWED with the verbs that are served."""
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
    """Splits off the verb after the colon as a part of its own, which begins with the colon."""
    head, _, last = path.rpartition("/")
    last, colon, verb = last.partition(":")
    return [*head.split("/"), last, *([colon + verb] if colon else [])]


def _decode_part(part: str, raw_path: str) -> str:
    """Undoes percent encoding. No name has a slash or a colon in one of its parts, however it is written."""
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
