"""The REST door: every operation at its URL, as JSON, with the same rights and the same reasons as over gRPC."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from harness import House, HttpAnswer, HttpConnection, dealt, refusal_of, until

from seatwise.v1 import match_service_pb2
from seatwise_server.refusal import HTTP_STATUS, REASONS
from seatwise_server.rest.routes import HTTP_ROUTES, HttpRoute
from seatwise_server.services.access import ACCESS, SCOPES_OF_PEOPLE, Access

pytestmark = pytest.mark.asyncio(loop_scope="session")

each_route = pytest.mark.parametrize("route", HTTP_ROUTES, ids=lambda route: route.operation)


def path_of(route: HttpRoute, value: str = "none") -> str:
    """The route's path with this value in every variable part."""
    return re.sub(r"\{\w+\}", value, route.path)


def body_of(route: HttpRoute) -> object:
    """The emptiest body of a route that takes one."""
    return {} if route.body else None


def is_documented(answer: HttpAnswer) -> bool:
    """A reason of the list with its status, and a sentence without class names, paths or pages of text."""
    insides = ("Traceback", "_pb2", "Error", "object at", "__", "seatwise_server", "redis", ".py")
    error = answer.json["error"]
    return (
        REASONS[answer.reason] == error["status"]
        and 0 < len(answer.message) < 400
        and answer.message.isprintable()
        and not any(word in answer.message for word in insides)
        and answer.headers["cache-control"] == "no-store"
    )


@asynccontextmanager
async def admin(house: House) -> AsyncIterator[HttpConnection]:
    async with house.http(house.admin.token) as http:
        yield http


# What is answered


async def test_games_are_listed_as_json_with_sorted_keys(http_house: House) -> None:
    async with http_house.http() as http:
        answer = await http.get("/v1/games")
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert {game["name"] for game in answer.json["games"]} == {"games/ugo", "games/ubongo"}
        assert answer.body == json.dumps(answer.json, sort_keys=True, separators=(",", ":")).encode()
        one = await http.get("/v1/games/ugo")
        assert one.json["game"] in answer.json["games"]


@each_route
async def test_every_method_answers_as_over_grpc(http_house: House, route: HttpRoute) -> None:
    """The same message, or the same refusal."""
    method = route.method
    request = message_factory.GetMessageClass(method.input_type)()
    if route.path_field:
        setattr(request, route.path_field, route.resource_name(["none"] * len(route.path_parameters)))
    if method.server_streaming:
        call = http_house.admin.channel.unary_stream(route.operation, None, None)
        wanted = anext(aiter(call(request.SerializeToString(), metadata=http_house.admin.metadata)))
    else:
        wanted = http_house.admin.raw(route.operation, request.SerializeToString())
    async with admin(http_house) as http:
        answer = await http.call(route.verb, path_of(route), body_of(route))
    if answer.status == 200:
        message = message_factory.GetMessageClass(method.output_type).FromString(await wanted)
        steady = re.compile(  # what differs between two calls; each of the two makes an invite of its own
            rb'"(silentMs|leftMs)":"\d+"|"(token|createTime|expireTime)":"[^"]*"|"name":"invites/[^"]*"'
        )
        said = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
        line = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        assert steady.sub(b"", answer.body) == steady.sub(b"", line)
    else:
        refused = await refusal_of(wanted)
        assert (answer.reason, answer.message) == (refused.reason, refused.message)
        assert answer.status == HTTP_STATUS[refused.code]
        assert is_documented(answer)


async def test_a_bot_is_registered_shown_and_deleted(http_house: House) -> None:
    async with admin(http_house) as http:
        made = await http.call("POST", "/v1/bots", {"bot": "rest-bot", "version": "7", "owner": "me"})
        assert made.headers["cache-control"] == "no-store"
        token, name = made.json["token"], made.json["bot"]["name"]
        assert name == "bots/rest-bot/versions/7"
        assert (await http.get(f"/v1/{name}")).json["bot"]["owner"] == "me"
        rotated = await http.call("POST", f"/v1/{name}:rotateToken")
        assert rotated.json["token"] != token
        gone = await http.call("DELETE", f"/v1/{name}")
        assert gone.json == {"abortedMatches": []}
        assert (await http.get(f"/v1/{name}")).status == 404


