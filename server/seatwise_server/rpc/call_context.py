"""What the gRPC door reads from the context of a call."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc

from seatwise_server.services.access import ACCESS
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


async def authorize_call(authenticator: Authenticator, method: str, context: Context) -> Caller:
    """Returns the caller if it may call this method; `Refusal` if not."""
    return await authenticator.authorize(ACCESS[method], _read_token(context), context.peer())


def _read_token(context: Context) -> str | None:
    """Returns the token of the metadata `authorization: Bearer <token>`."""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return read_bearer_token(str(value))
    return None
