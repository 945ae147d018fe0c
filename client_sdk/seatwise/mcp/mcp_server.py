"""An MCP server: the tools with which a language model plays a seat. It needs the extra `mcp`."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from ipaddress import ip_address
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.exceptions import ToolError

from seatwise.errors import BadAnswerError
from seatwise.kits.game_kit import GameKit
from seatwise.mcp.model_seat import ModelSeat
from seatwise.rules import read_rules_text

INSTRUCTIONS = (
    "You play {title} against other bots on a referee service. Read the rules with read_rules. Call find_match, then make_move whenever "
    "the state is your_turn, and wait otherwise. Each call answers within 20 seconds; call wait again while the others think."
)


class McpTools:
    """The tools of one seat. Their docstrings are what a model reads."""

    def __init__(self, kit: GameKit, seat: ModelSeat, default_queue: str) -> None:
        self._kit = kit
        self._seat = seat
        self._default_queue = default_queue

    def list_tools(self) -> Mapping[str, Callable[..., Awaitable[Any]]]:
        """Return the tools by name."""
        tools: tuple[Callable[..., Awaitable[Any]], ...] = (
            self.find_match, self.wait, self.show_view, self.list_moves, self.make_move, self.resign, self.read_rules,
            self.show_result,
        )  # fmt: skip
        return {tool.__name__: _tell_errors(tool) for tool in tools}

    async def find_match(self, queue: str = "") -> dict[str, Any]:
        """Find a match and sit down. `queue` is the queue to wait in; leave it out for the default one, or write "none" to wait for a
        match that names you. Returns the state after at most 15 seconds; call wait until it is your turn."""
        return await self._seat.find_match("" if queue == "none" else queue or self._default_queue)

    async def wait(self) -> dict[str, Any]:
        """Wait until it is your turn or the match is over, at most 15 seconds. Call it again while the others think."""
        return await self._seat.wait_for_turn()

    async def show_view(self) -> dict[str, Any]:
        """Show the state of your seat: view_text is what you see as text, view is the same as structure."""
        return self._seat.describe_state()

    async def list_moves(self) -> dict[str, Any]:
        """List the moves that are legal now. Empty if it is not your turn."""
        return {"state": str(self._seat.state), "legal_moves": self._seat.list_legal_moves()}

    async def make_move(self, move: str) -> dict[str, Any]:
        """Make a move, one of the legal moves as list_moves writes them. An illegal move costs nothing. Then it waits for your next turn,
        at most 15 seconds."""
        return await self._seat.make_move(move)

    async def resign(self) -> dict[str, Any]:
        """Resign the match. You rank behind the players that stay, and this cannot be undone."""
        return await self._seat.resign_match()

    async def read_rules(self) -> dict[str, Any]:
        """Read the rules of the game."""
        no_rules = "No rules are written here; list_moves shows the legal moves."
        return {"game": self._kit.name, "rules": read_rules_text(self._kit.name) or no_rules}

    async def show_result(self) -> dict[str, Any]:
        """Show how the last match ended: points, ranks (1 is best) and endings, all by seat."""
        return self._seat.describe_result()


def _tell_errors(tool: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Turn a wrong call into an error that the model can read and mend."""

    @wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await tool(*args, **kwargs)
        except BadAnswerError as bad:
            raise ToolError(str(bad)) from None

    return call


class OneBearer:
    """Accepts one bearer token."""

    def __init__(self, bearer: str) -> None:
        self._bearer = bearer.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of the bearer, or `None` for any other token."""
        if not hmac.compare_digest(token.encode(), self._bearer):
            return None
        return AccessToken(token=token, client_id="bearer", scopes=[])


def make_mcp_server(tools: McpTools, title: str, bearer: str = "", base_url: str = "") -> MCPServer:
    """Return the MCP server of one seat. Over HTTP, at `base_url`, it accepts only requests with the bearer.

    For stdio, bearer and URL are empty.
    """
    urls = {"issuer_url": base_url, "resource_server_url": None}
    auth = AuthSettings.model_validate(urls) if bearer else None
    server = MCPServer(
        name="seatwise",
        instructions=INSTRUCTIONS.format(title=title),
        auth=auth,
        token_verifier=OneBearer(bearer) if bearer else None,
        log_level="WARNING",
    )
    for name, tool in tools.list_tools().items():
        server.add_tool(tool, name=name)
    return server


async def serve_http(server: MCPServer, host: str, port: int, path: str) -> None:
    """Serve streamable HTTP until the process is told to stop.

    The other parser that uvicorn may choose loses the body of a request that offers to go on in HTTP/2, as Java's client does.
    """
    import uvicorn

    app = server.streamable_http_app(streamable_http_path=path, host=host)
    await uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="error", http="h11")).serve()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
