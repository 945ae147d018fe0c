"""The clients of the unary services."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from doubles.fake_server import FakeServer, Refused, serving

from seatwise import errors
from seatwise.client import AsyncClient, Client
from seatwise.v1 import bot_pb2, bot_service_pb2, match_pb2, match_service_pb2

BOT = bot_pb2.Bot(name="bots/me/versions/1")
AWAY = Refused("UNAVAILABLE", "SERVER_STOPPING")


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with serving() as fake:
        yield fake


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.address, "secret") as client:
        yield client


async def test_a_bot_is_registered(server: FakeServer, client: AsyncClient) -> None:
    server.unary.answers["RegisterBot"] = [bot_service_pb2.RegisterBotResponse(bot=BOT, token="t")]
    assert await client.register_bot("me", owner="i") == ("bots/me/versions/1", "t")
    method, request, metadata = server.unary.heard[0]
    asked = bot_service_pb2.RegisterBotRequest.FromString(request)
    assert (method, asked.bot, asked.version, asked.owner) == ("RegisterBot", "me", "1", "i")
    assert metadata["authorization"] == "Bearer secret"


async def test_a_call_that_is_not_answered_is_repeated_under_the_same_request_id(
    server: FakeServer, client: AsyncClient
) -> None:
    match = match_pb2.Match(name="matches/m")
    answer = match_service_pb2.CreateMatchResponse(match=match)
    server.unary.answers["CreateMatch"] = [AWAY, AWAY, answer]
    assert await client.create_match("games/ugo", [BOT.name], {"rounds": 1}) == match
    requests = {request for _, request, _ in server.unary.heard}
    assert (len(server.unary.heard), len(requests)) == (3, 1)
    asked = match_service_pb2.CreateMatchRequest.FromString(requests.pop())
    assert (asked.game, dict(asked.options), len(asked.request_id)) == ("games/ugo", {"rounds": "1"}, 36)


async def test_a_token_that_was_lost_with_its_answer_is_replaced(
    server: FakeServer, client: AsyncClient
) -> None:
    server.unary.answers["RegisterBot"] = [AWAY, bot_service_pb2.RegisterBotResponse(bot=BOT)]
    server.unary.answers["RotateToken"] = [bot_service_pb2.RotateTokenResponse(token="new")]
    assert (await client.register_bot("me")).token == "new"


async def test_patience_ends(server: FakeServer) -> None:
    server.unary.answers["GetMatch"] = [AWAY]
    async with AsyncClient(server.address, "secret", patience_s=0.05) as client:
        with pytest.raises(errors.UnavailableError):
            await client.get_match("matches/m")


async def test_a_refusal_is_not_repeated(server: FakeServer, client: AsyncClient) -> None:
    server.unary.answers["AbortMatch"] = [Refused("PERMISSION_DENIED", "NOT_ALLOWED")]
    with pytest.raises(errors.NotAllowedError):
        await client.abort_match("matches/m")
    assert len(server.unary.heard) == 1


async def test_an_older_server_is_told_apart(client: AsyncClient) -> None:
    with pytest.raises(errors.NotSupportedError):
        await client.get_record("matches/m")


async def test_a_page_is_a_list_that_knows_the_next(server: FakeServer, client: AsyncClient) -> None:
    match = match_pb2.Match(name="matches/m")
    answer = match_service_pb2.ListMatchesResponse(matches=[match], next_page_token="more")
    server.unary.answers["ListMatches"] = [answer]
    page = await client.list_matches(page_size=1)
    assert (page, page.next_page_token) == ([match], "more")


async def test_watching_goes_on_after_a_lost_link(server: FakeServer, client: AsyncClient) -> None:
    seen = [match_service_pb2.WatchMatchResponse(at_ms=at_ms) for at_ms in (1, 2, 3)]
    server.unary.answers["WatchMatch"] = [[seen[0], AWAY], seen[1:]]
    assert [each.at_ms async for each in client.watch_match("matches/m")] == [1, 2, 3]


async def test_without_a_loop_it_is_the_same(server: FakeServer) -> None:
    seen = [match_service_pb2.WatchMatchResponse(at_ms=at_ms) for at_ms in (1, 2, 3)]
    answers = server.unary.answers
    answers["WatchMatch"] = [seen]
    answers["RegisterBot"] = [bot_service_pb2.RegisterBotResponse(bot=BOT, token="t")]
    answers["RotateToken"] = [bot_service_pb2.RotateTokenResponse(token="new")]
    answers["DeleteBot"] = [bot_service_pb2.DeleteBotResponse(aborted_matches=["matches/m"])]
    answers["RevokeToken"] = [bot_service_pb2.RevokeTokenResponse(bot=BOT)]
    answers["SetBotKind"] = [bot_service_pb2.SetBotKindResponse(bot=BOT)]
    answers["ListBots"] = [bot_service_pb2.ListBotsResponse(bots=[BOT])]
    answers["GetBot"] = [bot_service_pb2.GetBotResponse(bot=BOT)]
    match = match_pb2.Match(name="matches/m")
    answers["CreateMatch"] = [match_service_pb2.CreateMatchResponse(match=match)]
    answers["GetMatch"] = [match_service_pb2.GetMatchResponse(match=match)]
    answers["ListMatches"] = [match_service_pb2.ListMatchesResponse(matches=[match])]
    answers["GetRecord"] = [match_service_pb2.GetRecordResponse(record="{}")]
    answers["AbortMatch"] = [match_service_pb2.AbortMatchResponse(match=match)]

    def all_calls() -> None:
        with Client(server.address, "secret") as client:
            assert client.register_bot("me").token == "t"
            assert client.rotate_token(BOT.name) == "new"
            assert client.delete_bot(BOT.name) == ["matches/m"]
            assert list(client.list_bots(1).bots) == [BOT] == [client.set_bot_kind(BOT.name, "search")]
            assert client.revoke_token(BOT.name) == client.get_bot(BOT.name) == BOT
            assert client.create_match("ugo", [BOT.name]) == client.get_match("matches/m") == match
            assert client.list_matches() == [match] == [client.abort_match("matches/m")]
            assert client.get_record("matches/m") == "{}"
            for each in client.watch_match("matches/m"):
                assert each.at_ms == 1
                break

    await asyncio.to_thread(all_calls)


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: type) -> dict[str, list[inspect.Parameter]]:
        return {
            name: list(inspect.signature(it).parameters.values())
            for name, it in inspect.getmembers(client)
            if inspect.isfunction(it) and not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)


def test_a_bad_token_leaves_nothing_open() -> None:
    with pytest.raises(errors.BadTokenError):
        Client(token="geh\u00e4im")


def test_the_client_has_each_method_of_the_async_client_with_its_parameters_and_docstring() -> None:
    names = [name for name in dir(AsyncClient) if not name.startswith("_")]
    assert {"get_match", "close", "watch_match"} <= set(names)
    for name in names:
        ours, theirs = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters, name
        assert not inspect.iscoroutinefunction(ours), name
        if name not in ("close", "watch_match"):
            assert ours.__doc__ == theirs.__doc__, name


async def test_bytes_that_are_no_message_are_told(
    server: FakeServer, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """gRPC logged a traceback, and the client failed with another one."""
    server.unary.answers["GetBot"] = [SimpleNamespace(SerializeToString=lambda: b"\xff")]
    with pytest.raises(errors.ServerFailedError, match="the server has sent bytes that are no message"):
        await client.get_bot(BOT.name)
    assert not caplog.records
