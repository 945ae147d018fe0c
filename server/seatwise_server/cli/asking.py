"""Calls of a unary service from the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from seatwise.cli.tokens import token_at
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import from_rpc

TIMEOUT_S = 10.0

Call = Callable[[str, Any], Any]
"""A method's name and its request; its response, or a SeatwiseError."""


def add_arguments(parser: ArgumentParser) -> None:
    """Where the server is, who asks, and how the answer is written."""
    parser.add_argument("--address", default=ADDRESS, help="address of a gateway (default: %(default)s)")
    parser.add_argument(
        "--token",
        help=f"token to send (default: ${TOKEN_VARIABLE}, or the admin token of a server on this machine)",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each entry")


def token_of(args: Namespace, *, as_admin: bool = True) -> str:
    """The one that was given, or this machine's admin token; empty if there is none."""
    return token_at(args.address, args.token, as_admin=as_admin)


@contextmanager
def service(
    args: Namespace, stub_of: Callable[[grpc.Channel], Any], *, as_admin: bool = True
) -> Iterator[Call]:
    """An admin token is shown to no other machine's server, unless it is named; and only where one is needed."""
    token = token_of(args, as_admin=as_admin)
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(args.address.removeprefix("http://")) as channel:
        stub = stub_of(channel)

        def ask(method: str, request: Any) -> Any:
            try:
                return getattr(stub, method)(
                    request, metadata=metadata, timeout=TIMEOUT_S, wait_for_ready=True
                )
            except grpc.RpcError as error:
                raise from_rpc(error) from error

        yield ask
