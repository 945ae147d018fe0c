"""The connections of an HTTP port: bots play on while strangers have all of them, and more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from harness.http import http_connection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from seatwise_server.counts import COUNTS
from seatwise_server.rest.http_protocol import ABOVE
from seatwise_server.rest.http_server import HttpServer, bind_port

pytestmark = pytest.mark.asyncio(loop_scope="session")

MOST = 4
PLAY = "/v1/play?x=1"


@asynccontextmanager
async def filled_port(strangers: int) -> AsyncIterator[tuple[str, HttpServer]]:
    """A port of `MOST` connections, to which so many strangers have connected."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/attendance":  # a stream
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await receive()
            await receive()
        await Response("{}")(scope, receive, send)

    server, port = HttpServer(answer, MOST), bind_port("127.0.0.1", 0)
    await server.start(port, None)
    address = f"http://127.0.0.1:{port.getsockname()[1]}"
    async with AsyncExitStack() as crowd:
        for _ in range(strangers):
            await crowd.enter_async_context(http_connection(address))
            await asyncio.sleep(0)
        yield address, server
    await server.stop(1.0)


async def ask(address: str, path: str, token: str) -> tuple[int, str]:
    async with http_connection(address, token) as http:
        answer = await http.get(path)
        return answer.status, "" if answer.status == 200 else answer.reason


@pytest.mark.parametrize("strangers", [MOST - 1, MOST, MOST + 1, (ABOVE + 4) * MOST])
async def test_a_full_port_answers_only_bots_and_those_always(strangers: int) -> None:
    async with filled_port(strangers) as (address, server):
        refused = (429, "SERVER_FULL")
        assert await ask(address, "/v1/games", "t") == ((200, "") if strangers < MOST else refused)
        for _ in range(2 * ABOVE * MOST):  # more than there are above the number: they are given back
            assert await ask(address, PLAY, "t") == (200, "")
        assert (await ask(address, PLAY, "") == refused) is (strangers >= MOST)
        assert server.connections.is_full or strangers < MOST


async def test_a_connection_above_the_number_is_closed_after_each_response() -> None:
    async with filled_port(MOST) as (address, _), http_connection(address, "t") as http:
        assert (await http.get(PLAY)).headers["connection"] == "close"
        assert await http.ends() == b""


async def test_bots_that_play_make_way_for_nobody() -> None:
    async with filled_port(MOST) as (address, _), AsyncExitStack() as stack:
        bots = [await stack.enter_async_context(http_connection(address, "t")) for _ in range(ABOVE * MOST)]
        for bot in bots:
            await bot.send("GET", "/v1/attendance")
            await bot.answer_head()
        before = COUNTS.faults["LIMIT"]
        assert await ask(address, PLAY, "t") == (429, "SERVER_FULL")
        assert COUNTS.faults["LIMIT"] == before + 1  # it excuses bots that miss their matches
        assert not any(bot.reader.at_eof() for bot in bots)
