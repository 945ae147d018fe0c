"""Calls methods of a unary service from the terminal: one call, all pages of a list, a verb of a command."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from seatwise.cli.arguments import add_security_arguments, parse_time, security_of
from seatwise.cli.tokens import token_at
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import ServerFailedError, UnavailableError, UsageError, from_rpc
from seatwise.link.dialing import explain_failure, open_blocking_channel
from seatwise.link.endpoint import Endpoint, refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security

RPC_TIMEOUT_S = 10.0
NOT_CONNECTED = "cannot connect"
"""The text of the error if no server has received the call."""

Call = Callable[[str, Any], Any]
"""Takes a method's name and its request, and returns the response. Raises `SeatwiseError`."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the server, the token and the form of the answer."""
    group = parser.add_argument_group(
        "the server and the answer"
    )  # help shows it after the verb's own options
    group.add_argument("--address", default=ADDRESS, help="address of a gateway (default: %(default)s)")
    group.add_argument(
        "--token",
        help=f"token to send (default: ${TOKEN_VARIABLE}, or the admin token of a server on this machine)",
    )
    group.add_argument("--json", action="store_true", help="print one line of JSON for each entry")
    add_security_arguments(parser)


def add_span(parser: ArgumentParser, what: str) -> None:
    """Add --since and --until, for `what`, such as "matches that were created"."""
    for option, when in (("--since", "then or later"), ("--until", "before then")):
        parser.add_argument(
            option, type=parse_time, metavar="TIME",
            help=f"only {what} {when}: 2026-11-22, 2026-11-22T18:00 (local time), or 30m, 12h or 7d ago",
        )  # fmt: skip


def parse_options(given: Iterable[str]) -> dict[str, str]:
    """Return the options of a game that were given as NAME=VALUE. Raises `UsageError`."""
    pairs = [option.partition("=") for option in given]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise UsageError(f"--option {name}{equals}{value}: write NAME=VALUE, as in rounds=1")
    return {name: value for name, _, value in pairs}


def token_of(args: Namespace, *, as_admin: bool = True) -> str:
    """Return the token that was given, or this machine's admin token; empty if there is none."""
    return token_at(args.address, args.token, as_admin=as_admin)


def server_of(args: Namespace, token: str) -> tuple[Endpoint, Security]:
    """Return the server and how to reach it. Raises `EncryptionError` if the token would travel in clear."""
    security = Security.resolve_options(**security_of(args))
    endpoint = resolve_endpoint(args.address, insecure=security.insecure)
    refuse_clear_text(endpoint, token, insecure=security.insecure)
    return endpoint, security


@contextmanager
def open_service(
    args: Namespace, stub_of: Callable[[grpc.Channel], Any], *, as_admin: bool = True
) -> Iterator[Call]:
    """Open a service to call its methods.

    This machine's admin token is sent only if `as_admin`, and never to a server on another machine, unless the
    arguments name it.
    """
    token = token_of(args, as_admin=as_admin)
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    endpoint, security = server_of(args, token)
    with open_blocking_channel(endpoint, security) as channel:
        stub = stub_of(channel)

        def ask_once(method: str, request: Any, *, waits: bool) -> Any:
            try:
                return getattr(stub, method)(
                    request, metadata=metadata, timeout=RPC_TIMEOUT_S, wait_for_ready=waits
                )
            except grpc.RpcError as error:
                raise explain_failure(endpoint, security, from_rpc(error)) from error

        def ask(method: str, request: Any) -> Any:
            try:
                return ask_once(method, request, waits=False)
            except UnavailableError as error:
                if NOT_CONNECTED not in error.message:
                    raise
            return ask_once(method, request, waits=True)  # the server may be starting: wait for it

        yield ask


def read_pages(ask: Call, method: str, request: Any) -> Iterator[Any]:
    """Yield the responses of all pages of a list. `request` asks for the first page, and then for each next one."""
    while True:
        page = ask(method, request)
        yield page
        request.page_token = next_page(request.page_token, page)
        if not request.page_token:
            return


def next_page(token: str, page: Any) -> str:
    """Return the token of the page after this one, which was asked for with `token`; empty after the last one.

    Raises `ServerFailedError` if it is the same page again: the list would have no end.
    """
    if page.next_page_token and page.next_page_token == token:
        raise ServerFailedError("the server names the same page of a list as the next one; tell its operator")
    following: str = page.next_page_token
    return following


def read_entries(ask: Call, method: str, request: Any, field: str) -> Iterator[Any]:
    """Yield the entries in a field of all pages of a list."""
    for page in read_pages(ask, method, request):
        yield from getattr(page, field)


def to_dict(message: Any) -> dict[str, Any]:
    """Return a message as JSON has it, with the field names of its proto and with empty fields."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def add_service_verb(
    verbs: Any,
    stub_of: Callable[[grpc.Channel], Any],
    name: str,
    text: str,
    act: Callable[[Call, Namespace], None],
) -> ArgumentParser:
    """Add a verb that opens the service, calls `act`, and ends with exit code 0 unless that raises."""
    parser: ArgumentParser = verbs.add_parser(name, help=text, description=text)
    add_arguments(parser)

    def run(args: Namespace) -> int:
        with open_service(args, stub_of) as ask:
            act(ask, args)
        return 0

    parser.set_defaults(run=run)
    return parser
