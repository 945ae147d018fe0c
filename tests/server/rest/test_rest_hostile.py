"""Callers of the HTTP port that dawdle, flood, lie or hang up: each is told why where it can be, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from harness import House, HttpAnswer, HttpConnection, dealt, house_in, http_connection, until

from seatwise_server.config import HttpSettings
from seatwise_server.limits import HTTP_CONNECTIONS, HTTP_REQUESTS, HTTP_STREAMS
from seatwise_server.rest import http_protocol
from seatwise_server.rest.routes import HTTP_ROUTES

pytestmark = pytest.mark.asyncio(loop_scope="session")

GET = b"GET /v1/games HTTP/1.1\r\nhost: x\r\n"


def answer_in(raw: bytes) -> HttpAnswer:
    """The one response that these bytes are."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["content-length"]) == len(body)
    return HttpAnswer(int(first.split()[1]), headers, body, head)


@asynccontextmanager
async def patient_for(seconds: float) -> AsyncIterator[None]:
    """The port waits so long for a request, instead of 10 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_protocol, "REQUEST_S", seconds)
        yield


async def is_served(house: House) -> bool:
    async with house.http() as http:
        return (await http.get("/v1/games")).status == 200


# Time


@pytest.mark.parametrize(
    "begun",
    [
        b"G",
        GET,
        GET + b"x: " + b"y" * 8000,
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
    ids=["one byte", "half a head", "half a header", "half a body", "half a body in chunks"],
)
async def test_half_a_request_is_hung_up_on(http_house: House, begun: bytes) -> None:
    token = f"authorization: Bearer {http_house.admin.token}\r\nhost".encode()
    async with patient_for(0.2), http_house.http() as http:
        await http.send_raw(begun.replace(b"host", token, 1))
        answer = answer_in(await http.ends())
        assert (answer.status, answer.reason) == (408, "REQUEST_TIMEOUT")
        assert answer.headers["connection"] == "close"
    assert await is_served(http_house)


async def test_a_request_that_is_answered_before_its_end_gets_no_second_answer(http_house: House) -> None:
    """A proxy could take it for the answer to the next request."""
    async with patient_for(0.2), http_house.http() as http:
        await http.send_raw(
            b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"
        )
        said = await http.ends()
        assert said.count(b"HTTP/1.1 ") == 1
        assert answer_in(said).reason == "TOKEN_MISSING"


async def test_a_caller_who_says_nothing_is_hung_up_on(http_house: House) -> None:
    async with patient_for(0.2), http_house.http() as http:
        await http.ends()


async def test_a_request_that_trickles_is_hung_up_on(http_house: House) -> None:
    """A byte now and then does not begin the time anew."""
    async with patient_for(0.4), http_house.http() as http:
        started = asyncio.get_running_loop().time()
        with contextlib.suppress(ConnectionError):
            for byte in GET + b"x: " + b"y" * 300:
                await http.send_raw(bytes([byte]))
                await asyncio.sleep(0.02)
        await http.ends()
        assert asyncio.get_running_loop().time() - started < 5


async def test_an_idle_connection_is_closed(http_house: House) -> None:
    assert http_house.server is not None
    async with http_house.http() as http:
        await http.get("/v1/games")
        [connection] = [
            each for each in open_connections() if each.client == http.writer.get_extra_info("sockname")
        ]
        assert connection.timeout_keep_alive_task is not None
        connection.timeout_keep_alive_handler()
        assert await http.ends() == b""


def open_connections() -> list[http_protocol.BoundedHttpProtocol]:
    """Those of this process."""
    import gc

    return [each for each in gc.get_objects() if isinstance(each, http_protocol.BoundedHttpProtocol)]


async def test_a_connection_is_used_again_and_again(http_house: House) -> None:
    async with patient_for(0.3), http_house.http() as http:
        for _ in range(5):
            assert (await http.get("/v1/games")).status == 200
            await asyncio.sleep(0.1)


async def test_a_caller_who_does_not_read_is_hung_up_on(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "WRITE_S", 0.2)
    for _ in range(3):
        await http_house.bot()
    assert http_house.server is not None
    host, _, port = http_house.server.http_address.rpartition("//")[2].rpartition(":")
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((host, int(port)))
        lazy.setblocking(False)
        loop, own = asyncio.get_running_loop(), lazy.getsockname()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(5):
                while True:  # one after the other: many at once are refused for their number
                    await loop.sock_sendall(lazy, b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n")
                    await asyncio.sleep(0.01)
        await until(lambda: own not in [each.client for each in open_connections() if each.parser])
    assert await is_served(http_house)


# Sizes


async def test_a_large_head_is_refused(http_house: House) -> None:
    for head in (
        GET + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        GET + b"x: " + b"y" * 200_000,  # before its end
        GET + b"x: " + b"y" * 40_000 + b"\r\n\r\n",  # in one packet
        GET + b"".join(b"x%d: y\r\n" % number for number in range(20_000)) + b"\r\n",
        b"GET /v1/games?pageToken=" + b"y" * 200_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ):
        async with http_house.http() as http:
            with contextlib.suppress(ConnectionError):
                await http.send_raw(head)
            answer = answer_in(await http.ends())
            assert (answer.status, answer.reason) == (431, "REQUEST_TOO_LARGE")
    assert await is_served(http_house)


async def test_a_head_that_never_ends_is_not_kept(http_house: House) -> None:
    async with http_house.http() as http:
        with contextlib.suppress(ConnectionError):
            await http.send_raw(GET + b"x: ")
            for _ in range(64):
                await http.send_raw(b"y" * 16_384)
                await asyncio.sleep(0.005)
        assert answer_in(await http.ends(5.0)).status == 431
    assert await is_served(http_house)


async def test_requests_behind_a_large_body_are_no_large_head(http_house: House) -> None:
    async with http_house.http(http_house.admin.token) as http:
        body = b'{"bot": "large-body"' + b" " * 100_000 + b"}"
        head = f"POST /v1/bots HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {http_house.admin.token}\r\n"
        typed = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        await http.send_raw(typed.encode() + body + GET)
        assert (await http.answer()).status == 200
        await http.send_raw(b"\r\n")
        assert (await http.answer()).status == 200


@pytest.mark.parametrize("name", ["Host", "AUTHORIZATION", "content-type"])
async def test_a_header_that_decides_is_given_once(http_house: House, name: str) -> None:
    twice = f"{name}: Bearer a\r\n{name.lower()}: Bearer b\r\n".encode()
    async with http_house.http() as http:
        await http.send_raw(b"GET /v1/games HTTP/1.1\r\n" + twice + b"\r\n")
        answer = answer_in(await http.ends())
        assert (answer.status, answer.reason) == (400, "MALFORMED")
        assert answer.message == f"the header {name.lower()} is given twice"
    async with http_house.http() as http:
        once = b"GET /v1/games HTTP/1.1\r\nhost: a\r\ncontent-type: b\r\nx: c\r\nx: d\r\n\r\n"
        await http.send_raw(once * 2)
        assert [(await http.answer()).status for _ in range(2)] == [200, 200]


async def test_only_a_request_of_the_old_version_has_no_host(http_house: House) -> None:
    async with http_house.http() as http:
        await http.send_raw(b"GET /v1/games HTTP/1.1\r\naccept: */*\r\n\r\n")
        answer = answer_in(await http.ends())
        assert (answer.status, answer.reason) == (400, "MALFORMED")
        assert answer.message == "a request of HTTP/1.1 has the header host"
    async with http_house.http() as http:
        await http.send_raw(b"GET /v1/games HTTP/1.0\r\n\r\n")
        assert answer_in(await http.ends()).status == 200


async def test_a_head_of_some_kilobytes_is_taken(http_house: House) -> None:
    async with http_house.http() as http:
        assert (await http.get("/v1/games", cookie="y" * 12_000)).status == 200


async def test_a_body_that_was_refused_is_not_read_for_ever(http_house: House) -> None:
    async with http_house.http(http_house.admin.token) as http:
        head = b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            await http.send_raw(head)
            for _ in range(200):
                await http.send_raw(b"y" * 65_536)
        await http.ends()
    assert await is_served(http_house)


# What is no HTTP


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /v1/games HTTP/9.9\r\n\r\n",
        b"G\xc3\x89T /v1/games HTTP/1.1\r\n\r\n",
        b"GET /v1/games HTTP/1.1\r\nhost x\r\n\r\n",
        b"GET /v1/games HTTP/1.1\r\nhost: x\r\nbad header: y\r\n\r\n",
        b"GET /v1/games HTTP/1.1\r\nhost: x\r\nx: a\x00b\r\n\r\n",
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/bots HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=lambda raw: repr(raw[:30]),
)  # fmt: skip
async def test_bytes_that_are_no_request_are_refused(http_house: House, raw: bytes) -> None:
    async with http_house.http() as http:
        await http.send_raw(raw)
        answers = await http.ends()
        answer = answer_in(answers[answers.rindex(b"HTTP/1.1 ") :])
        assert answer.status in (400, 401, 404, 405)
        assert answer.reason in ("MALFORMED", "TOKEN_MISSING", "NOT_FOUND", "METHOD_NOT_ALLOWED")
    assert await is_served(http_house)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 404),
        (b"GET http://elsewhere/v1/games HTTP/1.1\r\nhost: x\r\n\r\n", 200),
        (b"GET /v1/games HTTP/1.0\r\n\r\n", 200),
        (b"GET /v1/games\r\n\r\n", 200),
        (b"GET  /v1/games  HTTP/1.1\r\n\r\n", 200),
        (b"GET /v1/games HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 200),
        (b"GET /v1/games HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n", 200),
        (b"GET /v1/games HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\r\n", 200),
        (b"GET /v1/games HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \xff\xfe\r\n\r\n", 401),
        (b"GET /v1/games HTTP/1.1\r\nhost: x\r\naccept: \xff\r\n\r\n", 406),
        (b"GET /v1/matches/\xff HTTP/1.1\r\nhost: x\r\n\r\n", 404),
        (b"GET /v1/games?pageToken=\xff HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET /v1/games?%00=%00 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_odd_requests_are_answered(http_house: House, raw: bytes, status: int) -> None:
    async with http_house.http() as http:
        await http.send_raw(raw)
        found, headers, _ = await http.answer_head()
        assert found in (status, 400)
        assert headers["content-type"] == "application/json"
    assert await is_served(http_house)


async def test_a_binary_token_is_unknown(http_house: House) -> None:
    async with http_house.http() as http:
        answer = await http.get("/v1/games", authorization="Bearer \u00e9\u00ff")
        assert (answer.status, answer.reason) == (401, "TOKEN_UNKNOWN")


# Offers of another protocol


OFFERS = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
    "foo": b"upgrade: foo\r\nconnection: keep-alive, Upgrade\r\n",
    "two lines": b"Connection: upgrade\r\nConnection: keep-alive\r\nUpgrade: TLS/1.0, HTTP/3\r\nUpgrade: foo\r\n",
}
POSTS = sorted({route.path for route in HTTP_ROUTES if route.verb == "POST"})


async def posted(
    house: House, head: bytes, body: bytes, *, is_chunked: bool = False, piece: int = 0
) -> HttpAnswer:
    """The answer to a POST, after which the connection still serves, all in one packet or in pieces."""
    framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % len(body)
    sent = b"%x\r\n%s\r\n0\r\nauthorization: Bearer x\r\n\r\n" % (len(body), body) if is_chunked else body
    token = (
        f"host: x\r\nauthorization: Bearer {house.admin.token}\r\ncontent-type: application/json\r\n".encode()
    )
    raw = (
        b"POST "
        + head.replace(b"\r\n", b" HTTP/1.1\r\n" + token, 1)
        + framing
        + b"\r\n\r\n"
        + sent
        + GET
        + b"\r\n"
    )
    async with house.http() as http:
        for start in range(0, len(raw), piece or len(raw)):
            await http.send_raw(raw[start : start + (piece or len(raw))])
            await asyncio.sleep(0)
        if b"100-continue" in head:
            assert (await http.answer_head())[0] == 100
        answer = await http.answer()
        assert (await http.answer()).status == 200
        return answer


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize("offer", OFFERS)
async def test_a_post_that_offers_another_protocol_is_read_in_full(
    http_house: House, offer: str, is_chunked: bool
) -> None:
    """Java's HttpClient and `curl --http2` offer h2c with every first request."""
    read = 0
    for path in POSTS:
        url = re.sub(r"\{\w+=([^}]+)\}", r"\1", path).replace("*", "x").encode() + b"\r\n"
        answers = [
            await posted(http_house, url + offered, b'{"noSuchField": 1}', is_chunked=is_chunked)
            for offered in (b"", OFFERS[offer])
        ]
        assert answers[0].body == answers[1].body, url
        read += b"noSuchField" in answers[0].body
    assert read > 0.8 * len(POSTS)


