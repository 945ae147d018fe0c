"""`seatwise bot`, and how it comes by its token."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from doubles.fake_server import FakeServer, Refused, serving

from seatwise.cli import main, tokens
from seatwise.cli.tokens import slug_of
from seatwise.link.endpoint import is_local_address
from seatwise.v1 import bot_pb2, bot_service_pb2

BOT = "class MyBot(seatwise.Bot):\n    def choose(self, view):\n        return view.legal_cards[0]\n"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with serving() as fake:
        bot = bot_pb2.Bot(name="bots/my-bot/versions/1")
        fake.unary.answers["RegisterBot"] = [bot_service_pb2.RegisterBotResponse(bot=bot, token="own")]
        fake.unary.answers["GetBot"] = [bot_service_pb2.GetBotResponse(bot=bot)]
        yield fake


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder as `seatwise serve` leaves it, and a bot's file."""
    monkeypatch.setenv("SEATWISE_DATA", str(tmp_path))
    monkeypatch.delenv("SEATWISE_TOKEN", raising=False)
    (tmp_path / "admin.token").write_text("admin\n")
    (tmp_path / "mybot.py").write_text(f"import seatwise\n{BOT}")
    log = logging.getLogger("seatwise")
    before = log.handlers[:], log.level
    yield tmp_path
    log.handlers[:], log.level = before


async def start(server: FakeServer, data: Path, *others: str) -> asyncio.Task[int]:
    """The command, beside the test."""
    arguments = ["bot", f"{data / 'mybot.py'}:MyBot", "--address", server.address, "--matches", "1", *others]
    return asyncio.create_task(asyncio.to_thread(main, arguments))


async def play_one(server: FakeServer) -> str:
    """Seats the bot for one match; with which token it came."""
    lobby = await server.lobby()
    await lobby.offer("a")
    referee = await server.referee()
    await referee.sat()
    await referee.ask(match="a")
    await referee.accept(await referee.moved(), match="a")
    await referee.finish(match="a")
    return str(lobby.metadata["authorization"])


