"""Language models at a server: a real MCP client over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from harness import House

from seatwise import run_async

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not find_spec("mcp"), reason="the extra mcp is not installed"),
]

LONG_S = 90.0
TOOLS = {"find_match", "wait", "show_view", "list_moves", "make_move", "resign", "read_rules", "show_result"}
QUEUE = "casual-2"


@asynccontextmanager
async def opponent(house: House) -> AsyncIterator[None]:
    """A greedy bot that waits in the queue."""
    token = (await house.bot()).token
    playing = asyncio.create_task(run_async("greedy", address=house.address, token=token, queues=[QUEUE]))
    try:
        yield
    finally:
        playing.cancel()
        await asyncio.wait({playing})


def command_of(house: House, *more: str) -> list[str]:
    """The arguments of the MCP server."""
    return ["-m", "seatwise", "mcp", "--address", house.address, "--queue", QUEUE, *more]


async def play_and_resign(client: Any, token: str) -> None:
    """Play three moves by tools, and resign. Nothing that is told holds the token."""
    seen: list[str] = []

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        seen.append(repr(result))
        return result

    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    assert "The highest value wins" in repr(await call("read_rules"))
    assert "There is no match. Call find_match" in repr(await call("make_move", move="R3"))
    told, moves = (await call("find_match")).structured_content, 0
    while moves < 3:
        assert told["state"] in ("your_turn", "others_think", "finding_match"), told
        if told["state"] != "your_turn":
            told = (await call("wait")).structured_content
            continue
        assert (await call("make_move", move="Z9")).is_error
        listed = (await call("list_moves")).structured_content["legal_moves"]
        view = (await call("show_view")).structured_content
        assert listed == view["legal_moves"]
        assert view["view"]["round"] == 1
        told, moves = (await call("make_move", move=listed[0])).structured_content, moves + 1
    while told["state"] not in ("your_turn", "others_think"):
        told = (await call("wait")).structured_content
    told = (await call("resign")).structured_content
    while told["state"] != "match_over":
        told = (await call("wait")).structured_content
    result = (await call("show_result")).structured_content
    assert result["endings"][result["seat"]] == "RESIGNED"
    assert not [text for text in seen if token in text]


async def test_a_model_plays_over_standard_input_and_output(house: House) -> None:
    token = (await house.bot()).token
    import mcp  # it takes a second, and only these tests need it
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(
        command=sys.executable, args=command_of(house), env={"SEATWISE_TOKEN": token}
    )
    # The library's default is the stderr of its first import, which may be one that a test captured.
    transport = stdio_client(server, errlog=sys.__stderr__ or sys.stderr)
    async with asyncio.timeout(LONG_S), opponent(house), mcp.Client(transport) as client:
        await play_and_resign(client, token)


@pytest.mark.slow
async def test_a_model_plays_over_http_with_the_bearer_and_not_without(house: House, tmp_path: Path) -> None:
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    token, file = (await house.bot()).token, tmp_path / "bearer"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command_of(house, "--http", "--port", str(port), "--bearer-file", str(file)),
        env={"SEATWISE_TOKEN": token}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        async with asyncio.timeout(LONG_S), opponent(house):
            await wait_until_open(port)
            assert file.stat().st_mode & 0o077 == 0
            bearer = file.read_text()
            async with httpx2.AsyncClient() as anyone:
                for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {token}"}):
                    assert (await anyone.post(url, json={}, headers=wrong)).status_code == 401
            headers = {"Authorization": f"Bearer {bearer}"}
            offer = {
                "Connection": "Upgrade, HTTP2-Settings",
                "Upgrade": "h2c",
                "HTTP2-Settings": "AAMAAABkAAQCAAAAAAIAAAAA",
            }
            accept = {"Accept": "application/json, text/event-stream"}
            about = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "java", "version": "1"},
            }
            call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
            async with httpx2.AsyncClient(headers=headers | offer | accept) as java:
                assert "seatwise" in (await java.post(url, json=call)).text
            async with httpx2.AsyncClient(headers=headers, timeout=LONG_S) as http:
                transport = streamable_http_client(url, http_client=http)
                async with mcp.Client(transport) as client:
                    await play_and_resign(client, token)
    finally:
        process.terminate()
        _, errors = await process.communicate()
    assert token not in errors.decode()
    assert bearer not in errors.decode()


async def wait_until_open(port: int) -> None:
    """Wait until something listens there."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