async def test_a_match_is_created_listed_and_aborted(http_house: House) -> None:
    bots = [(await http_house.bot()).bot for _ in range(2)]
    async with admin(http_house) as http:
        asked = {
            "game": "games/ugo",
            "bots": bots,
            "options": {"rounds": "1"},
            "timeControl": {"bankMs": 5000},
        }
        made = (await http.call("POST", "/v1/matches", asked)).json["match"]
        assert made["timeControl"]["bankMs"] == 5000
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", made["createTime"])
        listed = await http.get("/v1/matches?pageSize=1")
        assert [match["name"] for match in listed.json["matches"]] == [made["name"]]
        assert (await http.get("/v1/matches?page_size=1")).json == listed.json
        assert (await http.call("POST", f"/v1/{made['name']}:abort", {})).status == 200
        assert (await http.get(f"/v1/{made['name']}")).json["match"]["bots"] == bots


async def finished_match(house: House) -> str:
    async with house.table(2) as table:
        await table.sit()
        await table.play_out()
        await house.admin.over(table.name)
        return table.name


async def test_a_record_is_the_line_to_the_byte_and_is_kept_for_ever(http_house: House) -> None:
    name = await finished_match(http_house)
    line = await http_house.admin.record(name)
    async with http_house.http() as http:
        answer = await http.get(f"/v1/{name}/record")
        assert answer.body == line + b"\n"
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["etag"] == f'W/"{json.loads(line)["chain"]}"'
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        again = await http.get(f"/v1/{name}/record", if_none_match=answer.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]
        packed = await http.get(f"/v1/{name}/record", accept_encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == answer.body


async def test_a_record_that_is_not_there_is_refused_as_over_grpc(http_house: House) -> None:
    async with dealt(http_house) as (table, _, _), http_house.http() as http:
        answer = await http.get(f"/v1/{table.name}/record", if_none_match="*")
        assert (answer.status, answer.reason) == (400, "MATCH_NOT_OVER")
        await table.play_out()


# Caching


async def test_an_unchanged_body_is_not_sent_again(http_house: House) -> None:
    async with admin(http_house) as http:
        await http.call("POST", "/v1/ladders", {"name": "ladders/etag", "game": "games/ugo", "seats": 2})
        await http_house.bot()
        for path in ("/v1/games", "/v1/bots", "/v1/ladders/etag", "/v1/ladders/etag/standings"):
            first = await http.get(path)
            assert first.status == 200
            again = await http.get(path, if_none_match=f'"other", {first.headers["etag"]}')
            assert (again.status, again.body) == (304, b"")
        before = await http.get("/v1/bots")
        await http_house.bot()
        assert (await http.get("/v1/bots", if_none_match=before.headers["etag"])).status == 200


async def test_an_answer_to_a_token_is_for_its_caller_alone(http_house: House) -> None:
    async with admin(http_house) as http, http_house.http() as anybody:
        assert (await http.get("/v1/games")).headers["cache-control"] == "private, no-cache"
        assert (await http.get("/v1/leases")).headers["cache-control"] == "private, no-cache"
        record = f"/v1/{await finished_match(http_house)}/record"
        assert (await http.get(record)).headers["cache-control"] == "private, max-age=31536000, immutable"
        assert (await anybody.get("/v1/games")).headers["cache-control"] == "public, no-cache"


# Rights


@each_route
async def test_every_url_asks_for_the_right_of_its_method(http_house: House, route: HttpRoute) -> None:
    access = ACCESS[route.operation]
    bot = await http_house.bot()
    async with (
        http_house.http() as nobody,
        http_house.http(bot.token) as owner,
        http_house.http("wrong") as wrong,
    ):
        unknown = await wrong.call(route.verb, path_of(route), body_of(route))
        assert (unknown.status, unknown.reason) == (401, "TOKEN_UNKNOWN")
        assert unknown.headers["www-authenticate"] == 'Bearer realm="seatwise"'
        answer = await nobody.call(route.verb, path_of(route), body_of(route))
        if access is not Access.PUBLIC:
            assert (answer.status, answer.reason) == (401, "TOKEN_MISSING")
            assert answer.headers["www-authenticate"] == 'Bearer realm="seatwise"'
        else:
            assert answer.status in (200, 404)
        if access in SCOPES_OF_PEOPLE:
            refused = await owner.call(route.verb, path_of(route), body_of(route))
            assert (refused.status, refused.reason) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic abc", "bearer  "])
async def test_an_authorization_of_another_form_is_told_what_to_send(http_house: House, header: str) -> None:
    async with http_house.http() as http:
        answer = await http.get("/v1/games", authorization=header)
        assert (answer.status, answer.reason) == (401, "TOKEN_MISSING")
        assert is_documented(answer)


# What is refused


@pytest.mark.parametrize(
    ("verb", "path", "status", "reason"),
    [
        ("GET", "/v1", 404, "NOT_FOUND"),
        ("GET", "/v1/", 404, "NOT_FOUND"),
        ("GET", "/v1/games/", 404, "NOT_FOUND"),
        ("GET", "/v1//games", 404, "NOT_FOUND"),
        ("GET", "/v1/games/chess", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/none:live", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/a%2Fb", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/a%3Alive", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/%ff", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/%00", 404, "NOT_FOUND"),
        ("GET", "/v1/matches/" + "x" * 8000, 404, "NOT_FOUND"),
        ("GET", "/seatwise.v1.MatchService/GetMatch", 404, "NOT_FOUND"),
        ("PUT", "/v1/games", 405, "METHOD_NOT_ALLOWED"),
        ("OPTIONS", "/v1/games", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/matches/none:abort", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/healthz", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/games?colour=red", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?access_token=secret", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageSize=1&pageSize=2", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageSize=1&page_size=2", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/matches?state=STATE_ASLEEP", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/matches?state=3", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageSize=x", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageSize=1e99", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageSize=" + "9" * 5000, 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/games?pageToken=%ff", 400, "MALFORMED"),
        ("GET", "/v1/games?" + "&".join(f"a{i}=1" for i in range(200)), 400, "MALFORMED"),
        ("GET", "/v1/games/ugo?name=games/ubongo", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/ladders/x/results?newestFirst=maybe", 400, "INVALID_ARGUMENT"),
        ("POST", "/v1/matches:check?mend=true", 400, "INVALID_ARGUMENT"),
    ],
)
async def test_a_url_that_means_nothing_is_refused(
    http_house: House, verb: str, path: str, status: int, reason: str
) -> None:
    async with admin(http_house) as http:
        answer = await http.call(verb, path)
        assert (answer.status, answer.reason) == (status, reason)
        assert is_documented(answer)
        assert "secret" not in answer.message
        assert (await http.get("/v1/games")).status == 200


@pytest.mark.parametrize("part", ["a%2Fb", "a%3Alive", "%ff", "", "%2F"])
async def test_no_part_of_a_name_has_a_slash_or_a_colon(http_house: House, part: str) -> None:
    async with http_house.http() as http:
        answer = await http.get(f"/v1/matches/{part}")
        assert answer.message.startswith("there is nothing at ")


async def test_a_405_names_the_verbs_that_are_served(http_house: House) -> None:
    async with http_house.http() as http:
        assert (await http.call("PUT", "/v1/matches")).headers["allow"] == "GET, HEAD, POST"
        assert (await http.call("GET", "/v1/matches/x:void")).headers["allow"] == "POST"
        assert (await http.call("POST", "/v1/bots/a/versions/1")).headers["allow"] == "DELETE, GET, HEAD"


BROKEN = {
    b"{": "MALFORMED",
    b"": None,
    b"nonsense": "MALFORMED",
    b"\xff\xfe": "MALFORMED",
    b"[]": "MALFORMED",
    b"null": "INVALID_ARGUMENT",
    b"1": "MALFORMED",
    b'"x"': "MALFORMED",
    b'{"bot":"a","bot":"b"}': "MALFORMED",
    b'{"bot":NaN}': "MALFORMED",
    b"[" * 100_000: "MALFORMED",
    b'{"a":' * 50_000: "MALFORMED",
    b'{"bot":' + b"9" * 5000 + b"}": "INVALID_ARGUMENT",
    b'{"bot":' + b"9" * 30 + b"}": "INVALID_ARGUMENT",
    b"{}": "INVALID_ARGUMENT",
    b'{"colour":"red"}': "INVALID_ARGUMENT",
    b'{"bot":1}': "INVALID_ARGUMENT",
    b'{"bot":true}': "INVALID_ARGUMENT",
    b'{"bot":["a"]}': "INVALID_ARGUMENT",
    b'{"bot":"a-null-owner","owner":null}': "INVALID_ARGUMENT",
    b'{"bot":"two-ids","requestId":"a","request_id":"b"}': "INVALID_ARGUMENT",
    b'{"bot":{"a":{}}}': "INVALID_ARGUMENT",
    b'{"bot":"\\ud800"}': "INVALID_ARGUMENT",
    b'{"bot":"a\\u0000"}': "INVALID_ARGUMENT",
    b'{"@type":"x"}': "INVALID_ARGUMENT",
    b'{"":1}': "INVALID_ARGUMENT",
}


@pytest.mark.parametrize("body", [body for body in BROKEN if body], ids=lambda body: repr(body[:24]))
async def test_a_body_that_is_no_request_is_refused(http_house: House, body: bytes) -> None:
    async with admin(http_house) as http:
        answer = await http.call("POST", "/v1/bots", body)
        assert (answer.status, answer.reason) == (400, BROKEN[body])
        assert is_documented(answer)
        assert (await http.get("/v1/games")).status == 200


TYPES = {
    "options": [1, "x", [], {"rounds": 1}, {"rounds": {}}],
    "bots": ["x", {}, [1], [[]], [None]],
    "timeControl": [
        1,
        "x",
        [],
        {"bankMs": "x"},
        {"bankMs": 1.5},
        {"bankMs": 2**40},
        {"bankMs": True},
        {"x": 1},
    ],
    "dealSet": [1, {"number": []}],
    "game": [1, {}, [], True],
}


@pytest.mark.parametrize(
    ("field", "value"), [(name, value) for name, each in TYPES.items() for value in each]
)
async def test_a_value_of_another_type_is_refused(http_house: House, field: str, value: object) -> None:
    async with admin(http_house) as http:
        answer = await http.call("POST", "/v1/matches", {field: value})
        assert (answer.status, answer.reason) == (400, "INVALID_ARGUMENT")
        assert is_documented(answer)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("pageSize=abc", "pageSize must be a whole number from"),
        ("pageSize=1e2", "pageSize must be a whole number from"),
        ("pageSize=1e99", "pageSize must be a whole number from"),
        ("pageSize=" + "9" * 30, "pageSize must be a whole number from"),
        ("createdFrom=2026-11-22", "a time such as 2026-11-22T12:00:00Z"),
        ("createdFrom=2026-11-22T12:00:00+01:00", "%2B"),
    ],
)
async def test_a_parameter_of_another_form_is_told_the_form(http_house: House, query: str, told: str) -> None:
    async with admin(http_house) as http:
        answer = await http.get(f"/v1/matches?{query}")
        assert (answer.status, answer.reason) == (400, "INVALID_ARGUMENT")
        assert told in answer.message


async def test_numbers_and_times_of_the_right_form_are_taken(http_house: House) -> None:
    async with admin(http_house) as http:
        for query in (
            "pageSize=1",
            "createdFrom=2026-11-22T12:00:00.5Z",
            "createdFrom=2026-11-22T12:00:00%2B01:00",
        ):
            assert (await http.get(f"/v1/matches?{query}")).status == 200


async def test_a_missing_field_is_named(http_house: House) -> None:
    async with admin(http_house) as http:
        assert "bot is required" in (await http.call("POST", "/v1/bots", {})).message
        assert "game is required" in (await http.call("POST", "/v1/matches", {})).message


async def test_a_bot_is_registered_once_without_a_request_id(http_house: House) -> None:
    async with admin(http_house) as http:
        assert (await http.call("POST", "/v1/bots", {"bot": "only-once"})).status == 200
        again = await http.call("POST", "/v1/bots", {"bot": "only-once"})
        assert (again.status, again.reason) == (409, "ALREADY_EXISTS")


async def test_unknown_fields_and_parameters_are_refused_by_name(http_house: House) -> None:
    async with admin(http_house) as http:
        for path, body in (
            ("/v1/matches", {"colour": 1}),
            ("/v1/ladders", {"name": "ladders/x", "colour": 1}),
        ):
            assert "colour" in (await http.call("POST", path, body)).message
        answer = await http.get("/v1/games?colour=red")
        assert "colour" in answer.message
        assert "pageSize" in answer.message


async def test_a_name_in_the_body_is_the_one_of_the_path(http_house: House) -> None:
    async with admin(http_house) as http:
        answer = await http.call("POST", "/v1/matches/a:abort", {"name": "matches/b"})
        assert (answer.status, answer.reason) == (400, "INVALID_ARGUMENT")
        assert (await http.call("POST", "/v1/matches/a:abort", {"name": "matches/a"})).status == 404


async def test_a_body_is_json_in_utf_8(http_house: House) -> None:
    async with admin(http_house) as http:
        for said in (
            {"content-type": "application/x-www-form-urlencoded"},
            {"content-type": "text/plain"},
            {"content-type": "application/json; charset=latin-1"},
            {"content-type": "application/json", "content-encoding": "gzip"},
        ):
            answer = await http.call("POST", "/v1/bots", {"bot": "x"}, said)
            assert (answer.status, answer.reason) == (415, "UNSUPPORTED_MEDIA_TYPE")
            assert is_documented(answer)
        good = {"content-type": 'Application/JSON; charset="UTF-8"'}
        assert (await http.call("POST", "/v1/bots", {"bot": "typed-bot"}, good)).status == 200


async def test_a_get_takes_no_body(http_house: House) -> None:
    async with http_house.http() as http:
        answer = await http.call("GET", "/v1/games", {"pageSize": 1})
        assert (answer.status, answer.reason) == (400, "MALFORMED")


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "application/*", "text/html, */*;q=0.1", "application/json;q=0.5"]
)
async def test_json_is_given_to_those_who_take_it(http_house: House, accept: str) -> None:
    async with http_house.http() as http:
        assert (await http.get("/v1/games", accept=accept)).status == 200


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "application/json;q=0", "*/*; q=0.000", ",", "x"]
)
async def test_those_who_take_no_json_are_told_so(http_house: House, accept: str) -> None:
    async with http_house.http() as http:
        answer = await http.get("/v1/games", accept=accept)
        assert (answer.status, answer.reason) == (406, "NOT_ACCEPTABLE")
        assert is_documented(answer)


