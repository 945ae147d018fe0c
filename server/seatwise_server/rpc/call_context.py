"""Reads the token and the peer of a call from its gRPC context."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc

from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


async def authorize_call(authenticator: Authenticator, method: str, context: Context) -> Caller:
    """Returns the caller if it may call this method. Raises `Refusal` if it may not."""
    return await authenticator.authorize(method, _read_token(context), context.peer())


def is_anonymous(context: Context) -> bool:
    """Returns whether the caller sent no token, not even an unreadable one."""
    return all(key != "authorization" for key, _ in context.invocation_metadata() or ())


def _read_token(context: Context) -> str | None:
    """Returns the token of the metadata `authorization: Bearer <token>`."""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return read_bearer_token(str(value))
    return None
