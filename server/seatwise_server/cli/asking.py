"""Calls methods of a unary service from the terminal: one call, all pages of a list, a verb of a command."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from seatwise.cli.arguments import add_security_arguments, parse_count, parse_time, security_of
from seatwise.cli.tokens import token_at
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import ServerFailedError, UnavailableError, UsageError, from_rpc
from seatwise.link.dialing import explain_failure, open_blocking_channel
from seatwise.link.endpoint import Endpoint, refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security
from seatwise.v1.time_control_pb2 import TimeControl
from seatwise_referee.games.registry import GAMES
from seatwise_server.cli import table

RPC_TIMEOUT_S = 10.0
NOT_CONNECTED = "cannot connect"
"""The text of the error if no server has received the call."""

Call = Callable[[str, Any], Any]
"""Takes a method's name and its request, and returns the response. Raises `SeatwiseError`."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the server, the token and the form of the answer."""
    group = parser.add_argument_group("the server and the answer")  # after the options of the verb itself
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


def add_rules(parser: ArgumentParser) -> None:
    """Add --option, --free-ms and --bank-ms, which `parse_options` and `time_control_of` read."""
    text = "option of the game, such as rounds=1"
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "free time for each question, in ms"
    parser.add_argument("--free-ms", type=int, default=0, metavar="MS", help=text)
    parser.add_argument("--bank-ms", type=int, metavar="MS", help="extra time for the whole match, in ms")


def time_control_of(args: Namespace, game: str) -> TimeControl:
    """Return the time control that the arguments of `add_rules` name for this game."""
    free_ms = dict.fromkeys(GAMES[game].paces if game in GAMES else (), args.free_ms)
    return TimeControl(free_ms=free_ms if args.free_ms else {}, bank_ms=args.bank_ms)


def add_bot(parser: ArgumentParser) -> None:
    """Add the argument `bot`, which `full_bot_name` completes."""
    parser.add_argument("bot", help="name of the bot: bots/NAME/versions/V, or NAME for version 1")


def full_bot_name(text: str) -> str:
    """Return the full name of a bot, for its name or its full name."""
    return text if "/" in text else f"bots/{text}/versions/1"


def add_count(parser: ArgumentParser, what: str) -> None:
    """Add --count, for `what`, such as "matches"."""
    text = f"number of {what} (default: %(default)s)"
    parser.add_argument("--count", type=parse_count, default=20, metavar="N", help=text)


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
    """Return the responses of all pages of a list, from the page on for which `request` asks."""

    def list_page(token: str) -> Any:
        request.page_token = token
        return ask(method, request)

    return follow_pages(list_page, request.page_token)


def follow_pages(list_page: Callable[[str], Any], token: str = "") -> Iterator[Any]:
    """Yield all pages of a list, from that with this token on. `list_page` returns the page with a token.

    Raises `ServerFailedError` if the server names a page as the next one of itself: the list would have no end.
    """
    while True:
        page = list_page(token)
        yield page
        if not page.next_page_token:
            return
        if page.next_page_token == token:
            raise ServerFailedError(
                "the server names the same page of a list as the next one; tell its operator"
            )
        token = page.next_page_token


def read_entries(ask: Call, method: str, request: Any, field: str) -> Iterator[Any]:
    """Yield the entries in a field of all pages of a list."""
    for page in read_pages(ask, method, request):
        yield from getattr(page, field)


def to_dict(message: Any) -> dict[str, Any]:
    """Return a message as JSON has it, with the field names of its proto and with empty fields."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def show_entries(
    title: str,
    columns: Sequence[str],
    row_of: Callable[[Any], Sequence[str]],
    found: Sequence[Any],
    args: Namespace,
    none: str = "There are none.",
) -> None:
    """Print the entries of a list as a table, or as lines of JSON; the sentence `none` if there are none."""
    if args.json:
        for each in found:
            print(json.dumps(to_dict(each)))
    elif found:
        table.show_table(title, columns, list(map(row_of, found)))
    else:
        print(none)


def show_answer(message: Any, text: str, args: Namespace, **more: str) -> None:
    """Print the text, or with --json the message, with `more` fields."""
    print(json.dumps({**to_dict(message), **more}) if args.json else text)


def add_verb(verbs: Any, name: str, text: str, **defaults: Any) -> ArgumentParser:
    """Add a verb with the arguments of `add_arguments`; its parsed arguments have these values, too."""
    parser: ArgumentParser = verbs.add_parser(name, help=text, description=text)
    add_arguments(parser)
    parser.set_defaults(**defaults)
    return parser


def add_service_verb(
    stub_of: Callable[[grpc.Channel], Any], verbs: Any, name: str, text: str, act: Callable[[Call, Namespace], None]
) -> ArgumentParser:  # fmt: skip
    """Add a verb that opens the service, calls `act`, and ends with exit code 0 unless that raises."""

    def run(args: Namespace) -> int:
        with open_service(args, stub_of) as ask:
            act(ask, args)
        return 0

    return add_verb(verbs, name, text, run=run)
