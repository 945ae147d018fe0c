"""Commands of `seatwise` at a server whose answers make no sense: they end with a sentence, and move no cursor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.fake_server import FakeServer, serving
from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.cli import main
from seatwise.v1 import (
    access_service_pb2,
    admin_service_pb2,
    bot_pb2,
    bot_service_pb2,
    match_pb2,
    match_service_pb2,
)

pytestmark = pytest.mark.asyncio(loop_scope="function")

BOT = bot_pb2.Bot(name="bots/me/versions/1")
NO_TIME = Timestamp(seconds=2**62)
ESCAPE = "\x1b[2J"
ANSWERS: dict[str, tuple[list[str], str, Any]] = {
    "a time that is none": (
        ["bots", "list"],
        "ListBots",
        bot_service_pb2.ListBotsResponse(bots=[bot_pb2.Bot(name=BOT.name, create_time=NO_TIME)]),
    ),
    "a time that is none, as JSON": (
        ["bots", "show", BOT.name, "--json"],
        "GetBot",
        bot_service_pb2.GetBotResponse(bot=bot_pb2.Bot(name=BOT.name, create_time=NO_TIME)),
    ),
    "a state that is none": (
        ["match", "abort", "matches/m"],
        "AbortMatch",
        match_service_pb2.AbortMatchResponse(match=match_pb2.Match(name="matches/m", state=99)),  # type: ignore[arg-type]
    ),
    "an entry that is no JSON": (
        ["ctl", "audit"],
        "ListAuditEntries",
        access_service_pb2.ListAuditEntriesResponse(entries=[access_service_pb2.AuditEntry(line="[")]),
    ),
}


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeServer]:
    monkeypatch.setenv("SEATWISE_DATA", str(tmp_path))
    monkeypatch.setenv("SEATWISE_TOKEN", "secret")
    async with serving() as fake:
        yield fake


async def run(server: FakeServer, *arguments: str) -> int:
    """The command's exit code."""
    async with asyncio.timeout(20):
        return await asyncio.to_thread(main, [*arguments, "--address", server.address])


@pytest.mark.parametrize(("arguments", "method", "answer"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_that_cannot_be_shown_ends_the_command_with_a_sentence(
    server: FakeServer, capsys: pytest.CaptureFixture[str], arguments: list[str], method: str, answer: Any
) -> None:
    server.unary.answers[method] = [answer]
    assert await run(server, *arguments) == 1
    said = capsys.readouterr()
    assert (
        f"seatwise {arguments[0]}: the server has sent what this version of seatwise cannot show ("
        in said.err
    )
    assert "Traceback" not in said.err + said.out


async def test_bytes_that_are_no_message_end_a_command_with_a_sentence(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.unary.answers["ListBots"] = [SimpleNamespace(SerializeToString=lambda: b"\xff")]
    assert await run(server, "bots", "list") == 1
    assert capsys.readouterr().err == "seatwise bots: the server has sent bytes that are no message\n"


async def test_a_name_from_a_server_moves_no_cursor(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    match = match_pb2.Match(name=f"matches/{ESCAPE}", bots=[ESCAPE], game=ESCAPE)
    server.unary.answers["ListMatches"] = [match_service_pb2.ListMatchesResponse(matches=[match])]
    server.unary.answers["GetMatch"] = [match_service_pb2.GetMatchResponse(match=match)]
    server.unary.answers["ListLeases"] = [
        admin_service_pb2.ListLeasesResponse(leases=[admin_service_pb2.Lease(what=ESCAPE)])
    ]
    server.unary.answers["GetBot"] = [bot_service_pb2.GetBotResponse(bot=bot_pb2.Bot(name=ESCAPE))]
    tables = ["match", "list"], ["match", "show", "matches/m"], ["ctl", "leases"]
    for arguments in (*tables, ["bots", "show", BOT.name]):
        assert await run(server, *arguments) == 0
        said = capsys.readouterr().out
        assert "?[2J" in said
        assert ESCAPE not in said


@pytest.mark.parametrize(
    ("arguments", "method", "answer"),
    [
        (["bots", "list"], "ListBots", bot_service_pb2.ListBotsResponse(bots=[BOT], next_page_token="1")),
        (["match", "list"], "ListMatches", match_service_pb2.ListMatchesResponse(next_page_token="1")),
        (
            ["ctl", "matches"],
            "ListLiveMatches",
            admin_service_pb2.ListLiveMatchesResponse(next_page_token="1"),
        ),
        (["ctl", "check"], "CheckMatches", admin_service_pb2.CheckMatchesResponse(next_page_token="1")),
        (
            ["ctl", "audit"],
            "ListAuditEntries",
            access_service_pb2.ListAuditEntriesResponse(next_page_token="1"),
        ),
    ],
    ids=["bots", "matches", "live matches", "faults", "audit"],
)
async def test_a_list_that_names_the_same_page_again_has_an_end(
    server: FakeServer, capsys: pytest.CaptureFixture[str], arguments: list[str], method: str, answer: Any
) -> None:
    server.unary.answers[method] = [answer]
    assert await run(server, *arguments) == 1
    assert (
        "the server names the same page of a list as the next one; tell its operator"
        in capsys.readouterr().err
    )
    assert len(server.unary.heard) <= 3
