"""Every method at every door opens to the scopes that the one table names, and to no others."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory, item, refusal_of
from harness.terminal import ctl, told
from harness.wire import SOON_S

from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1 import bot_service_pb2
from seatwise_server.config import HttpSettings
from seatwise_server.rest.routes import HTTP_ROUTES, HttpRoute
from seatwise_server.services.access import (
    ACCESS,
    ATTEND_METHOD,
    OWN_METHODS,
    PLAY_METHOD,
    SCOPES_OF_BOTS,
    SCOPES_OF_OWNERS,
    SCOPES_OF_PEOPLE,
    Access,
    expand_scopes,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCOPES = sorted(SCOPES_OF_BOTS | SCOPES_OF_PEOPLE | SCOPES_OF_OWNERS, key=str)
ACCESS_REASONS = ("NOT_ALLOWED", "SCOPE_MISSING")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def doors() -> AsyncIterator[House]:
    """A server with all three doors."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), ws_port=0, http=HttpSettings(port=0)) as house:
            yield house


async def create(
    house: House, scope: Access, holder: str = "", lifetime_s: int = 0
) -> pb.CreateAccessTokenResponse:
    if not holder and scope is Access.OWN:
        assert house.server
        await house.server.store.owners.create_owner("owners/joan", 3, 8, "invites/none", "")
        holder = "owners/joan"
    if not holder:
        holder = (await house.bot()).bot if scope in SCOPES_OF_BOTS else "Joan"
    request = pb.CreateAccessTokenRequest(
        holder=holder, scopes=[f"SCOPE_{scope.name}"], lifetime_s=lifetime_s
    )
    answer = await house.admin.raw(
        "/seatwise.v1.AccessService/CreateAccessToken", request.SerializeToString()
    )
    return pb.CreateAccessTokenResponse.FromString(answer)


def expected_reason(method: str, scope: Access) -> str:
    """Why a token with this one scope is refused; empty if it is not."""
    access = ACCESS[method]
    if access is Access.TOKEN:  # the method wants the bot itself or an operator, and some take an owner
        if scope is Access.OWN and method in OWN_METHODS:
            return ""
        return "" if Access.OPERATE in expand_scopes([scope.value]) else "NOT_ALLOWED"
    if access is Access.JOIN:
        return "NOT_ALLOWED"
    if scope is Access.OWN and method in OWN_METHODS:
        return ""
    if access is Access.PUBLIC or access in expand_scopes([scope.value]):
        return ""
    return "NOT_ALLOWED" if (access in SCOPES_OF_BOTS) != (scope in SCOPES_OF_BOTS) else "SCOPE_MISSING"


def reason_of_access(reason: str) -> str:
    return reason if reason in ACCESS_REASONS or reason.startswith("TOKEN_") else ""


async def reason_over_grpc(house: House, route: HttpRoute, token: str) -> str:
    wire = house.wire(token)
    try:
        if route.method.server_streaming:
            call = wire.channel.unary_stream(route.operation, None, None)
            return (await refusal_of(anext(aiter(call(b"", metadata=wire.metadata))))).reason
        call = wire.channel.unary_unary(route.operation, None, None)(b"", metadata=wire.metadata)
        await call
    except Exception:
        return (await refusal_of(call)).reason
    return ""


async def reason_over_http(house: House, route: HttpRoute, token: str) -> str:
    async with house.http(token) as http:
        path = re.sub(r"\{\w+\}", "none", route.path)
        answer = await http.call(route.verb, path, {} if route.body else None)
        return answer.reason if answer.status != 200 else ""


@pytest.mark.parametrize("scope", SCOPES, ids=lambda it: it.value)
async def test_each_unary_method_opens_to_its_scope_by_grpc_and_by_http(doors: House, scope: Access) -> None:
    token = (await create(doors, scope)).token
    for route in HTTP_ROUTES:
        expected = expected_reason(route.operation, scope)
        for door in (reason_over_grpc, reason_over_http):
            assert reason_of_access(await door(doors, route, token)) == expected, (door, route.operation)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda it: it.value)
@pytest.mark.parametrize("subprotocol", ["", "seatwise.v1.proto"], ids=["grpc", "websocket"])
async def test_each_stream_of_bots_opens_to_its_scope_by_grpc_and_by_websocket(
    doors: House, scope: Access, subprotocol: str
) -> None:
    token = (await create(doors, scope)).token
    doors.subprotocol = subprotocol
    try:
        bot = doors.wire(token)
        if expected := expected_reason(ATTEND_METHOD, scope):
            assert (await bot.attending().end()).reason == expected
        else:
            await (await bot.attend()).welcome()
        stream = bot.play()
        if expected := expected_reason(
            PLAY_METHOD, scope
        ):  # a message on its way would be an error of its own
            assert (await stream.end()).reason == expected
        else:
            await stream.send(item("", 0))
            await stream.receive()
    finally:
        doors.subprotocol = ""


@pytest.mark.parametrize("scope", SCOPES, ids=lambda it: it.value)
@pytest.mark.parametrize(("path", "method"), [("/v1/attendance", ATTEND_METHOD), ("/v1/play", PLAY_METHOD)])
async def test_each_stream_of_bots_opens_to_its_scope_by_http(
    doors: House, scope: Access, path: str, method: str
) -> None:
    async with doors.http((await create(doors, scope)).token) as http:
        await http.send("GET", path)
        if expected := expected_reason(method, scope):
            assert (await http.answer()).reason == expected
        else:
            assert (await http.answer_head())[0] == 200