@pytest.mark.parametrize("piece", [0, 1, 7])
@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"], ids=["", "expect"])
async def test_the_bot_is_made_that_the_body_asked_for(http_house: House, piece: int, expect: bytes) -> None:
    body = b'{"lifetimeS": 60, "mostBots": 1}'
    for offer in OFFERS.values():
        answer = await posted(http_house, b"/v1/invites\r\n" + offer + expect, body, piece=piece)
        assert answer.json["invite"]["mostBots"] == 1


async def test_a_post_is_no_websocket_and_changes_nothing(http_house: House) -> None:
    offer = b"upgrade: websocket\r\nconnection: Upgrade\r\n"
    answer = await posted(http_house, b"/v1/bots\r\n" + offer, b'{"bot": "no-socket"}')
    assert (answer.status, answer.reason) == (400, "INVALID_ARGUMENT")
    async with http_house.http() as http:
        assert (await http.get("/v1/bots/no-socket/versions/1")).status == 404


@pytest.mark.skipif(
    not shutil.which("curl"), reason="CURL IS NOT INSTALLED: its offer of HTTP/2 is not tested"
)
async def test_curl_that_would_rather_speak_http2_is_served(http_house: House) -> None:
    assert http_house.server is not None
    curl = await asyncio.create_subprocess_exec(
        "curl", "--silent", "--http2", "-d", '{"bot": "from-curl"}', "-H", "content-type: application/json",
        "-H", f"authorization: Bearer {http_house.admin.token}", f"{http_house.server.http_address}/v1/bots",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await curl.communicate()
    assert b"bots/from-curl/versions/1" in said


# Numbers


async def test_requests_that_come_at_once_are_answered_in_order(http_house: House) -> None:
    async with http_house.http() as http:
        paths = ["/v1/games", "/nothing", "/v1/games/ugo", "/healthz"]
        await http.send_raw(b"".join(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode() for path in paths))
        assert [(await http.answer()).status for _ in paths] == [200, 404, 200, 200]


async def test_a_thousand_requests_at_once_are_too_many(http_house: House) -> None:
    async with http_house.http() as http:
        await http.send_raw(GET + b"\r\n" + (GET + b"\r\n") * 1000)
        assert answer_in(await http.ends()).reason == "SERVER_FULL"
    assert await is_served(http_house)


async def test_an_address_has_so_many_connections(http_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTP_CONNECTIONS, "most_of_address", 3)
    assert http_house.server is not None
    async with AsyncExitStack() as stack:
        for _ in range(3):
            http = await stack.enter_async_context(http_house.http())
            assert (await http.get("/v1/games")).status == 200
        async with http_connection(http_house.server.http_address) as fourth:
            answer = answer_in(await fourth.ends())
            assert (answer.status, answer.reason) == (429, "SERVER_FULL")
            assert answer.headers["retry-after"] == "5"
        assert (await http.get("/v1/games")).status == 200
    assert await is_served(http_house)


async def test_an_address_has_so_many_requests_at_once(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HTTP_REQUESTS, "most_of_address", 2)
    async with dealt(http_house) as (table, _, _):
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await watch(await stack.enter_async_context(http_house.http()), table.name)
            async with http_house.http() as http:
                answer = await http.get("/v1/games")
                assert (answer.status, answer.reason) == (429, "SERVER_FULL")
                assert answer.headers["retry-after"] == "1"
        await until_served(http_house)
        await table.play_out()


async def watch(http: HttpConnection, match: str) -> None:
    """Has the first item."""
    await http.send("GET", f"/v1/{match}:watch")
    status, _, _ = await http.answer_head()
    assert status == 200


async def until_served(house: House) -> None:
    """Whoever hung up is forgotten in a moment."""
    async with asyncio.timeout(10):
        while not await is_served(house):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.02)


