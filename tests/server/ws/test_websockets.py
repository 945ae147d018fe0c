"""Bots by WebSocket: whole matches of both games in JSON and in protobuf, who may connect, and how a socket ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from harness import PLAY, House, Wire, item, until
from harness.ubongo import building, builds_on
from harness.websocket import JSON, PROTO, open_socket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from seatwise.remote import run_async
from seatwise.v1 import play_service_pb2
from seatwise_server.ws import bot_handlers

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESIGN = play_service_pb2.Resign()


@pytest.fixture(params=[JSON, PROTO])
def ws_house(request: pytest.FixtureRequest, house: House) -> Iterator[House]:
    """The server, to which bots come by WebSocket."""
    house.subprotocol = request.param
    yield house
    house.subprotocol = ""


async def how_it_ends(socket: Any) -> tuple[int, str, dict[str, Any]]:
    """The close code, its reason, and the error before it."""
    last: dict[str, Any] = {}
    try:
        async with asyncio.timeout(5):
            while True:
                said = await socket.recv()
                last = json.loads(said) if isinstance(said, str) else {}
    except ConnectionClosed as over:
        close = over.rcvd
    assert close is not None
    return close.code, close.reason, last.get("error", {})


async def refused_upgrade(house: House, path: str = "/v1/play", **how: Any) -> tuple[int, dict[str, Any]]:
    """The status of an upgrade that is refused, and the error in its body."""
    how.setdefault("subprotocols", [JSON])
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{house.server.ws_address}{path}", compression=None, proxy=None, **how)
    response = refused.value.response
    assert response.headers["Content-Type"] == "application/json"
    return response.status_code, json.loads(response.body)["error"]


# Matches


async def test_a_whole_match_of_ugo_is_played(ws_house: House):
    async with ws_house.table(3, rounds=2) as table:
        await table.sit()
        ends = await table.play_out()
        assert all(end.HasField("result") for end in ends)
        await ws_house.admin.over(table.name)
        await ws_house.admin.record(table.name)


async def test_a_whole_match_of_ubongo_is_played(ws_house: House):
    async with building(ws_house, rounds=2) as table:
        await builds_on(ws_house, table)


async def test_bots_of_both_doors_play_with_each_other(house: House):
    bots = [await house.bot()]
    house.subprotocol = JSON
    bots.append(await house.bot())
    house.subprotocol = PROTO
    bots.append(await house.bot())
    house.subprotocol = ""
    table = await house.seat(bots)
    await table.sit()
    await table.play_out()
    await house.admin.over(table.name)
    await house.admin.record(table.name)


@pytest.mark.parametrize(("game", "sample"), [("ugo", "greedy"), ("ubongo", "random")])
async def test_bots_of_the_sdk_play_whole_matches(house: House, game: str, sample: str):
    """By each door, and by gRPC to the lobby only: they meet in a queue."""
    queue = "casual-2" if game == "ugo" else "casual-ubongo"
    ways = [(house.server.ws_address, "auto"), *[(house.address, each) for each in ("auto", "grpc", "grpc")]]
    bots = [await house.bot() for _ in ways]
    runs = [
        run_async(sample, game, address, bot.token, queues=[queue], matches=1, transport=transport)
        for (address, transport), bot in zip(ways, bots, strict=True)
    ]
    async with asyncio.timeout(60):
        summaries = await asyncio.gather(*runs)
    assert [summary.matches for summary in summaries] == [1] * 4
    assert all(summary.endings.keys() == {"COMPLETED"} for summary in summaries)
    ended = await until(lambda: len(lines := house.logs.named("rpc_ended", method=PLAY)) >= 4 and lines)
    assert [line.get("door") for line in ended].count("websocket") == 2


async def test_each_end_of_a_stream_is_one_log_line_that_names_the_door(ws_house: House):
    stream = (await ws_house.bot()).play()
    await stream.send(item("matches/none", 0, resign=RESIGN))
    await stream.receive("matches/none", 0)
    await stream.hang_up()
    [line] = await until(lambda: ws_house.logs.named("rpc_ended", method=PLAY, code="OK"))
    assert (line["door"], line["reason"]) == ("websocket", "")


# Items that cannot be read


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{", "this is no PlayRequest in JSON"),
        ("[]", 'an object whose only field is "items", a list'),
        ('{"items": 1}', 'an object whose only field is "items", a list'),
        ('{"item": []}', 'an object whose only field is "items", a list'),
        ('{"items": [1]}', "this is no PlayRequestItem in JSON"),
        ('{"items": [{"promt": 1}]}', 'no field named "promt"'),
        ('{"items": [{"seat": "x"}]}', "this is no PlayRequestItem in JSON"),
        ('{"items": [{"match": "\\ud800"}]}', "this is no PlayRequestItem in JSON"),
        ("[" * 100_000, "this is no PlayRequest in JSON"),
        ('{"items": [' + "[" * 5000 + "]" * 5000 + "]}", "this is no PlayRequest"),
        ('{"items": [{"seat": ' + "9" * 10_000 + "}]}", "this is no PlayRequest"),
        ('{"items": [{"seat": 1e999}]}', "this is no PlayRequestItem in JSON"),
        ('{"items": [{}]}', "the item has no action"),
        ('{"items": [null]}', "this is no PlayRequestItem in JSON: it must be an object"),
        ('{"items": [' + "[" * 300 + "]" * 300 + "]}", "this is no PlayRequestItem in JSON: it must be an object"),
        ('{"items": [{"seat": ' + "[" * 50_000 + "]" * 50_000 + "}]}", ": it is nested too deeply"),
        ('{"items": [], "items": []}', ": a key is there twice"),
        ('{"items": [{"seat": {}, "pong": {"number": []}}]}', "seat field: a value has a type that its field does not take"),
        ('{"items": [{"seat": 1, "seat": 0}]}', ": a key is there twice"),
        ('{"items": [{"submitMove": {"requestId": "a", "request_id": "b"}}]}', ": a key is there twice"),
    ],
    ids=["half", "list", "number", "misspelt", "no item", "unknown", "text", "surrogate", "deep", "deep item", "long", "huge", "empty", "null", "deep list", "deep value", "twice", "types", "twice in item", "two spellings"],
)  # fmt: skip
async def test_json_that_is_no_item_is_answered_and_the_stream_goes_on(house: House, said: str, why: str):
    house.subprotocol = JSON
    stream = (await house.bot()).play()
    house.subprotocol = ""
    await stream.send_raw(said.encode())
    rejected = (await stream.receive("", 0)).move_rejected
    assert rejected.reason == play_service_pb2.MoveRejected.REASON_MALFORMED
    assert why in rejected.message
    assert not re.search(
        "object|recursion|NoneType|int\\(|dict|sys\\.", rejected.message.replace("an object", "")
    )
    await stream.send(item("matches/none", 0, resign=RESIGN))
    await stream.receive("matches/none", 0)


async def test_a_good_item_beside_bad_ones_is_taken(house: House):
    house.subprotocol = JSON
    stream = (await house.bot()).play()
    house.subprotocol = ""
    good = {"match": "matches/none", "seat": 0, "resign": {}}
    await stream.send_raw(json.dumps({"items": [{"no": 1}, good, 7]}).encode())
    await stream.receive("", 0)
    await stream.receive("matches/none", 0)
    await stream.receive("", 0)


# Who may connect


async def test_the_token_may_be_the_first_message(house: House):
    bot = await house.bot()
    for subprotocol in (JSON, PROTO):
        socket = await open_socket(house.server.ws_address, "/v1/play", "", subprotocol)
        await socket.send(json.dumps({"token": bot.token}))
        await until(lambda: house.server.referee.streams.get_stream(bot.bot))
        await socket.close()
        await until(lambda: not house.server.referee.streams.get_stream(bot.bot))


async def test_messages_behind_the_token_wait_until_it_is_checked(house: House):
    bot = await house.bot()
    socket = await open_socket(house.server.ws_address, "/v1/play", "", JSON)
    await socket.send(json.dumps({"token": f"Bearer {bot.token}"}))
    for _ in range(100):
        await socket.send('{"items": [{}, {}, {}]}')
    heard = 0
    async with asyncio.timeout(5):
        while heard < 300:
            heard += len(json.loads(await socket.recv())["items"])
    await socket.close()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (None, "TOKEN_MISSING"),
        ("{}", "TOKEN_MISSING"),
        ("{", "TOKEN_MISSING"),
        ("[" * 100_000, "TOKEN_MISSING"),
        ('{"token": 7}', "TOKEN_MISSING"),
        ('{"token": "x", "more": 1}', "TOKEN_MISSING"),
        (b'{"token": "x"}', "TOKEN_MISSING"),
        ('{"items": []}', "TOKEN_MISSING"),
        ('{"token": "x"}', "TOKEN_UNKNOWN"),
    ],
    ids=["nothing", "no token", "half", "deep", "number", "more", "binary", "items", "unknown"],
)
@pytest.mark.parametrize("path", ["/v1/play", "/v1/attend"])
async def test_without_a_good_token_within_two_seconds_a_socket_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str, first: Any, reason: str
):
    assert bot_handlers.TOKEN_S == 2.0
    monkeypatch.setattr(bot_handlers, "TOKEN_S", 0.1)
    monkeypatch.setattr(bot_handlers, "TOKEN_STALL_S", 60.0)  # this machine may be slow
    socket = await open_socket(house.server.ws_address, path, "", JSON)
    if first is not None:
        await socket.send(first)
    code, said, error = await how_it_ends(socket)
    assert (code, said, error["status"], error["code"]) == (4016, reason, "UNAUTHENTICATED", 401)
    assert error["details"][0]["reason"] == reason


async def test_a_server_that_stood_still_while_it_waited_for_a_token_asks_to_come_again(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bot_handlers, "TOKEN_S", 0.1)
    monkeypatch.setattr(bot_handlers, "TOKEN_STALL_S", -1.0)  # as if the clock had gone on meanwhile
    socket = await open_socket(house.server.ws_address, "/v1/attend", "", JSON)
    code, said, _ = await how_it_ends(socket)
    assert (code, said) == (4014, "STREAM_TIMEOUT")


@pytest.mark.parametrize("query", ["token=abc", "access_token=abc", "Authorization=x", "x=1"])
async def test_a_url_with_a_query_is_refused(house: House, query: str):
    status, error = await refused_upgrade(house, f"/v1/play?{query}")
    assert (status, error["details"][0]["reason"]) == (400, "INVALID_ARGUMENT")
    is_token = "token" in query.lower() or "auth" in query.lower()
    assert ("a token in a URL ends up in logs" in error["message"]) == is_token
    assert not [line for line in house.logs.lines if "abc" in line]


async def test_an_unknown_path_and_an_unknown_subprotocol_are_refused_with_a_sentence(house: House):
    status, error = await refused_upgrade(house, "/v1/watch")
    assert (status, error["message"]) == (
        404,
        "there is no WebSocket at '/v1/watch'; this process has /v1/attend and /v1/play",
    )
    for offered in (None, ["seatwise.v2.json"]):
        status, error = await refused_upgrade(house, subprotocols=offered)
        assert status == 400
        assert "name a subprotocol" in error["message"]


UPGRADE = {
    "Host": "localhost", "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": JSON,
}  # fmt: skip
"""As Firefox writes it."""


async def answer_to(house: House, headers: dict[str, str]) -> bytes:
    """What an upgrade by hand is answered, up to the end of its head or of a body."""
    host, _, port = house.server.ws_address.removeprefix("ws://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ["GET /v1/play HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        body = b"" if head.startswith(b"HTTP/1.1 101") else await reader.read()
    writer.transport.abort()
    return head + body


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Upgrade", ""), ("Upgrade", "h2c"), ("Connection", ""), ("Connection", "close"), ("Sec-WebSocket-Version", "8"),
        ("Sec-WebSocket-Version", ""), ("Sec-WebSocket-Key", ""), ("Sec-WebSocket-Key", "AAAA"), ("Sec-WebSocket-Key", "\u00e9"),
    ],
)  # fmt: skip
async def test_a_request_that_is_no_upgrade_is_answered_in_json(house: House, name: str, value: str):
    head, _, body = (await answer_to(house, UPGRADE | {name: value})).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"application/json" in head
    assert b"Sec-WebSocket-Version: 13" in head
    assert f"send the header {name}: " in json.loads(body)["error"]["message"]


async def test_a_connection_header_with_several_options_is_an_upgrade(house: House):
    assert (await answer_to(house, UPGRADE)).startswith(b"HTTP/1.1 101")


async def test_of_several_subprotocols_the_first_known_is_taken(house: House):
    bot = await house.bot()
    socket = await connect(
        f"{house.server.ws_address}/v1/play", subprotocols=["other", PROTO, JSON],
        additional_headers={"Authorization": f"Bearer {bot.token}"}, proxy=None,
    )  # fmt: skip
    assert socket.subprotocol == PROTO
    assert socket.protocol.extensions == []  # what is packed could be a bomb
    await socket.close()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://", "http://[::1", "http://127.0.0.1:1"]
)
async def test_a_page_of_another_host_is_refused(house: House, origin: str):
    status, error = await refused_upgrade(house, origin=origin)
    assert (status, error["status"]) == (403, "PERMISSION_DENIED")
    assert "--ws-origin" in error["message"]


async def test_a_page_of_this_host_may_connect(house: House):
    bot = await house.bot()
    origin = house.server.ws_address.replace("ws://", "http://")
    headers = {"Authorization": f"Bearer {bot.token}"}
    async with connect(
        f"{house.server.ws_address}/v1/play",
        subprotocols=[JSON],
        origin=origin,
        additional_headers=headers,
        proxy=None,
    ):
        await until(lambda: house.server.referee.streams.get_stream(bot.bot))


# How a socket ends


async def closed(wire: Wire, house: House, subprotocol: str = JSON) -> tuple[int, str, dict[str, Any]]:
    """How another stream of this bot ends."""
    return await how_it_ends(await open_socket(house.server.ws_address, "/v1/play", wire.token, subprotocol))


@pytest.mark.parametrize("subprotocol", [JSON, PROTO])
async def test_a_refusal_is_a_last_message_and_a_close_code(house: House, subprotocol: str):
    bot = await house.bot()
    socket = await open_socket(house.server.ws_address, "/v1/play", bot.token, subprotocol)
    await until(lambda: house.server.referee.streams.get_stream(bot.bot))
    newer = await open_socket(house.server.ws_address, "/v1/play", bot.token, subprotocol)
    code, reason, error = await how_it_ends(socket)
    assert (code, reason) == (4010, "REPLACED")
    assert error == {
        "code": 409,
        "status": "ABORTED",
        "message": "a newer stream of this bot has taken over",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "domain": "seatwise",
                "metadata": {"bot": bot.bot},
                "reason": "REPLACED",
            }
        ],
    }
    await newer.close()


async def test_a_revoked_token_ends_its_sockets_within_a_second(ws_house: House):
    bot = await ws_house.bot()
    attending, stream = await bot.attend(), bot.play()
    await until(lambda: ws_house.server.referee.streams.get_stream(bot.bot))
    await ws_house.admin.revoke(bot.bot)
    async with asyncio.timeout(1):
        assert (await attending.end()).reason == "TOKEN_REVOKED"
        assert (await stream.end()).reason == "TOKEN_REVOKED"


async def test_an_admin_plays_no_matches(house: House):
    code, reason, _ = await closed(house.admin, house)
    assert (code, reason) == (4007, "NOT_ALLOWED")


async def test_a_fault_of_ours_closes_the_socket_and_is_logged(house: House, monkeypatch: pytest.MonkeyPatch):
    bot = await house.bot()
    socket = await open_socket(house.server.ws_address, "/v1/play", bot.token, JSON)
    await until(lambda: house.server.referee.streams.get_stream(bot.bot))
    with monkeypatch.context() as patch:
        patch.setattr(type(house.server.referee.intake), "dispatch_item", lambda *_: 1 // 0)
        await socket.send('{"items": [{}]}')
        code, reason, error = await how_it_ends(socket)
    assert (code, reason) == (4013, "INTERNAL")
    assert "logged" in error["message"]
    assert house.logs.named("rpc_failed", method=PLAY)
    house.logs.clear()
