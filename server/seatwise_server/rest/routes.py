"""Which URL is which method, as the protos declare it in the syntax of google.api.http."""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

# The descriptors of the services must be known before they are looked up.
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
from seatwise_server.services.declarations import MethodRule, method_rules

NO_BODY = ""
WHOLE_BODY = "*"
"""The body is the request, except the field that the path holds."""

_VARIABLE = re.compile(r"\{(\w+)=([^}]+)\}")
_IRREGULAR_SINGULARS = {"matches": "match"}


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
        """The type of the request."""
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
        """Puts the values of `path_parameters` into `name_pattern`: ["my-bot", "1"] gives bots/my-bot/versions/1."""
        remaining = iter(values)
        return "/".join(next(remaining) if part == "*" else part for part in self.name_pattern.split("/"))


def _route_of(method: MethodDescriptor, rule: MethodRule) -> HttpRoute:
    variable = _VARIABLE.search(rule.template)
    field, pattern = variable.groups() if variable else ("", "")
    path = rule.template.replace(variable[0], _with_parameters(pattern)) if variable else rule.template
    body = rule.body or (WHOLE_BODY if rule.verb == "POST" else NO_BODY)
    return HttpRoute(method, rule.verb, rule.template, body, field, pattern, path, rule.reasons)


def _with_parameters(pattern: str) -> str:
    """Names each variable part after its collection: matches/* becomes matches/{match}."""
    parts = pattern.split("/")
    return "/".join(
        f"{{{_singular_of(parts[place - 1])}}}" if part == "*" else part for place, part in enumerate(parts)
    )


def _singular_of(collection: str) -> str:
    return _IRREGULAR_SINGULARS.get(collection, collection.removesuffix("s"))


HTTP_ROUTES = tuple(
    _route_of(descriptor_pool.Default().FindMethodByName(name), rule)
    for name, rule in method_rules().items()
    if rule.verb
)
