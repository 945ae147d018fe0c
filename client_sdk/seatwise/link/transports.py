"""Chooses the transport of a bot by the scheme of its address."""

from __future__ import annotations

from seatwise.errors import UsageError
from seatwise.link.endpoint import is_rest_address, is_web_socket_address
from seatwise.link.rest_wire import RestWire
from seatwise.link.security import Security
from seatwise.link.wire import GrpcWire, Wire


def choose_wire(address: str, token: str, front_door: bool, security: Security) -> Wire:
    """Return the wire to the server at this address. Raises `UsageError` if its transport is not installed."""
    if is_rest_address(address):
        return RestWire(address, token, security)
    if not is_web_socket_address(address):
        return GrpcWire(address, token, front_door, security)
    try:
        from seatwise.link.web_socket_wire import WebSocketWire
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"{address} needs the extra \"ws\": pip install '.[ws]' in a clone of the repository "
            f"({missing.name} is not installed)"
        ) from None
    return WebSocketWire(address, token, front_door, security)
