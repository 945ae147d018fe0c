"""Runs a bot on a server, against other bots."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Unpack

import seatwise.link  # noqa: F401  # before anything that imports grpc: it keeps its log lines out
from seatwise.bot import BotFactory, check_bot
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import MissingTokenError, UsageError
from seatwise.kits import DEFAULT_GAME, find_server_kit
from seatwise.link.bot_session import BotSession, RunPlan
from seatwise.link.endpoint import is_rest_address, is_web_socket_address
from seatwise.link.rest_wire import RestWire
from seatwise.link.run_watch import handling_signals, watching_loop
from seatwise.link.security import Security, SecurityOptions
from seatwise.link.wire import GrpcWire, Wire
from seatwise.result import Result, Summary
from seatwise.samples import sample


def choose_wire(
    address: str, token: str, front_door: bool, security: Security, transport: str = "auto"
) -> Wire:
    """Return the wire to the server at this address. Raises `UsageError` if its transport is not installed."""
    is_web_socket = is_web_socket_address(address)
    if transport not in TRANSPORTS:
        raise UsageError(f"transport is {transport!r}: write one of {', '.join(TRANSPORTS)}")
    if transport == "grpc" and (is_web_socket or is_rest_address(address)):
        raise UsageError(f"{address} is no address for gRPC: write HOST:PORT or https://HOST:PORT")
    if is_rest_address(address):
        return RestWire(address, token, security)
    by_grpc = None if is_web_socket else GrpcWire(address, token, front_door, security)
    if by_grpc and transport == "grpc":
        return by_grpc
    try:
        from seatwise.link.web_socket_wire import WebSocketFirstWire, WebSocketWire
    except ModuleNotFoundError as missing:
        if by_grpc and transport == "auto":
            return by_grpc
        raise UsageError(
            f"WebSockets need the extra \"ws\": pip install '.[ws]' in a clone of the repository "
            f"({missing.name} is not installed)"
        ) from None
    sockets = WebSocketWire(address, token, front_door and is_web_socket, security, explains=by_grpc is None)
    return WebSocketFirstWire(by_grpc, sockets, takes_any_host=transport != "auto") if by_grpc else sockets


TRANSPORTS = ("auto", "grpc", "websocket")
"""How seats are played where the address of the server is one for gRPC."""

log = logging.getLogger("seatwise")


def run(
    bot_class: BotFactory | str,
    game: str = DEFAULT_GAME,
    address: str = ADDRESS,
    token: str | None = None,
    queues: Sequence[str] | None = None,
    max_matches: int = 4,
    matches: int | None = None,
    on_result: Callable[[Result], Any] | None = None,
    handle_signals: bool = True,
    front_door: bool = False,
    transport: str = "auto",
    **security: Unpack[SecurityOptions],
) -> Summary:
    """Connect a bot to a server and let it play, until `matches` are finished or without end.

    Each match has a bot object of its own. When a connection is lost, the SDK connects again, and the bot does not
    notice. The logger "seatwise" logs what happens. It writes to standard error unless logging is configured.

    Args:
        bot_class: The class of the bot, a function that makes bots, or the name of a sample.
        game: The game that the bot plays, as in "ugo".
        address: The address of the server. `https://HOST:PORT` means TLS and `http://HOST:PORT` plain text. `HOST:PORT`
            means TLS to another machine and plain text to this one. `unix:PATH` is a socket of this machine.
            `wss://HOST:PORT` and `ws://HOST:PORT` connect by WebSocket, which needs the extra "ws". `rest+https://HOST:PORT`
            and `rest+http://HOST:PORT` play by plain HTTP.
        token: The bot's token. By default it is read from the environment variable SEATWISE_TOKEN.
        queues: The queues to wait in, at most 32, as in `["casual", "ladders/main"]`. The default is the casual queue of
            the game. With an empty list the bot plays only matches that name it.
        max_matches: The most matches that the bot plays at once, at least 1.
        matches: The number of matches after which it stops. `None` means that it plays without end.
        on_result: A function, `async` or not, that is called with the `Result` of each match. An exception is logged.
        handle_signals: Whether the first Ctrl-C or SIGTERM finishes the open matches, and the second leaves at once. After
            SIGTERM it leaves at once, too, if no server answers any more.
        front_door: Whether the referees are reached through `address` as well. A proxy there sends each stream to its
            referee.
        transport: How seats are played if `address` is one for gRPC. "websocket" plays over WebSocket where the referee
            takes it, which is faster, and over gRPC where that fails. "auto" does the same with the extra "ws", but only
            where the WebSocket has the host of gRPC. "grpc" always plays over gRPC.
        **security: Options of the encryption. Each may also be in the environment, as SEATWISE_INSECURE=1,
            SEATWISE_TLS_PIN and so on. `insecure` allows plain text to another machine. `tls_pin` is the fingerprint of
            the server's key, or a list of them. `tls_ca` is a file with the CAs to trust. `tls_cert` and `tls_key` are the
            files of a client certificate.

    Returns:
        The results of the run.

    Raises:
        UsageError: An argument makes no sense, or an event loop is running here. Use `run_async` then.
        MissingTokenError: There is no token.
        RefusedError: The server refuses the bot, e.g. because its token is revoked (`BadTokenError`), or because another
            process with the same token has replaced it (`ReplacedError`).
        EncryptionError: The token would travel in clear, or the server's certificate is not trusted.
        WrongGameError: The server offers a seat in another game.
        BotFailedError: The first bot object cannot be made or set up.

    Example:
        seatwise.run(MyBot, address="https://host:7433", token="...", matches=10)
    """
    if asyncio._get_running_loop() is not None:
        raise UsageError("an event loop is running here: write await seatwise.run_async(...) instead")
    with _logging_to_stderr():
        return asyncio.run(run_async(
            bot_class, game, address, token, queues, max_matches, matches, on_result,
            handle_signals, front_door, transport, **security,
        ))  # fmt: skip


async def run_async(
    bot_class: BotFactory | str,
    game: str = DEFAULT_GAME,
    address: str = ADDRESS,
    token: str | None = None,
    queues: Sequence[str] | None = None,
    max_matches: int = 4,
    matches: int | None = None,
    on_result: Callable[[Result], Any] | None = None,
    handle_signals: bool = False,
    front_door: bool = False,
    transport: str = "auto",
    **security: Unpack[SecurityOptions],
) -> Summary:
    """Connect a bot to a server and let it play, in a running event loop.

    See `run`. The arguments, the result and the errors are the same. Only the default of one argument differs:

    Args:
        handle_signals: Whether signals stop the bot. By default the caller handles signals.
    """
    kit = find_server_kit(game)
    plan = RunPlan(
        factory=_load_factory(bot_class, game),
        game=game,
        queues=_choose_queues(queues, kit.casual_queue),
        max_matches=_at_least_one("max_matches", max_matches),
        matches=None if matches is None else _at_least_one("matches", matches),
        on_result=on_result,
    )
    options = Security.resolve_options(**security)
    wire = choose_wire(address, _find_token(token), front_door, options, transport)
    session = BotSession(plan, wire)
    with watching_loop(), handling_signals(session) if handle_signals else nullcontext():
        summary = await session.run_session()
    log.info("%s", summary)
    return summary


# The arguments of a run


def _choose_queues(given: Sequence[str] | None, casual: str) -> tuple[str, ...]:
    if given is None:
        return (casual,)
    return (given,) if isinstance(given, str) else tuple(given)


def _load_factory(bot_class: BotFactory | str, game: str) -> BotFactory:
    if not isinstance(bot_class, str):
        return check_bot(bot_class, game)
    samples = find_server_kit(game).samples
    if bot_class not in samples:
        raise UsageError(f"{bot_class}: no such sample; the samples are {', '.join(samples)}")
    return sample(bot_class, game)


def _at_least_one(name: str, number: int) -> int:
    if number < 1:
        raise UsageError(f"{name}: must be 1 or more, not {number}")
    return number


def _find_token(given: str | None) -> str:
    token = given or os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise MissingTokenError(
            f"no token: pass token=..., or set {TOKEN_VARIABLE}. Who runs the server hands tokens out; on the "
            "server's own machine the command `seatwise bot FILE.py:CLASS` gets one by itself"
        )
    return token


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Log to standard error if the caller has not configured logging."""
    if log.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(sys.stderr), log.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
