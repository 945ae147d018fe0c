"""Calls that ask for what cannot be: each is refused with a documented reason, in words without our insides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from harness import House, Refused, Wire, dealt, plays_on, refusal_of

from seatwise import v1
from seatwise.v1 import (
    bot_service_pb2,
    ladder_service_pb2,
    lobby_service_pb2,
)
from seatwise_server.lobby.lobby import MOST_MATCHES
from seatwise_server.refusal import REASONS
from seatwise_server.rest.routes import HTTP_ROUTES, NO_BODY, WHOLE_BODY
from seatwise_server.rpc import lobby_servicer
from seatwise_server.services.access import ACCESS, Access
from seatwise_server.services.declarations import rule_of_field

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVICES = [
    service
    for each in iter_modules(v1.__path__)
    if each.name.endswith("_service_pb2")
    for service in import_module(f"seatwise.v1.{each.name}").DESCRIPTOR.services_by_name.values()
]
METHODS = [
    f"/{service.full_name}/{method.name}"
    for service in SERVICES
    for method in service.methods
    if not (method.client_streaming or method.server_streaming)
]
ROUTES = {route.operation: route for route in HTTP_ROUTES}
ADMIN_ONLY = [method for method in METHODS if ACCESS[method] not in (Access.PUBLIC, Access.TOKEN)]


def needs_nothing(method: str) -> bool:
    """Whether an empty request has an answer: the proto demands no field, the URL names nothing, and admins may call it."""
    route = ROUTES[method]
    is_named = bool(route.path_field) or route.body not in (NO_BODY, WHOLE_BODY)
    is_for_others = ACCESS[method] is Access.JOIN
    return (
        not is_for_others
        and not is_named
        and not any(rule_of_field(field).required for field in route.request.fields)
    )


BROKEN = (b"\xff", b"\x0a\x05abc", b"\x08\x80", b"\x0b\x0b\x0b")


def is_documented(refused: Refused) -> bool:
    """A reason of the list with its own code, and a sentence without class names, paths or pages of text."""
    insides = ("Traceback", "_pb2", "Error", "object at", "__", "seatwise_server", "redis", ".py")
    return (
        REASONS[refused.reason] == refused.code
        and 0 < len(refused.message) < 400
        and refused.message.isprintable()
        and not any(word in refused.message for word in insides)
    )


# Bytes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("body", BROKEN, ids=repr)
async def test_bytes_that_are_no_request_are_malformed(house, method, body):
    refused = await refusal_of(house.admin.raw(method, body))
    assert refused.reason == "MALFORMED"
    assert is_documented(refused)


async def test_bytes_that_are_no_request_are_malformed_for_spectators_too(house):
    call = house.admin.channel.unary_stream("/seatwise.v1.MatchService/WatchMatch", None, None)
    refused = await refusal_of(anext(aiter(call(b"\xff", metadata=house.admin.metadata))))
    assert refused.reason == "MALFORMED"
    assert is_documented(refused)


@pytest.mark.parametrize("method", METHODS)
async def test_an_empty_request_is_answered_or_refused_for_a_reason(house, method):
    call = house.admin.channel.unary_unary(method, None, None)(b"", metadata=house.admin.metadata)
    if needs_nothing(method):
        await call
    else:
        assert is_documented(await refusal_of(call))


@pytest.mark.parametrize("method", METHODS)
async def test_a_request_of_ten_mebibytes_is_too_large(house, method):
    refused = await refusal_of(house.admin.raw(method, bytes(10 * 2**20)))
    assert refused.code == "RESOURCE_EXHAUSTED"


async def test_a_compressed_request_is_refused(house):
    """A quarter of a mebibyte may become a quarter of a gibibyte; gRPC 1.76 unpacks all of it, and then looks at its size."""
    call = house.admin.channel.unary_unary("/seatwise.v1.GameService/ListGames", None, None)
    refused = await refusal_of(call(bytes(10 * 2**20), compression=grpc.Compression.Gzip))
    assert refused.code == "UNIMPLEMENTED"


def texts_of(method: str) -> list[str]:
    """The fields of the request that are texts, and those of the messages in it, joined by dots."""
    service, name = method.removeprefix("/").split("/")
    request = next(it for it in SERVICES if it.full_name == service).methods_by_name[name].input_type
    return list(_texts_in(request))


def _texts_in(message: Any) -> Iterator[str]:
    for field in message.fields:
        if field.type == field.TYPE_STRING and not message.GetOptions().map_entry:
            yield field.name
        elif field.message_type and not field.message_type.full_name.startswith("google."):
            yield from (f"{field.name}.{text}" for text in _texts_in(field.message_type))


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (method, field)
        for method in METHODS
        if ACCESS[method] is not Access.JOIN
        for field in texts_of(method)
    ],
)
async def test_orders_to_a_terminal_are_taken_by_no_method(house, method, field):
    """Nor do they come back in the refusal."""
    service, name = method.removeprefix("/").split("/")
    descriptor = next(it for it in SERVICES if it.full_name == service).methods_by_name[name]
    request = message_factory.GetMessageClass(descriptor.input_type)()
    *path, last = field.split(".")
    holder = reduce(getattr, path, request)
    if isinstance(getattr(holder, last), str):
        setattr(holder, last, "\x1b[2J\u202e")
    else:
        getattr(holder, last).append("\x1b[2J\u202e")
    call = house.admin.channel.unary_unary(method, None, None)
    refused = await refusal_of(call(request.SerializeToString(), metadata=house.admin.metadata))
    assert refused.reason in ("INVALID_ARGUMENT", "NOT_FOUND")
    assert is_documented(refused)


# Tokens


@pytest.mark.parametrize("method", ADMIN_ONLY)
async def test_methods_of_the_admin_are_refused_to_bots(house, method):
    bot = await house.bot()
    refused = await refusal_of(bot.raw(method, b""))
    assert refused.reason == "NOT_ALLOWED"
    assert is_documented(refused)
    refused = await refusal_of(house.wire().raw(method, b""))
    assert refused.reason == "TOKEN_MISSING"
    assert is_documented(refused)


@pytest.mark.parametrize("method", METHODS)
async def test_a_token_that_is_no_good_is_refused_even_where_none_is_needed(house, method):
    refused = await refusal_of(house.wire("no.such.token").raw(method, b""))
    assert refused.reason == "TOKEN_UNKNOWN"


async def test_the_admin_has_no_seat(house):
    admin = house.wire(house.admin.token)
    for how in (await admin.play().end(), await admin.attending().end()):
        assert how.reason == "NOT_ALLOWED"
        assert is_documented(how)


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic abc", "", "bearer  "], ids=repr)
async def test_an_authorization_without_a_token_is_told_what_to_send(house, header):
    call = house.admin.bots.ListBots(bot_service_pb2.ListBotsRequest(), metadata=(("authorization", header),))
    refused = await refusal_of(call)
    assert refused.reason == "TOKEN_MISSING"
    assert is_documented(refused)


async def test_the_scheme_of_the_token_may_be_written_small(house):
    call = house.admin.bots.ListBots(
        bot_service_pb2.ListBotsRequest(), metadata=(("authorization", f"bearer {house.admin.token}"),)
    )
    assert (await call).bots is not None


async def test_only_its_own_bot_may_be_let_back_by_a_bot(house):
    bot, other = await house.bot(), await house.bot()
    request = ladder_service_pb2.ReinstateBotRequest(ladder="ladders/none", bot=other.bot)
    refused = await refusal_of(
        bot.raw("/seatwise.v1.LadderService/ReinstateBot", request.SerializeToString())
    )
    assert refused.reason == "NOT_ALLOWED"
    assert is_documented(refused)


# Requests that no method can carry out


BOT, OTHER = "bots/refused/versions/1", "bots/refused-too/versions/1"
"""Two bots that are registered."""
HUGE = "x" * 100_000
NAMES = ("", "bots/none/versions/1", "bots/none", HUGE, "bots/a/versions/\x00")
NO_MATCHES = ("", "matches/", "matches/none", "bots/x/versions/1", HUGE)
NO_OPTIONS = [
    {"rounds": "0"}, {"rounds": "9"}, {"rounds": "-1"}, {"rounds": "two"}, {"rounds": ""}, {"rounds": "1.0"},
    {"rounds": "99999999999999999999"}, {"rounds": "٣"}, {"rounds": "1" * 100_000}, {"colour": "red"}, {HUGE: "1"},
    {"rounds": "1", "": ""},
]  # fmt: skip
NO_TIMES = [
    {"bank_ms": -1}, {"setup_ms": -5}, {"grace_ms": 86_400_001}, {"max_strikes": -1}, {"max_rejections": -2},
    {"free_ms": {"card": -1}}, {"free_ms": {"build": 1000}}, {"free_ms": {HUGE: 1}}, {"handover_ms": 2**31 - 1},
    {"increment_ms": -(2**31)},
]  # fmt: skip
NO_BOTS = [
    {"bot": ""}, {"bot": "Upper"}, {"bot": "1st"}, {"bot": "a b"}, {"bot": "a/b"}, {"bot": "a.b"}, {"bot": "-a"}, {"bot": "a-"},
    {"bot": "é"}, {"bot": "a" * 41}, {"bot": HUGE}, {"bot": "a\n"}, {"version": "a/b"}, {"version": "x" * 21},
    {"version": "1\x07"}, {"owner": "x" * 81}, {"owner": "me\x1b[2J"}, {"owner": "me\r\nyou"}, {"owner": "evil\u202etxt"},
    {"owner": "\n"}, {"request_id": "x" * 65}, {"request_id": "\x00"},
]  # fmt: skip
NO_PAGES = [
    {"page_size": -1}, {"page_size": -(2**31)}, {"page_token": "nonsense"}, {"page_token": "!!!!"}, {"page_token": "é"},
    {"page_token": HUGE}, {"page_token": "AAAA"}, {"page_token": "99999999999999999999-1"},
    {"page_token": "1-99999999999999999999"},
]  # fmt: skip
NO_LADDERS = [
    {"name": ""}, {"name": "ladders/"}, {"name": "ladders/a b"}, {"name": "ladders/" + "x" * 64}, {"seats": -1}, {"seats": 5},
    {"options": {"rounds": "9"}}, {"time_control": {"bank_ms": -1}},
]  # fmt: skip
NO_SETTINGS = [
    "", "{", "{}", "[]", "1", "null", '"x"', "NaN", "1e400", "[" * 100_000, "9" * 5000, '{"rules_version": "1", "game": "chess"}',
    '{"rules_version": 1, "game": []}', '{"rules_version": "1", "game": "ugo", "entrants": [1]}',
]  # fmt: skip
NO_TOKENS = [
    {"holder": ""}, {"holder": "a\nb"}, {"holder": "x" * 81}, {"holder": "admin"}, {"scopes": []}, {"scopes": ["SCOPE_UNSPECIFIED"]},
    {"scopes": ["SCOPE_READ", "SCOPE_PLAY"]}, {"scopes": [99]}, {"lifetime_s": -1}, {"lifetime_s": 2**31 - 1},
    {"holder": BOT, "scopes": ["SCOPE_OPERATE"]},
]  # fmt: skip


def match(**fields: Any) -> dict[str, Any]:
    """A match that is good but for these fields."""
    return {"game": "games/ugo", "bots": [BOT, OTHER], **fields}


REFUSED: list[tuple[str, list[dict[str, Any]], str]] = [
    ("BotService/RegisterBot", [{"bot": "good", **it} for it in NO_BOTS], "INVALID_ARGUMENT"),
    *((f"BotService/{verb}", [{"name": it} for it in NAMES], "NOT_FOUND") for verb in ("GetBot", "RotateToken", "RevokeToken", "DeleteBot")),
    ("MatchService/CreateMatch", [match(options=it) for it in NO_OPTIONS], "INVALID_ARGUMENT"),
    ("MatchService/CreateMatch", [match(time_control=it) for it in NO_TIMES], "INVALID_ARGUMENT"),
    ("MatchService/CreateMatch", [match(bots=[BOT] * it) for it in (0, 1, 5, 100)], "INVALID_ARGUMENT"),
    ("MatchService/CreateMatch", [match(request_id=it) for it in ("x" * 65, "a\tb")], "INVALID_ARGUMENT"),
    ("MatchService/CreateMatch", [match(bots=[BOT, it]) for it in ("", "bots/none/versions/1", "nonsense", HUGE)], "NOT_FOUND"),
    ("MatchService/CreateMatch", [match(game=it) for it in ("games/chess", "ugo ", HUGE)], "NOT_FOUND"),
    ("GameService/GetGame", [{"name": it} for it in ("games/chess", "ugo ", HUGE)], "NOT_FOUND"),
    *((f"MatchService/{verb}", [{"name": it} for it in NO_MATCHES], "NOT_FOUND") for verb in ("GetMatch", "GetRecord", "AbortMatch", "WatchMatch")),
    *((method, NO_PAGES, "INVALID_ARGUMENT") for method in (
        "BotService/ListBots", "MatchService/ListMatches", "GameService/ListGames", "LadderService/ListLadders",
        "LeagueService/ListLeagues", "AdminService/ListLiveMatches",
    )),
    ("LadderService/CreateLadder", [{"ladder": {"name": "ladders/bad", "game": "games/ugo", "seats": 2, **it}} for it in NO_LADDERS], "INVALID_ARGUMENT"),
    ("LeagueService/CreateLeague", [{"league": {"name": "leagues/bad", "settings": it}} for it in NO_SETTINGS], "INVALID_ARGUMENT"),
    ("AdminService/VoidMatch", [{"name": "matches/none", "reason": "gone\x1b[2J"}], "INVALID_ARGUMENT"),
    ("AccessService/CreateAccessToken", [{"holder": "Joan", "scopes": ["SCOPE_READ"], **it} for it in NO_TOKENS], "INVALID_ARGUMENT"),
    ("AccessService/CreateAccessToken", [{"holder": "bots/none/versions/1", "scopes": ["SCOPE_PLAY"]}], "NOT_FOUND"),
]  # fmt: skip
"""The method, requests that it refuses, and the reason."""


@pytest.mark.parametrize(
    ("method", "fields", "reason"),
    [
        pytest.param(method, fields, reason, id=f"{method.partition('/')[2]}-{number}")
        for number, (method, fields, reason) in enumerate(
            (method, each, reason) for method, requests, reason in REFUSED for each in requests
        )
    ],
)
async def test_a_request_that_cannot_be_carried_out_is_refused_with_its_reason(
    house: House, method: str, fields: dict[str, Any], reason: str
) -> None:
    for bot in ("refused", "refused-too"):
        with suppress(grpc.aio.AioRpcError):  # it is there from the test before
            await house.admin.bots.RegisterBot(
                bot_service_pb2.RegisterBotRequest(bot=bot), metadata=house.admin.metadata
            )
    service, name = method.split("/")
    descriptor = next(it for it in SERVICES if it.name == service).methods_by_name[name]
    request = message_factory.GetMessageClass(descriptor.input_type)(**fields).SerializeToString()
    if descriptor.server_streaming:
        call = house.admin.channel.unary_stream(f"/seatwise.v1.{method}", None, None)
        refused = await refusal_of(anext(aiter(call(request, metadata=house.admin.metadata))))
    else:
        refused = await refusal_of(house.admin.raw(f"/seatwise.v1.{method}", request))
    assert refused.reason == reason
    assert is_documented(refused)


async def test_the_record_of_a_match_that_is_not_over_is_not_given(house):
    async with dealt(house) as (table, _, _):
        refused = await refusal_of(house.admin.record(table.name))
        assert refused.reason == "MATCH_NOT_OVER"
        assert is_documented(refused)
        await plays_on(house, table)


# Attend


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (lobby_service_pb2.AttendRequest(queues=["none"], max_matches=1), "NOT_FOUND"),
        (lobby_service_pb2.AttendRequest(queues=["x" * 100_000], max_matches=1), "NOT_FOUND"),
        (lobby_service_pb2.AttendRequest(queues=["~created"], max_matches=1), "NOT_FOUND"),
        (lobby_service_pb2.AttendRequest(queues=[""], max_matches=1), "NOT_FOUND"),
        (lobby_service_pb2.AttendRequest(queues=["casual"], max_matches=-1), "INVALID_ARGUMENT"),
        (
            lobby_service_pb2.AttendRequest(queues=["casual"], max_matches=MOST_MATCHES + 1),
            "INVALID_ARGUMENT",
        ),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_a_bot_that_attends_for_what_is_not_there_is_told_so(house, request_, reason):
    attending = (await house.bot()).attending()
    await attending.say(request_.max_matches, request_.queues)
    how = await attending.end()
    assert how.reason == reason
    assert is_documented(how)


async def attend_raw(bot: Wire, *bodies: bytes) -> Refused:
    """How an Attend stream of these bytes ends."""
    call = bot.channel.stream_stream("/seatwise.v1.LobbyService/Attend", None, None)(metadata=bot.metadata)
    for body in bodies:
        await call.write(body)

    async def read() -> None:
        async for _ in call:
            pass

    return await refusal_of(read())


async def test_bytes_that_are_no_attendance_are_malformed_first_and_later(house):
    bot = await house.bot()
    good = lobby_service_pb2.AttendRequest(max_matches=1).SerializeToString()
    for bodies in ((b"\xff",), (good, b"\xff"), (good, good, b"\x0a\x05abc")):
        how = await attend_raw(bot, *bodies)
        assert how.reason == "MALFORMED"
        assert is_documented(how)


async def test_a_limit_that_cannot_be_is_refused_later_too(house):
    attending = await (await house.bot()).attend()
    await attending.say(-1)
    how = await attending.end()
    assert how.reason == "INVALID_ARGUMENT"
    assert is_documented(how)


async def test_a_bot_that_attends_and_says_nothing_is_asked_to(house, monkeypatch):
    monkeypatch.setattr(lobby_servicer, "FIRST_REQUEST_S", 0.1)
    how = await (await house.bot()).attending().end()
    assert how.reason == "STREAM_TIMEOUT"  # the bot may come again: the delay may be ours
    assert is_documented(how)


async def test_a_bot_that_attends_and_hangs_up_at_once_is_asked_for_a_first_request(house):
    bot = await house.bot()
    call = bot.channel.stream_stream("/seatwise.v1.LobbyService/Attend", None, None)(metadata=bot.metadata)
    await call.done_writing()
    refused = await refusal_of(anext(aiter(call)))
    assert refused.reason == "INVALID_ARGUMENT"