async def test_on_the_servers_machine_it_registers_itself_and_keeps_the_token(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        command = await start(server, data)
        assert await play_one(server) == "Bearer own"
        assert await command == 0
    assert [method for method, _, _ in server.unary.heard] == ["RegisterBot", "GetBot"]
    assert server.unary.heard[0][2]["authorization"] == "Bearer admin"
    file = data / "bots/my-bot.1.token"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("own\n", 0o600)
    told = capsys.readouterr().err
    assert "seated in matches/a seat 0 against bots/other/versions/1" in told
    assert "matches/a seat 0: rank 1 with 7 points of 7 3" in told


async def test_it_registers_anew_at_a_server_that_has_forgotten_it(server: FakeServer, data: Path) -> None:
    (data / "bots").mkdir()
    (data / "bots/other-name.2.token").write_text("old")
    server.unary.answers["GetBot"] = [Refused("UNAUTHENTICATED", "TOKEN_UNKNOWN")]
    command = await start(server, data, "--name", "other-name", "--version", "2")
    assert await play_one(server) == "Bearer own"
    assert await command == 0
    assert (data / "bots/other-name.2.token").read_text() == "own\n"


async def test_json_is_one_line_for_each_result_and_one_for_the_summary(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = await start(server, data, "--json", "--quiet", "--token", "given", "--no-queue")
    assert await play_one(server) == "Bearer given"
    assert await command == 0
    told = capsys.readouterr()
    result, summary = map(json.loads, told.out.splitlines())
    assert (result["match"], result["points"], result["ranks"]) == ("matches/a", [7, 3], [1, 2])
    assert summary["summary"]["matches"] == 1
    assert told.err == ""


async def run(server: FakeServer, data: Path, *others: str) -> int:
    return await (await start(server, data, *others))


async def test_a_name_that_is_taken_is_not_taken_over(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.unary.answers["RegisterBot"] = [Refused("ALREADY_EXISTS", "ALREADY_EXISTS")]
    assert await run(server, data) == 2
    assert "--name or --version" in capsys.readouterr().err


async def test_a_revoked_token_stays_revoked(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "bots").mkdir()
    (data / "bots/my-bot.1.token").write_text("old")
    server.unary.answers["GetBot"] = [Refused("UNAUTHENTICATED", "TOKEN_REVOKED")]
    assert await run(server, data) == 1
    assert "TOKEN_REVOKED" in capsys.readouterr().err


async def test_without_the_servers_token_it_says_what_to_do(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "STARTUP_PATIENCE_S", 0.2)
    (data / "admin.token").unlink()
    assert await run(server, data) == 2
    assert "is `seatwise serve` running" in capsys.readouterr().err
    assert not server.unary.heard


async def test_no_token_is_asked_for_that_cannot_be_kept(
    server: FakeServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is shown once, and the name would be taken."""
    (data / "bots").touch()
    assert await run(server, data) == 2
    assert f"the bot's token cannot be stored in {data / 'bots'}: File exists" in capsys.readouterr().err
    assert not server.unary.heard


async def test_a_server_that_was_started_just_before_is_waited_for(
    server: FakeServer, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when `seatwise serve &` and `seatwise bot` are pasted together, for the first time."""
    (data / "admin.token").rename(data / "later")
    looked = []

    def look() -> str | None:
        if looked:
            (data / "later").rename(data / "admin.token")
        looked.append(1)
        return admin_token()

    admin_token = tokens.admin_token
    monkeypatch.setattr(tokens, "admin_token", look)
    command = await start(server, data)
    assert await play_one(server) == "Bearer own"
    assert await command == 0
    assert len(looked) == 2


async def test_when_the_results_cannot_be_written_the_bot_finishes_its_matches_and_leaves(
    server: FakeServer, data: Path
) -> None:
    """A disk is full, or `| head -1` has gone. A bot that prints loses no move by it."""
    (data / "mybot.py").write_text(f"import seatwise\n{BOT.replace('return', 'print(1); return')}")
    line = (
        f"bot {data / 'mybot.py'}:MyBot --address {server.address} --token given --json --quiet > /dev/full"
    )
    command = await asyncio.create_subprocess_shell(
        f"{sys.executable} -m seatwise {line}", stderr=asyncio.subprocess.PIPE
    )
    await play_one(server)
    _, told = await asyncio.wait_for(command.communicate(), 30)
    assert command.returncode == 1
    assert told.decode().splitlines() == [
        "1",
        "the results cannot be written any more (No space left on device)",
        "seatwise bot: standard output: No space left on device",
    ]


def test_another_machine_is_never_shown_the_token_of_this_one(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bot", f"{data / 'mybot.py'}:MyBot", "--address", "bots.example:7433"]) == 2
    assert "The operator of bots.example:7433 issues tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:7433", True),
        ("127.0.0.2:1", True),
        ("[::1]:7433", True),
        ("http://localhost:1", True),
        ("unix:/run/seatwise", True),
        ("localhost.example:7433", False),
        ("127.example:7433", False),
        ("10.0.0.1:7433", False),
        ("https://bots.example:443", False),
    ],
)
def test_which_machine_is_this_one(address: str, expected: bool) -> None:
    assert is_local_address(address) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("MyBot", "my-bot"), ("greedy", "greedy"), ("UGOBot2", "ugobot2"), ("_", "bot")]
)
def test_a_name_is_made_of_a_class(text: str, expected: str) -> None:
    assert slug_of(text) == expected


def test_wrong_usage_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bot", "nosuch"]) == 2
    assert main(["bot", "greedy", "--token", "t", "--max-matches", "0"]) == 2
    assert "max_matches: must be 1 or more" in capsys.readouterr().err


async def test_it_tells_in_a_file_what_it_took_for_each_answer(server: FakeServer, data: Path) -> None:
    """One line for each, beside what the file held; and none any more when it has ended."""
    file = data / "own.times"
    file.write_text("before\n")
    for _ in range(2):
        command = await start(server, data, "--times", str(file))
        await play_one(server)
        assert await command == 0
    before, *lines = file.read_text().splitlines()
    assert before == "before"
    assert len(lines) == 2
    told = json.loads(lines[0])
    assert {name: told[name] for name in ("match", "seat", "prompt")} == {
        "match": "matches/a",
        "seat": 0,
        "prompt": 1,
    }
    assert 0 < told["thought_ms"] < 60_000


def test_a_file_for_times_that_cannot_be_written_is_named(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["bot", f"{data / 'mybot.py'}:MyBot", "--token", "t", "--times", str(data / "no/own.times")])
        == 2
    )
    assert "no/own.times: No such file or directory" in capsys.readouterr().err