@asynccontextmanager
async def open_streams(house: House, play: str, attend: str, subprotocol: str) -> AsyncIterator[list]:
    house.subprotocol = subprotocol
    try:
        attending, stream = await house.wire(attend).attend(), house.wire(play).play()
        await stream.send(item("", 0))
        await stream.receive()
        yield [attending, stream]
    finally:
        house.subprotocol = ""


@pytest.mark.parametrize("verb", ["RevokeAccessToken", "RotateAccessToken"])
@pytest.mark.parametrize("subprotocol", ["", "seatwise.v1.proto"], ids=["grpc", "websocket"])
async def test_streams_of_a_token_that_is_taken_away_end_within_a_second(
    doors: House, verb: str, subprotocol: str
) -> None:
    tokens = [await create(doors, scope) for scope in (Access.PLAY, Access.ATTEND)]
    async with open_streams(doors, *(it.token for it in tokens), subprotocol) as streams:
        for issued in tokens:
            request = getattr(pb, f"{verb}Request")(name=issued.access_token.name)
            await doors.admin.raw(f"/seatwise.v1.AccessService/{verb}", request.SerializeToString())
        assert [(await it.end(1.0)).reason for it in streams] == ["TOKEN_REVOKED"] * 2


@asynccontextmanager
async def watching_over_grpc(house: House, token: str, match: str) -> AsyncIterator[Awaitable[str]]:
    call = house.wire(token).watch(match)
    await call.read()

    async def end() -> str:
        return (await refusal_of(call.read())).reason

    yield end()


@asynccontextmanager
async def watching_over_http(house: House, token: str, match: str) -> AsyncIterator[Awaitable[str]]:
    async with house.http(token) as http:
        await http.send("GET", f"/v1/{match}:watch", headers={"accept": "application/x-ndjson"})
        assert (await http.answer_head())[0] == 200

        async def end() -> str:
            *_, last = b"".join([chunk async for chunk in http.chunks()]).splitlines()
            return str(json.loads(last)["error"]["details"][0]["reason"])

        yield end()


@pytest.mark.parametrize("watching", [watching_over_grpc, watching_over_http], ids=["grpc", "http"])
async def test_a_watch_ends_when_its_token_is_revoked(
    doors: House, watching: Callable[..., AbstractAsyncContextManager[Awaitable[str]]]
) -> None:
    match = await doors.admin.create([(await doors.bot()).bot for _ in range(2)])
    issued = await create(doors, Access.READ)
    async with watching(doors, issued.token, match.name) as end:
        request = pb.RevokeAccessTokenRequest(name=issued.access_token.name)
        await doors.admin.raw("/seatwise.v1.AccessService/RevokeAccessToken", request.SerializeToString())
        async with asyncio.timeout(SOON_S):
            assert await end == "TOKEN_REVOKED"
    await doors.admin.abort(match.name)


async def test_streams_of_a_token_that_expires_end_within_a_second(doors: House) -> None:
    tokens = [await create(doors, scope, lifetime_s=2) for scope in (Access.PLAY, Access.ATTEND)]
    async with open_streams(doors, *(it.token for it in tokens), "") as streams:
        assert [(await it.end(3.5)).reason for it in streams] == ["TOKEN_EXPIRED"] * 2
    assert (await doors.wire(tokens[0].token).play().end()).reason == "TOKEN_EXPIRED"


async def test_operators_see_when_the_token_of_a_bot_was_last_used_and_others_do_not(doors: House) -> None:
    bot = await doors.bot()
    await (await bot.attend()).welcome()
    assert doors.server
    await doors.server.store.credentials.write_uses([bot.bot])
    request = bot_service_pb2.GetBotRequest(name=bot.bot).SerializeToString()
    for wire, is_shown in ((doors.admin, True), (bot, False), (doors.wire(), False)):
        answer = await wire.raw("/seatwise.v1.BotService/GetBot", request)
        shown = bot_service_pb2.GetBotResponse.FromString(answer).bot
        assert shown.HasField("token_last_use_time") is is_shown


async def test_an_operator_creates_lists_rotates_and_revokes_tokens_in_the_terminal(doors: House) -> None:
    create_it = ("token", "create", "Joan of operations", "--scope", "read", "--scope", "register")
    [made] = await told(doors, *create_it, "--expires", "90d")
    [listed] = [it for it in await told(doors, "token", "list") if it["name"] == made["name"]]
    assert listed == {key: value for key, value in made.items() if key != "token"}
    assert listed["scopes"] == ["SCOPE_READ", "SCOPE_REGISTER"]
    code, said, _ = await ctl(doors, "token", "rotate", made["name"])
    new = said.splitlines()[1]
    assert (code, new != made["token"]) == (0, True)
    assert (await ctl(doors, "referees", token=made["token"]))[0] == 1
    assert (await ctl(doors, "referees", token=new))[0] == 0
    code, _, complained = await ctl(doors, "token", "list", token=new)
    assert (code, "SCOPE_MISSING" in complained) == (1, True)
    code, said, _ = await ctl(doors, "token", "revoke", made["name"])
    assert (code, said) == (0, f"{made['name']} of Joan of operations is revoked\n")
    assert (await ctl(doors, "referees", token=new))[0] == 1
    assert "revoked" in (await ctl(doors, "token", "list"))[1]
    assert (await ctl(doors, "token", "create", "Joan", "--scope", "read", "--expires", "soon"))[0] == 2
