"""The command `seatwise mcp`: lets a language model play a seat through MCP, the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from seatwise.cli.arguments import Command, add_security_arguments, security_of
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import UsageError
from seatwise.output import read_text_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatwise.bot import BotFactory
    from seatwise.kits.game_kit import GameKit
    from seatwise.mcp.model_seat import PlayMatches
    from seatwise.result import Result

BEARER_VARIABLE = "SEATWISE_MCP_BEARER"
MCP_PORT = 7436
MCP_PATH = "/mcp"
SLOW_QUEUE = "slow"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--address", default=ADDRESS, help="host:port of the server (default: %(default)s)")
    parser.add_argument(
        "--token", help=f"the bot's token (default: ${TOKEN_VARIABLE}); better not typed here"
    )
    parser.add_argument(
        "--name",
        default="language-model",
        help="name to register if there is no token, on the server's own machine",
    )
    parser.add_argument("--version", default="1", help="version of the bot (default: %(default)s)")
    parser.add_argument("--game", help="game to play (default: the first one of `seatwise games`)")
    parser.add_argument(
        "--queue", help="queue of find_match (default: slow, with minutes for each move, if the game has it)"
    )
    parser.add_argument(
        "--http", action="store_true", help="serve streamable HTTP instead of standard input and output"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address of HTTP (default: %(default)s, this machine only)"
    )
    parser.add_argument("--port", type=int, default=MCP_PORT, help="port of HTTP (default: %(default)s)")
    parser.add_argument(
        "--bearer-file", type=Path, metavar="FILE",
        help=f"file of the bearer token that HTTP clients must send (default: ${BEARER_VARIABLE}); made if it is not there",
    )  # fmt: skip
    parser.add_argument(
        "--allow-others", action="store_true", help="let other machines connect, in plain text"
    )
    add_security_arguments(parser)


def run(args: Namespace) -> int:
    """Serve until the client leaves, or until Ctrl-C."""
    import asyncio

    import seatwise.link  # noqa: F401  # before anything that imports grpc: it keeps its log lines out
    from seatwise.kits import DEFAULT_GAME, find_server_kit

    try:
        from seatwise.mcp import mcp_server  # noqa: F401
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"this command needs the extra \"mcp\": pip install '.[mcp]' in a clone of the repository ({missing.name} is not installed)"
        ) from None
    kit = find_server_kit(args.game or DEFAULT_GAME)
    token = args.token or os.environ.get(TOKEN_VARIABLE) or _own_token(args)
    bearer = _check_http(args) if args.http else ""
    asyncio.run(_serve(args, kit, token, bearer))
    return 0


def _own_token(args: Namespace) -> str:
    from seatwise.cli.tokens import slug_of, token_for

    return token_for(args.address, slug_of(args.name), args.version, **security_of(args))


def _check_http(args: Namespace) -> str:
    """Return the bearer. Raises `UsageError` if the address would let other machines connect unasked."""
    from seatwise.mcp.mcp_server import is_loopback

    if not is_loopback(args.host) and not args.allow_others:
        raise UsageError(
            f"--host {args.host} lets other machines connect, and the bearer would travel in plain text; add --allow-others if a proxy "
            "in front of it speaks TLS"
        )
    if args.bearer_file is not None:
        return _read_bearer(args.bearer_file)
    if bearer := os.environ.get(BEARER_VARIABLE, "").strip():
        return bearer
    raise UsageError(f"HTTP needs a bearer token: name a file with --bearer-file, or set {BEARER_VARIABLE}")


def _read_bearer(path: Path) -> str:
    """Return the bearer in that file, which is made if it is not there. Only its owner may read it."""

    def open_private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    try:
        if not path.exists():
            with open(path, "x", encoding="ascii", opener=open_private) as file:
                file.write(secrets.token_urlsafe(32))
        bearer = read_text_file(path).strip()
    except OSError as error:
        raise UsageError(f"--bearer-file {path}: {error.strerror}") from None
    if not bearer:
        raise UsageError(f"--bearer-file {path}: the file is empty; delete it, and a new bearer is made")
    return bearer


async def _serve(args: Namespace, kit: GameKit, token: str, bearer: str) -> None:
    from seatwise.mcp.mcp_server import McpTools, make_mcp_server, serve_http
    from seatwise.mcp.model_seat import ModelSeat

    seat = ModelSeat(kit, _make_player(args, kit, token))
    tools = McpTools(kit, seat, args.queue or _choose_queue(kit))
    base_url = f"http://{args.host}:{args.port}"
    server = make_mcp_server(tools, kit.title, bearer, base_url)
    try:
        if args.http:
            print(f"MCP at {base_url}{MCP_PATH}", file=sys.stderr, flush=True)
            await serve_http(server, args.host, args.port, MCP_PATH)
        else:
            await server.run_stdio_async()
    finally:
        await seat.leave()


def _choose_queue(kit: GameKit) -> str:
    """Return the queue with minutes for each move, if the game has one."""
    return SLOW_QUEUE if SLOW_QUEUE in {queue.name for queue in kit.queues} else kit.casual_queue


def _make_player(args: Namespace, kit: GameKit, token: str) -> PlayMatches:
    from seatwise.remote import run_async

    async def play(factory: BotFactory, queues: Sequence[str], on_result: Callable[[Result], None]) -> object:
        return await run_async(
            factory, game=kit.name, address=args.address, token=token, queues=list(queues), max_matches=1, matches=1,
            on_result=on_result, **security_of(args),
        )  # fmt: skip

    return play


COMMAND = Command("mcp", "let a language model play a seat through MCP", configure, run)
