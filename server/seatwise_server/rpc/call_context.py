"""Reads the token and the peer of a call from its gRPC context."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import grpc

from seatwise_server.proxy_networks import ProxyNetworks
from seatwise_server.services.authentication import Authenticator, Caller, read_bearer_token
from seatwise_server.services.read_budget import address_of_peer

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


async def authorize_call(
    authenticator: Authenticator, method: str, context: Context, peer: str = ""
) -> Caller:
    """Returns the caller if it may call this method. Raises `Refusal` if it may not.

    `peer` is its address if a proxy has told it; otherwise the address that the transport sees counts.
    """
    return await authenticator.authorize(method, _read_token(context), peer or context.peer())


def is_anonymous(context: Context) -> bool:
    """Returns whether the caller sent no token, not even an unreadable one."""
    return all(key != "authorization" for key, _ in context.invocation_metadata() or ())


def _read_token(context: Context) -> str | None:
    """Returns the token of the metadata `authorization: Bearer <token>`."""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return read_bearer_token(str(value))
    return None


class CallerAddresses:
    """Finds the addresses of callers, also of those behind a proxy that the operator has named."""

    def __init__(self, proxies: Collection[str] = ()) -> None:
        """`proxies` are addresses or networks of proxies, whose `x-forwarded-for` is believed."""
        self._proxies = ProxyNetworks(proxies)

    def peer_of(self, context: Context) -> str:
        """Returns the address of the caller in the form of gRPC: `ipv4:192.0.2.1:5123`, without the port if a proxy has told it."""
        peer = str(context.peer())
        address = address_of_peer(peer)
        if not self._proxies.has_address(address):
            return peer
        metadata = context.invocation_metadata() or ()
        forwarded = [str(value) for key, value in metadata if key == "x-forwarded-for"]
        caller = self._proxies.caller_behind(address, forwarded)
        if not caller:
            return peer
        return f"ipv6:[{caller}]" if ":" in caller else f"ipv4:{caller}"