async def test_an_address_has_so_many_streams(http_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTP_STREAMS, "most_of_address", 2)
    async with dealt(http_house) as (table, _, _):
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await watch(await stack.enter_async_context(http_house.http()), table.name)
            async with http_house.http() as http:
                answer = await http.get(f"/v1/{table.name}:watch")
                assert (answer.status, answer.reason) == (429, "SERVER_FULL")
                assert (await http.get("/v1/games")).status == 200
        await table.play_out()


async def test_many_who_hang_up_leave_nothing_behind(http_house: House) -> None:
    async def hang_up(number: int) -> None:
        async with http_house.http() as http:
            await http.send_raw((GET + b"\r\n")[: number % 40])

    before = len(asyncio.all_tasks())
    for _ in range(10):
        await asyncio.gather(*map(hang_up, range(40)))
    await until(lambda: len([each for each in open_connections() if each.parser]) == 0)
    await until(lambda: len(asyncio.all_tasks()) <= before)
    assert await is_served(http_house)


# Browsers and proxies


@asynccontextmanager
async def own_house(tmp_path: Path, **settings: object) -> AsyncIterator[House]:
    http = HttpSettings(port=0, **settings)  # type: ignore[arg-type]
    async with house_in(tmp_path, http=http) as house:
        yield house


