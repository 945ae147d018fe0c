"""Calls the operations of the API for a page, with the rights of the person who looks at it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextvars import ContextVar
from typing import Any

from starlette.requests import Request

from seatwise_server.services.authentication import Authenticator, Caller
from seatwise_server.services.operations import Operation


class PageCalls:
    """The operations of this process, as pages call them. A page shows nothing that the API does not show."""

    def __init__(self, operations: Iterable[Operation], authenticator: Authenticator) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._authenticator = authenticator

    async def call(self, method: str, token: str | None = None, **fields: Any) -> Any:
        """Calls a method, such as MatchService/GetMatch, and returns its response. Without a token anybody may see it.

        Raises `Refusal` as the operation does, or if the token does not give the right, or if the caller reads too much.
        """
        operation, caller, request = await self._prepare_call(method, token, fields)
        return await operation.handle(caller, request)

    async def admit(self, method: str, **fields: Any) -> None:
        """Raises `Refusal` where anybody who called this method now would be refused before it began."""
        await self._prepare_call(method, None, fields)

    async def open_stream(self, method: str, **fields: Any) -> AsyncGenerator[Any, None]:
        """Calls a method that streams, as anybody may, and returns its responses."""
        await self.admit(method, **fields)
        return await self.open_shared_stream(method, **fields)

    async def open_shared_stream(self, method: str, **fields: Any) -> AsyncGenerator[Any, None]:
        """Calls a method that streams, for several people who have been admitted each."""
        operation, caller, request = await self._find_call(method, None, fields)
        responses: AsyncGenerator[Any, None] = operation.handle(caller, request)
        return responses

    async def _prepare_call(
        self, method: str, token: str | None, fields: dict[str, Any]
    ) -> tuple[Operation, Caller, Any]:
        operation, caller, request = await self._find_call(method, token, fields)
        await operation.admit(caller, request)
        return operation, caller, request

    async def _find_call(
        self, method: str, token: str | None, fields: dict[str, Any]
    ) -> tuple[Operation, Caller, Any]:
        operation = self._operations[f"/seatwise.v1.{method}"]
        caller = await self._authenticator.authorize(operation.method, token, _peer.get())
        return operation, caller, operation.request_type(**fields)


_peer: ContextVar[str] = ContextVar("peer of a page", default="")


def peer_of_page() -> str:
    """Returns the address of the caller of the page that is made now, as host:port."""
    return _peer.get()


def note_peer(request: Request) -> None:
    """Notes who asks for the page that is made from now on: reads are counted by address."""
    _peer.set(f"{request.client.host}:{request.client.port}" if request.client else "")


def address_of(request: Request) -> str:
    """Returns the address at which the browser reached this server, such as https://example.org; empty if it names none."""
    host = request.headers.get("host", "")
    is_plain = host.isascii() and all(each.isalnum() or each in "-.:[]_" for each in host)
    return f"{request.url.scheme}://{host}" if host and is_plain else ""
