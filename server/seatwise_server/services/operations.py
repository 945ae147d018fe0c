"""All unary and server-streaming methods of the API, as one table.

A door needs nothing else: it decodes a request of `request_type`, authorizes the caller for `access`, waits for `admit`,
calls `handle`, and encodes the response.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import Message

from seatwise_server.limits import RateLimit
from seatwise_server.services.access import ACCESS, Access
from seatwise_server.services.authentication import Caller


async def _admit_all(caller: Caller, request: Any) -> None:
    """Admit every call at once."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of the API."""

    method: str
    """Format: /seatwise.v1.MatchService/GetMatch."""
    access: Access
    request_type: type[Message]
    response_type: type[Message]
    is_streaming: bool
    """Whether `handle` returns an async iterator of responses instead of an awaitable of one."""
    handle: Callable[[Caller, Any], Any]
    admit: Callable[[Caller, Any], Awaitable[None]] = _admit_all
    """Return when it is the turn of this call: a door waits for it before `handle`."""
    show_limit: Callable[[Caller], RateLimit | None] = lambda _: None
    """Return the caller's limit; `None` if there is none."""


def operations_of(services: Mapping[str, object]) -> list[Operation]:
    """List the operations of services, each given by its proto name and the object that implements it.

    The object has a method for each RPC, named in snake case: GetMatch is `get_match(caller, request)`. Raises AttributeError where a method
    is missing, and KeyError where `ACCESS` lacks one.
    """
    return [operation for name, service in services.items() for operation in _operations(name, service)]


def _operations(name: str, service: object) -> list[Operation]:
    descriptor = descriptor_pool.Default().FindServiceByName(name)
    return [
        Operation(
            method=f"/{name}/{method.name}",
            access=ACCESS[f"/{name}/{method.name}"],
            request_type=message_factory.GetMessageClass(method.input_type),
            response_type=message_factory.GetMessageClass(method.output_type),
            is_streaming=method.server_streaming,
            handle=getattr(service, snake_case(method.name)),
        )
        for method in descriptor.methods
    ]


def snake_case(name: str) -> str:
    """Turn the name of an RPC into that of the function behind it: `GetMatch` into `get_match`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