async def test_pages_of_the_named_origins_may_call(tmp_path: Path) -> None:
    async with own_house(tmp_path, cors_origins=("https://good.example",)) as house, house.http() as http:
        asked = {"origin": "https://good.example", "access-control-request-method": "POST",
                 "access-control-request-headers": "authorization"}  # fmt: skip
        allowed = await http.call("OPTIONS", "/v1/bots", headers=asked)
        assert allowed.status == 200
        assert allowed.headers["access-control-allow-origin"] == "https://good.example"
        assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
        refused = await http.call("OPTIONS", "/v1/bots", headers={**asked, "origin": "https://evil.example"})
        assert "access-control-allow-origin" not in refused.headers
        assert refused.reason == "NOT_ALLOWED"
        assert "--http-cors" in refused.json["error"]["message"]
        put = await http.call(
            "OPTIONS", "/v1/bots", headers={**asked, "access-control-request-method": "PUT"}
        )
        assert put.reason == "INVALID_ARGUMENT"
        assert "GET, POST, DELETE" in put.json["error"]["message"]
        answer = await http.get("/v1/games", origin="https://good.example")
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert (
            "access-control-allow-origin"
            not in (await http.get("/v1/games", origin="https://evil.example")).headers
        )
        assert "access-control-allow-credentials" not in answer.headers
        lost = await http.get("/v1/nothing", origin="https://good.example")
        assert lost.headers["access-control-allow-origin"] == "https://good.example"


