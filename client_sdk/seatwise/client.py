"""A client for programs without an event loop that read, host and manage matches, ladders and leagues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from seatwise.async_client import CALL_PATIENCE_S, AsyncClient, MatchList, Page, Registered
from seatwise.defaults import ADDRESS
from seatwise.link.security import SecurityOptions
from seatwise.v1 import match_service_pb2
from seatwise.v1.client_methods import Result, WaitingMethods

P = ParamSpec("P")
R = TypeVar("R")


def _waiting(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Client, P], R]:
    """Return the method of `Client` that calls this method and waits for it: same parameters, result and docstring."""

    @wraps(method)
    def call_and_wait(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._runner.run(method(self._client, *args, **kwargs))

    call_and_wait.__qualname__ = f"Client.{method.__name__}"
    return call_and_wait


class Client(WaitingMethods):
    """Calls a server from code without an event loop. Use it in a `with` statement, or close it.

    The methods are those of `AsyncClient`, with the same results and errors. Each method waits for the answer.
    See `AsyncClient` for the arguments.

    Example:
        with Client("https://host:7433", token="...") as client:
            print(client.get_match("matches/1a2b").state)
    """

    _client: AsyncClient

    def __init__(
        self,
        address: str = ADDRESS,
        token: str | None = None,
        *,
        patience_s: float = CALL_PATIENCE_S,
        **security: Unpack[SecurityOptions],
    ) -> None:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(_make_client(address, token, patience_s, security))
        except BaseException:
            self._runner.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._runner.run(self._client.close())
        self._runner.close()

    def _wait_for(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(coroutine)

    register_bot = _waiting(AsyncClient.register_bot)
    set_bot_kind = _waiting(AsyncClient.set_bot_kind)
    create_match = _waiting(AsyncClient.create_match)
    list_matches = _waiting(AsyncClient.list_matches)
    create_league = _waiting(AsyncClient.create_league)

    def watch_match(self, name: str) -> Iterator[match_service_pb2.WatchMatchResponse]:
        """Watch a match as a spectator, from now to its end. See `AsyncClient.watch_match` for the arguments and errors."""
        responses = self._client.watch_match(name)
        try:
            while (response := self._runner.run(_next_response(responses))) is not None:
                yield response
        finally:
            self._runner.run(responses.aclose())


async def _make_client(
    address: str, token: str | None, patience_s: float, security: SecurityOptions
) -> AsyncClient:
    """Make the client in the loop: a channel belongs to the loop in which it is made."""
    return AsyncClient(address, token, patience_s=patience_s, **security)


async def _next_response(
    responses: AsyncGenerator[match_service_pb2.WatchMatchResponse],
) -> match_service_pb2.WatchMatchResponse | None:
    return await anext(responses, None)


__all__ = ["AsyncClient", "Client", "MatchList", "Page", "Registered"]