async def test_a_body_has_at_most_a_quarter_of_a_mebibyte(http_house: House) -> None:
    async with admin(http_house) as http:
        answer = await http.call("POST", "/v1/bots", b'{"bot":"' + b"x" * 300_000 + b'"}')
        assert (answer.status, answer.reason) == (413, "REQUEST_TOO_LARGE")
        assert is_documented(answer)
        assert (await http.get("/v1/games")).status == 200
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        head = f"POST /v1/bots HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {http_house.admin.token}\r\ntransfer-encoding: chunked\r\n\r\n"
        await http.send_raw(head.encode() + chunk * 5 + b"0\r\n\r\n")
        assert (await http.answer()).status == 413


async def test_a_store_that_is_away_is_told(http_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatwise_server.store.errors import StoreUnavailable

    async def away(*_: Any) -> None:
        raise StoreUnavailable("gone")

    assert http_house.server is not None
    with monkeypatch.context() as patch:
        patch.setattr(type(http_house.server.store.matches), "get_meta", away)
        async with http_house.http() as http:
            answer = await http.get("/v1/matches/x")
            assert (answer.status, answer.reason) == (503, "STORE_UNAVAILABLE")


async def test_a_fault_of_ours_is_told_without_its_insides(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("the secret inside")

    assert http_house.server is not None
    with monkeypatch.context() as patch:
        patch.setattr(type(http_house.server.store.matches), "get_meta", broken)
        async with http_house.http() as http:
            answer = await http.get("/v1/matches/x")
            assert (answer.status, answer.reason) == (500, "INTERNAL")
            assert b"secret" not in answer.body
    assert http_house.logs.named("rpc_failed", method="/seatwise.v1.MatchService/GetMatch")
    http_house.logs.clear()


# Streams


async def test_a_watcher_gets_server_sent_events_to_the_end(http_house: House) -> None:
    async with dealt(http_house) as (table, _, _), http_house.http() as http:
        await http.send("GET", f"/v1/{table.name}:watch", headers={"accept": "text/event-stream"})
        status, headers, _ = await http.answer_head()
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["cache-control"] == "no-store"
        assert "content-length" not in headers
        playing = asyncio.create_task(table.play_out())
        events = b"".join([chunk async for chunk in http.chunks()]).split(b"\n\n")
        await playing
        assert events[0] == b"retry: 3000"
        assert events[-2:] == [b"event: end\ndata: {}", b""]
        items = [json.loads(event.removeprefix(b"data: ")) for event in events[1:-2] if event != b":"]
        assert items[0]["match"]["name"] == table.name
        assert items[-1]["match"]["result"]["endings"] == ["ENDING_COMPLETED"] * 2
        for item in items:
            json_format.ParseDict(item, match_service_pb2.WatchMatchResponse())
        assert (await http.get("/v1/games")).status == 200


async def test_a_program_gets_a_line_for_each_item(http_house: House) -> None:
    name = await finished_match(http_house)
    async with http_house.http() as http:
        answer = await http.get(f"/v1/{name}:watch", accept="application/x-ndjson")
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert "content-encoding" not in answer.headers
        items = [json.loads(line) for line in answer.body.splitlines() if line]
        assert items[0]["match"]["name"] == name


async def test_a_stream_is_not_packed(http_house: House) -> None:
    name = await finished_match(http_house)
    async with http_house.http() as http:
        for accept in ("application/x-ndjson", "text/event-stream"):
            answer = await http.get(f"/v1/{name}:watch", accept=accept, accept_encoding="gzip")
            assert "content-encoding" not in answer.headers


async def test_a_stream_that_is_refused_has_a_status(http_house: House) -> None:
    async with http_house.http() as http:
        for accept in ("application/x-ndjson", "text/event-stream"):
            answer = await http.get("/v1/matches/none:watch", accept=accept)
            assert (answer.status, answer.reason) == (404, "NOT_FOUND")
            assert answer.headers["content-type"] == "application/json"
        assert (await http.get("/v1/matches/none:watch", accept="application/json")).status == 404
        assert (await http.get("/v1/matches/none:watch", accept="text/html")).status == 406


async def test_a_stream_says_when_it_can_go_on_no_longer(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatwise_server.play.spectating import MatchWatcher
    from seatwise_server.store.errors import StoreUnavailable

    async def breaking(*_: Any, **__: Any) -> AsyncIterator[match_service_pb2.WatchMatchResponse]:
        yield match_service_pb2.WatchMatchResponse(at_ms=1)
        raise StoreUnavailable("gone")

    name = await finished_match(http_house)
    with monkeypatch.context() as patch:
        patch.setattr(MatchWatcher, "follow_match", breaking)
        async with http_house.http() as http:
            events = (await http.get(f"/v1/{name}:watch", accept="text/event-stream")).body.split(b"\n\n")
            kind, data = events[-2].split(b"\n")
            assert kind == b"event: refused"
            said = json.loads(data.removeprefix(b"data: "))["error"]
            assert (said["code"], said["details"][0]["reason"]) == (503, "STORE_UNAVAILABLE")
            lines = (await http.get(f"/v1/{name}:watch", accept="application/x-ndjson")).body.splitlines()
            assert json.loads(lines[-1])["error"] == said


async def test_a_silent_stream_gives_signs_of_life(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatwise_server.rest import event_streams

    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.05)
    async with dealt(http_house) as (table, _, _), http_house.http() as http, http_house.http() as lines:
        await http.send("GET", f"/v1/{table.name}:watch", headers={"accept": "text/event-stream"})
        await http.answer_head()
        seen = [chunk async for chunk in first_chunks(http, 4)]
        assert seen[-1] == b":\n\n"
        await lines.send("GET", f"/v1/{table.name}:watch")
        await lines.answer_head()
        assert [chunk async for chunk in first_chunks(lines, 4)][-1] == b"\n"
        await table.play_out()


async def test_a_silent_stream_of_a_bot_gives_signs_of_life(
    http_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatwise_server.rest import event_streams

    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.05)
    wire = await http_house.bot()
    async with http_house.http(wire.token) as http:
        await http.send("GET", "/v1/play")
        await http.answer_head()
        seen = [chunk async for chunk in first_chunks(http, 4)]
        assert set(seen) == {b'{"items":[]}\n', b"\n"}


async def first_chunks(http: HttpConnection, count: int) -> AsyncIterator[bytes]:
    async for chunk in http.chunks():
        yield chunk
        count -= 1
        if not count:
            return


async def test_a_watcher_who_hangs_up_leaves_nothing_behind(http_house: House) -> None:
    async with dealt(http_house) as (table, _, _):
        async with http_house.http() as http:
            await http.send("GET", f"/v1/{table.name}:watch")
            await http.answer_head()
        await until(lambda: http_house.logs.named("rpc_ended", door="rest", code="CANCELLED"))
        await table.play_out()


# Secrets


async def test_a_spy_who_plays_finds_no_seed_in_any_byte(http_house: House) -> None:
    """Not in hexadecimal, not in base64, not as it is."""
    seen = []
    async with dealt(http_house) as (table, asked, _):
        for token in ("", asked.wire.token):
            async with http_house.http(token) as http:
                await http.send("GET", f"/v1/{table.name}:watch")
                _, _, head = await http.answer_head()
                seen += [head, *[chunk async for chunk in first_chunks(http, 2)]]
            async with http_house.http(token) as http:
                for route in HTTP_ROUTES:
                    if route.verb == "GET" and not route.method.server_streaming:
                        name = asked.wire.bot if "version" in route.path_parameters else table.name
                        values = iter(name.split("/")[1::2])
                        answer = await http.get(
                            re.sub(r"\{\w+\}", lambda _, left=values: next(left), route.path)
                        )
                        seen += [answer.head, answer.body]
        await table.play_out()
        await http_house.admin.over(table.name)
        seed = bytes.fromhex(json.loads(await http_house.admin.record(table.name))["seed"])
    forms = {seed, seed.hex().encode(), base64.b64encode(seed), base64.urlsafe_b64encode(seed)}
    assert len(seen) > 40
    assert not [raw for raw in seen if any(form.rstrip(b"=") in raw for form in forms)]


# Every answer


async def test_every_answer_has_strict_headers_and_the_id_of_its_request(http_house: House) -> None:
    async with http_house.http() as http:
        for path in ("/v1/games", "/nothing", "/healthz", "/v1/bots?x=1"):
            answer = await http.get(path)
            assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "server" not in answer.headers
            assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
        mine = await http.get("/v1/games", x_request_id="my-id.1")
        assert mine.headers["x-request-id"] == "my-id.1"
        forged = await http.get("/v1/games", x_request_id="a b{}")
        assert re.fullmatch("[0-9a-f]{16}", forged.headers["x-request-id"])


async def test_each_request_is_one_line_of_the_log_without_secrets(http_house: House) -> None:
    bot = await http_house.bot()
    http_house.logs.clear()
    async with http_house.http(bot.token) as http:
        await http.get("/v1/matches/none?secret=in-the-query", x_request_id="line-1")
        await http.get("/v1/unknown/in-the-path", x_request_id="line-2")
        await http.get("/healthz")
    one, two = http_house.logs.named("rpc_ended", door="rest")
    assert {**one, "took_ms": 0} == {
        "level": "info", "event": "rpc_ended", "door": "rest", "method": "/seatwise.v1.MatchService/GetMatch", "verb": "GET", "status": 400,
        "code": "INVALID_ARGUMENT", "reason": "INVALID_ARGUMENT", "took_ms": 0, "request_id": "line-1",
    }  # fmt: skip
    assert (two["method"], two["status"], two["request_id"]) == ("", 404, "line-2")
    for secret in (bot.token, "in-the-query", "in-the-path"):
        assert not any(secret in line for line in http_house.logs.lines)


async def test_health_is_told_at_the_root(http_house: House) -> None:
    async with http_house.http() as http:
        for path in ("/healthz", "/readyz"):
            assert (await http.get(path)).json == {"status": "SERVING"}
        assert (await http.call("HEAD", "/readyz")).status == 200


async def test_the_api_describes_itself(http_house: House) -> None:
    async with http_house.http() as http:
        document = await http.get("/v1/openapi.json")
        assert document.json["openapi"].startswith("3.1")
        again = await http.get("/v1/openapi.json", if_none_match=document.headers["etag"])
        assert again.status == 304
        page = await http.get("/v1/docs", accept="text/html,*/*;q=0.8")
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["content-security-policy"].startswith("default-src 'none'; ")
        assert b"<script" not in page.body


async def test_head_is_get_without_the_body(http_house: House) -> None:
    name = await finished_match(http_house)
    async with http_house.http() as http:
        for path in ("/v1/games", f"/v1/{name}/record", f"/v1/{name}:watch"):
            full = await http.get(path)
            head = await http.call("HEAD", path)
            assert (head.status, head.body) == (200, b"")
            assert head.headers.get("etag") == full.headers.get("etag")
        assert (await http.call("HEAD", "/v1/nothing")).status == 404


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("br", False),
        ("xgzip", False),
    ],
)
async def test_gzip_is_for_those_who_accept_it(http_house: House, accepted: str, is_packed: bool) -> None:
    async with admin(http_house) as http:
        answer = await http.get("/v1/openapi.json", accept_encoding=accepted)
        assert (answer.headers.get("content-encoding") == "gzip") is is_packed