async def test_without_the_option_no_page_may_call(http_house: House) -> None:
    async with http_house.http() as http:
        answer = await http.get("/v1/games", origin="https://good.example")
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/v1/attend", "/v1/play"])
async def test_a_websocket_at_this_port_is_told_where_to_go(http_house: House, path: str) -> None:
    bot = await http_house.bot()
    async with http_house.http(bot.token) as http:
        answer = await http.get(path, connection="Upgrade", upgrade="websocket")
        assert answer.status == 400
        assert "--ws-port" in answer.json["error"]["message"]
        assert (await http.get("/v1/games", connection="Upgrade", upgrade="h2c")).status == 200


@pytest.mark.parametrize("proxy", ["127.0.0.0/8", "127.1.2.3/8", "127.0.0.1", "::/0"])
async def test_a_proxy_may_be_named_as_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """It calls for many, so it has more connections than any other address, and says who calls."""
    monkeypatch.setattr(HTTP_CONNECTIONS, "most_of_address", 3)
    monkeypatch.setattr(HTTP_REQUESTS, "most_of_address", 1)
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(own_house(tmp_path, trusted_proxies=(proxy,)))
        many = [await stack.enter_async_context(house.http()) for _ in range(5)]
        answers = [answer_in(await many[4].ends())] if proxy == "::/0" else []
        if not answers:
            async with dealt(house) as (table, _, _):
                for number, http in enumerate(many):
                    await http.send(
                        "GET", f"/v1/{table.name}:watch", headers={"x-forwarded-for": f"192.0.2.{number}"}
                    )
                    answers.append((await http.answer_head())[0])
                await table.play_out()
        assert answers == [200] * 5 or [each.status for each in answers] == [429]


async def test_only_a_trusted_proxy_says_who_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTP_REQUESTS, "most_of_address", 1)
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(own_house(tmp_path, trusted_proxies=("127.0.0.0/8",)))
        async with dealt(house) as (table, _, _), house.http() as one, house.http() as other:
            await one.send("GET", f"/v1/{table.name}:watch", headers={"x-forwarded-for": "192.0.2.1"})
            assert (await one.answer_head())[0] == 200
            assert (await other.get("/v1/games", x_forwarded_for="192.0.2.2")).status == 200
            assert (await other.get("/v1/games", x_forwarded_for="192.0.2.1")).status == 429
            assert (await other.get("/v1/games", x_forwarded_for="192.0.2.9, 192.0.2.1")).status == 429
            await table.play_out()


async def test_a_caller_that_is_no_proxy_speaks_for_itself_alone(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HTTP_REQUESTS, "most_of_address", 1)
    async with dealt(http_house) as (table, _, _), http_house.http() as one, http_house.http() as other:
        await watch(one, table.name)
        assert (await other.get("/v1/games", x_forwarded_for="192.0.2.2")).status == 429
        await table.play_out()


# The end


async def test_a_server_that_stops_ends_its_streams_with_a_reason(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with own_house(tmp_path) as house:
            assert house.server is not None
            async with dealt(house) as (table, _, _):
                watcher = await stack.enter_async_context(http_connection(house.server.http_address))
                await watch(watcher, table.name)
                idle = await stack.enter_async_context(http_connection(house.server.http_address))
                await idle.get("/v1/games")
        chunks = [chunk async for chunk in watcher.chunks()]
        assert chunks[-1].startswith(b'{"error":')
        assert b'"SERVER_STOPPING"' in chunks[-1]
        assert await idle.ends() == b""
