"""Calls that ask for what cannot be: each is refused with a documented reason, in words without our insides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from harness import Refused, Wire, dealt, plays_on, refusal_of

from seatwise import v1
from seatwise.v1 import (
    admin_service_pb2,
    bot_service_pb2,
    game_service_pb2,
    ladder_pb2,
    ladder_service_pb2,
    league_pb2,
    league_service_pb2,
    lobby_service_pb2,
    match_service_pb2,
    time_control_pb2,
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
    """Whether an empty request has an answer: the proto demands no field, and the URL names nothing."""
    route = ROUTES[method]
    is_named = bool(route.path_field) or route.body not in (NO_BODY, WHOLE_BODY)
    return not is_named and not any(rule_of_field(field).is_required for field in route.request.fields)


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


async def test_a_text_for_people_is_printable(house):
    """The refusal names the field."""
    bots = [(await house.bot()).bot for _ in range(2)]
    match = match_service_pb2.CreateMatchRequest(game="games/ugo", bots=bots, request_id="a\tb")
    void = admin_service_pb2.VoidMatchRequest(name="matches/none", reason="gone\x1b[2J")
    for field, method, request in (
        ("request_id", "MatchService/CreateMatch", match),
        ("reason", "AdminService/VoidMatch", void),
        ("owner", "BotService/RegisterBot", bot_service_pb2.RegisterBotRequest(bot="good", owner="\n")),
    ):
        refused = await refusal_of(house.admin.raw(f"/seatwise.v1.{method}", request.SerializeToString()))
        assert refused.reason == "INVALID_ARGUMENT"
        assert f" of {field} is '" in refused.message


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


# Bots


@pytest.mark.parametrize(
    "fields",
    [
        {"bot": ""},
        {"bot": "Upper"},
        {"bot": "1st"},
        {"bot": "a b"},
        {"bot": "a/b"},
        {"bot": "a.b"},
        {"bot": "-a"},
        {"bot": "a-"},
        {"bot": "é"},
        {"bot": "a" * 41},
        {"bot": "a" * 100_000},
        {"bot": "a\n"},
        {"bot": "good", "version": "a/b"},
        {"bot": "good", "version": "x" * 21},
        {"bot": "good", "owner": "x" * 81},
        {"bot": "good", "request_id": "x" * 65},
        {"bot": "good", "owner": "me\x1b[2J"},
        {"bot": "good", "owner": "me\r\nyou"},
        {"bot": "good", "owner": "evil\u202etxt"},
        {"bot": "good", "request_id": "\x00"},
        {"bot": "good", "version": "1\x07"},
    ],
    ids=lambda fields: ",".join(f"{name}={value[:8]!r}" for name, value in fields.items()),
)
async def test_a_bot_that_cannot_be_registered_so_is_refused(house, fields):
    call = house.admin.bots.RegisterBot(
        bot_service_pb2.RegisterBotRequest(**fields), metadata=house.admin.metadata
    )
    refused = await refusal_of(call)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize(
    "name", ["", "bots/none/versions/1", "bots/none", "x" * 100_000, "bots/a/versions/\x00"], ids=len
)
@pytest.mark.parametrize("method", ["GetBot", "RotateToken", "RevokeToken", "DeleteBot"])
async def test_a_bot_that_is_not_there_is_not_found(house, method, name):
    request = getattr(bot_service_pb2, f"{method}Request")(name=name)
    refused = await refusal_of(getattr(house.admin.bots, method)(request, metadata=house.admin.metadata))
    assert refused.reason == "NOT_FOUND"
    assert is_documented(refused)


# Matches and games


async def created(house, **fields: object) -> Refused:
    """How CreateMatch refuses a match that is good but for these fields."""
    bots = [(await house.bot()).bot for _ in range(2)]
    request = match_service_pb2.CreateMatchRequest(**{"game": "games/ugo", "bots": bots, **fields})
    return await refusal_of(house.admin.matches.CreateMatch(request, metadata=house.admin.metadata))


@pytest.mark.parametrize(
    "options",
    [{"rounds": "0"}, {"rounds": "9"}, {"rounds": "-1"}, {"rounds": "two"}, {"rounds": ""}, {"rounds": "1.0"},
     {"rounds": "99999999999999999999"}, {"rounds": "٣"}, {"rounds": "1" * 100_000}, {"colour": "red"},
     {"x" * 100_000: "1"}, {"rounds": "1", "": ""}],
    ids=lambda options: repr(options)[:24],
)  # fmt: skip
async def test_options_that_the_game_does_not_know_are_refused(house, options):
    refused = await created(house, options=options)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize(
    "limits",
    [{"bank_ms": -1}, {"setup_ms": -5}, {"grace_ms": 86_400_001}, {"max_strikes": -1}, {"max_rejections": -2},
     {"free_ms": {"card": -1}}, {"free_ms": {"build": 1000}}, {"free_ms": {"x" * 100_000: 1}},
     {"handover_ms": 2**31 - 1}, {"increment_ms": -2**31}],
    ids=lambda limits: repr(limits)[:28],
)  # fmt: skip
async def test_time_controls_that_cannot_be_played_are_refused(house, limits):
    refused = await created(house, time_control=time_control_pb2.TimeControl(**limits))
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize("count", [0, 1, 5, 100])
async def test_a_table_of_another_size_than_the_game_has_is_refused(house, count):
    bot = (await house.bot()).bot
    refused = await created(house, bots=[bot] * count)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize("game", ["games/chess", "ugo ", "x" * 100_000])
async def test_a_game_that_the_house_does_not_host_is_not_found(house, game):
    refused = await created(house, game=game)
    assert refused.reason == "NOT_FOUND"
    assert is_documented(refused)
    request = game_service_pb2.GetGameRequest(name=game)
    call = house.admin.channel.unary_unary("/seatwise.v1.GameService/GetGame", None, None)
    refused = await refusal_of(call(request.SerializeToString()))
    assert refused.reason == "NOT_FOUND"
    assert is_documented(refused)


@pytest.mark.parametrize("bot", ["", "bots/none/versions/1", "nonsense", "x" * 100_000], ids=len)
async def test_a_player_that_is_not_registered_is_not_found(house, bot):
    refused = await created(house, bots=[(await house.bot()).bot, bot])
    assert refused.reason == "NOT_FOUND"
    assert is_documented(refused)


async def test_an_overlong_request_id_is_refused(house):
    refused = await created(house, request_id="x" * 65)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize(
    "name", ["", "matches/", "matches/none", "bots/x/versions/1", "x" * 100_000], ids=len
)
async def test_a_match_that_is_not_there_is_not_found(house, name):
    stub, metadata = house.admin.matches, house.admin.metadata
    calls = [
        stub.GetMatch(match_service_pb2.GetMatchRequest(name=name), metadata=metadata),
        stub.GetRecord(match_service_pb2.GetRecordRequest(name=name), metadata=metadata),
        stub.AbortMatch(match_service_pb2.AbortMatchRequest(name=name), metadata=metadata),
        anext(aiter(stub.WatchMatch(match_service_pb2.WatchMatchRequest(name=name), metadata=metadata))),
    ]
    for call in calls:
        refused = await refusal_of(call)
        assert refused.reason == "NOT_FOUND"
        assert is_documented(refused)


async def test_the_record_of_a_match_that_is_not_over_is_not_given(house):
    async with dealt(house) as (table, _, _):
        refused = await refusal_of(house.admin.record(table.name))
        assert refused.reason == "MATCH_NOT_OVER"
        assert is_documented(refused)
        await plays_on(house, table)


# Pages


LISTS = {
    "/seatwise.v1.BotService/ListBots": bot_service_pb2.ListBotsRequest,
    "/seatwise.v1.MatchService/ListMatches": match_service_pb2.ListMatchesRequest,
    "/seatwise.v1.GameService/ListGames": game_service_pb2.ListGamesRequest,
    "/seatwise.v1.LadderService/ListLadders": ladder_service_pb2.ListLaddersRequest,
    "/seatwise.v1.LeagueService/ListLeagues": league_service_pb2.ListLeaguesRequest,
    "/seatwise.v1.AdminService/ListLiveMatches": admin_service_pb2.ListLiveMatchesRequest,
}


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    "fields",
    [{"page_size": -1}, {"page_size": -(2**31)}, {"page_token": "nonsense"}, {"page_token": "!!!!"},
     {"page_token": "é"}, {"page_token": "x" * 100_000}, {"page_token": "AAAA"},
     {"page_token": "99999999999999999999-1"}, {"page_token": "1-99999999999999999999"}],
    ids=lambda fields: repr(fields)[:28],
)  # fmt: skip
async def test_pages_that_no_list_gave_out_are_refused(house, method, fields):
    request = LISTS[method](**fields)
    refused = await refusal_of(house.admin.raw(method, request.SerializeToString()))
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


# Ladders and leagues


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"name": "ladders/"}, {"name": "ladders/a b"}, {"name": "ladders/" + "x" * 64},
               {"seats": -1}, {"seats": 5}, {"options": {"rounds": "9"}}, {"time_control": {"bank_ms": -1}}], ids=repr
)  # fmt: skip
async def test_a_ladder_that_cannot_be_is_refused(house, fields):
    ladder = ladder_pb2.Ladder(**{"name": "ladders/bad", "game": "games/ugo", "seats": 2, **fields})
    request = ladder_service_pb2.CreateLadderRequest(ladder=ladder)
    call = house.admin.raw("/seatwise.v1.LadderService/CreateLadder", request.SerializeToString())
    refused = await refusal_of(call)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


@pytest.mark.parametrize(
    "settings", ["", "{", "{}", "[]", "1", "null", '"x"', "NaN", "1e400", "[" * 100_000, "9" * 5000,
                 '{"rules_version": "1", "game": "chess"}', '{"rules_version": 1, "game": []}',
                 '{"rules_version": "1", "game": "ugo", "entrants": [1]}'], ids=lambda settings: settings[:60]
)  # fmt: skip
async def test_settings_that_are_none_of_a_league_are_refused_in_words_of_ours(house, settings):
    league = league_pb2.League(name="leagues/bad", settings=settings)
    request = league_service_pb2.CreateLeagueRequest(league=league)
    call = house.admin.raw("/seatwise.v1.LeagueService/CreateLeague", request.SerializeToString())
    refused = await refusal_of(call)
    assert refused.reason == "INVALID_ARGUMENT"
    assert is_documented(refused)


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
