"""What the server logs: one line for each call and each match, and never a secret."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import pty
import re
import secrets
import shlex
import sys
from pathlib import Path

import pytest
import structlog
from harness import IMPATIENT, PLAY, Admin, House, ServerProcess, dealt, item, plays_on, refusal_of, until
from harness.house import HTTP

from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import bot_service_pb2, play_service_pb2
from seatwise_referee.journal import Sat, decode_entry
from seatwise_server import log
from seatwise_server.store import keys

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_each_call_is_one_line_with_its_method_its_end_and_its_time(house):
    await house.admin.bots.ListBots(bot_service_pb2.ListBotsRequest())
    refused = house.admin.bots.GetBot(bot_service_pb2.GetBotRequest(name="bots/none/versions/1"))
    await refusal_of(refused)
    good, bad = await until(lambda: len(ended := house.logs.named("rpc_ended")) == 2 and ended)
    assert (good["method"], good["code"], good["reason"]) == ("/seatwise.v1.BotService/ListBots", "OK", "")
    assert (bad["method"], bad["code"], bad["reason"]) == (
        "/seatwise.v1.BotService/GetBot",
        "NOT_FOUND",
        "NOT_FOUND",
    )
    assert good["took_ms"] >= 0


@pytest.mark.not_by_http("a bot over HTTP has no stream of its own there: each of its requests is a line")
@pytest.mark.usefixtures("both_doors")
async def test_each_stream_is_one_line_when_it_ends(house):
    bot = await house.bot()
    attending, stream = await bot.attend(), bot.play()
    await stream.send(item("", 0))
    await stream.receive()
    newer = bot.play()
    assert (await stream.end()).reason == "REPLACED"
    [line] = await until(lambda: house.logs.named("rpc_ended", method=PLAY))
    assert (line["code"], line["reason"]) == ("ABORTED", "REPLACED")
    await attending.close()
    [line] = await until(lambda: house.logs.named("rpc_ended", method="/seatwise.v1.LobbyService/Attend"))
    assert line["code"] in ("CANCELLED", "OK")  # whichever the server hears of first
    await newer.hang_up()
    await newer.end()
    await until(lambda: house.logs.named("rpc_ended", method=PLAY, code="OK"))


async def test_each_match_is_one_line_at_its_end_with_all_that_matters(house):
    async with house.table(3) as table:
        await table.sit()
        await plays_on(house, table)
        match = await house.admin.match(table.name)
        [line] = await until(lambda: house.logs.named("match_finished", match=table.name))
        assert line["bots"] == list(match.bots)
        assert line["points"] == list(match.result.points)
        assert line["ranks"] == list(match.result.ranks)
        assert line["endings"] == ["COMPLETED"] * 3
        assert line["took_ms"] > 0
        assert len(house.logs.named("match_opened", match=table.name)) == 1


async def test_a_voided_match_is_one_line_with_its_reason(house):
    async with house.table(2, setup_ms=100) as table:
        await house.admin.over(table.name)
        [line] = await until(lambda: house.logs.named("match_voided", match=table.name))
        assert line["reason"] == "TOO_FEW_SAT"


async def test_every_event_is_named_in_past_tense_snake_case(house):
    async with dealt(house) as (table, asked, _):
        await asked.submit(ugo_pb2.Move(arrange=ugo_pb2.Arrange()))
        await plays_on(house, table)
    for event in house.logs.events:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", event["event"]), event


# Secrets


async def secrets_of(house: House, match: str) -> list[str]:
    """The seed and the nonces of a match that runs, as the store alone knows them."""
    meta = await house.server.store.matches.get_meta(match)
    setup = json.loads(meta.fields["setup"])
    entries = map(decode_entry, await house.server.store.journal.read_entries(match))
    return [setup["seed"], *[entry.nonce for entry in entries if isinstance(entry, Sat) and entry.nonce]]


def cards(view: ugo_pb2.View) -> list[str]:
    """A hand as text, in its order."""
    return ["RBGYK"[(card - 1) // 9] + str((card - 1) % 9) for card in view.hand]


@pytest.mark.usefixtures("both_doors")
async def test_no_line_holds_a_hand_a_seed_a_nonce_or_a_token(house):
    tokens: list[str] = [house.admin.token]
    secrets: list[str] = []
    hands: list[list[str]] = []
    names: list[str] = []
    for limits in ({}, IMPATIENT, {"max_rejections": 2}):
        async with house.table(3, rounds=2, **limits) as table:
            for number, chair in enumerate(table.chairs):
                await chair.sit(nonce=bytes([0xA0 + number]) * 32)
            asked, others = await table.asked()
            secrets += await secrets_of(house, table.name)
            for wrong in (ugo_pb2.Move(arrange=ugo_pb2.Arrange()), ugo_pb2.Move(play=ugo_pb2.CARD_R0)):
                await asked.submit(wrong)
            if not house.subprotocol.startswith(
                HTTP
            ):  # there it would end the stream: a post of it is refused
                await asked.stream.send_raw(b"\xff")
            await others[0].submit(ugo_pb2.Move(play=1), 1)
            await others[0].say(resign=play_service_pb2.Resign())
            await asyncio.gather(*[chair.play_out() for chair in table.chairs if chair is not others[0]])
            await house.admin.over(table.name)
            hands += [
                cards(found.update.ugo)
                for chair in table.chairs
                for found in chair.stream.received
                if found.HasField("update") and len(found.update.ugo.hand) > 3
            ]
            tokens += [chair.wire.token for chair in table.chairs]
            names.append(table.name)
    assert len(secrets) == 3 * (1 + 3)
    assert len(hands) > 10
    for name in names:
        assert sum(name in line for line in house.logs.lines) >= 2, f"{name} has hardly been logged"
    text = "\n".join(house.logs.lines)
    for secret in itertools.chain(secrets, tokens, [token.rpartition(".")[2] for token in tokens]):
        assert secret not in text
        assert secret.upper() not in text
    for secret in secrets:
        assert repr(bytes.fromhex(secret))[2:-1] not in text
    assert not any(re.search(r"\W+".join(hand[:3]), text) for hand in hands)
    assert not re.search(r"\b[RBGYK][0-8]\b", text)


async def test_no_token_is_kept_but_as_a_hash(house):
    bot = await house.bot()
    secret = bot.token.rpartition(".")[2]
    client = house.server.store.client
    kept = await client.call("HGETALL", keys.bot_registration(bot.bot))
    assert kept[b"token_hash"]
    for key in await client.call("KEYS", "*"):
        if await client.call("TYPE", key) == b"hash":
            fields = await client.call("HGETALL", key)
            assert all(secret.encode() not in value for value in fields.values())


class Unread(io.StringIO):
    """As what stands behind `| head`."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


async def test_a_log_that_nobody_reads_stops_nothing(monkeypatch):
    """Whoever logged would have met the fault."""
    before = structlog.get_config()
    monkeypatch.setattr("sys.stderr", Unread())
    try:
        log.configure("debug")
        structlog.get_logger().info("said_to_nobody")
    finally:
        structlog.configure(**before)


async def test_a_line_is_written_by_one_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two processes may write to one pipe: a line in two pieces could have a line of the other inside."""
    written: list[bytes] = []
    before = structlog.get_config()
    with (tmp_path / "log").open("w") as stream, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        patch.setattr(log.os, "write", lambda _, line: written.append(line) or len(line))
        try:
            log.configure("info", is_terminal=False)
            structlog.get_logger().info("said", text="x" * 10_000)
        finally:
            structlog.configure(**before)
    [line] = written
    assert line.endswith(b"}\n")
    assert json.loads(line)["text"] == "x" * 10_000


class Terminal(io.StringIO):
    """A terminal on which another process is in the foreground."""

    def isatty(self) -> bool:
        return True


async def test_a_server_in_the_background_of_a_terminal_logs_to_a_file(monkeypatch, tmp_path):
    before, terminal = structlog.get_config(), Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    is_away = [True]
    monkeypatch.setattr(log, "is_in_background", lambda _: is_away[0])
    try:
        log.configure("info", background_file=tmp_path / "data" / "server.log")
        structlog.get_logger().info("said_behind")
        is_away[0] = False
        structlog.get_logger().info("said_in_front")
    finally:
        structlog.configure(**before)
    assert "said_behind" in (tmp_path / "data" / "server.log").read_text()
    assert "\x1b" not in (tmp_path / "data" / "server.log").read_text()
    assert "said_behind" not in terminal.getvalue()
    assert "said_in_front" in terminal.getvalue()


BACKGROUND = """
import sys
from seatwise_server import log
print(log.is_in_background(sys.stderr), flush=True)
"""


FRESH_SHELL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is ignored if the tests themselves are in the background
os.execv("/bin/sh", ["sh", "-c", sys.argv[1]])
"""


@pytest.mark.parametrize("shell", ["set -m; {} & wait", "{} & wait", "{}"])
async def test_a_process_knows_whether_it_is_in_the_background_of_its_terminal(shell):
    controller, terminal = pty.openpty()
    command = shell.format(f"{shlex.quote(sys.executable)} -c {shlex.quote(BACKGROUND)}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FRESH_SHELL, f"exec <{os.ttyname(terminal)} 2>&0; {command}",
        stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            told, _ = await process.communicate()
    finally:
        os.close(controller)
        os.close(terminal)
    assert told.decode().strip() == str("&" in shell)


async def test_a_fault_shown_on_a_terminal_shows_where_it_was_and_no_variable(capsys):
    before, hidden = structlog.get_config(), secrets.token_hex()
    try:
        log.configure("debug", is_terminal=True)
        fail(hidden)
    finally:
        structlog.configure(**before)
    shown = capsys.readouterr().err
    assert "in fail" in shown
    assert hidden not in shown


def fail(secret: str) -> None:
    try:
        raise ValueError(f"of {len(secret)} letters")
    except ValueError:
        structlog.get_logger().exception("something_failed")


@pytest.mark.slow
async def test_bots_play_at_a_server_that_opentelemetry_watches(tmp_path: Path) -> None:
    """Its interceptor iterates over every stream of responses (open-telemetry/opentelemetry-python-contrib#3066)."""
    packages = ("opentelemetry-distro==0.66b2", "opentelemetry-instrumentation-grpc==0.66b2")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "otel", *packages)
    installed = await asyncio.create_subprocess_exec(*map(str, pip))
    if await installed.wait():
        pytest.skip("opentelemetry-distro cannot be installed here")

    class Watched(ServerProcess):
        def command_with(self, options: list[str]) -> list[str]:
            instrument = str(tmp_path / "otel" / "bin" / "opentelemetry-instrument")
            return [instrument, *super().command_with(options)]

    (data := tmp_path / "data").mkdir()
    process = Watched(data, "--log-level", "info")
    exporters = {f"OTEL_{kind}_EXPORTER": "none" for kind in ("TRACES", "METRICS", "LOGS")}
    process.env = {**os.environ, **exporters, "PYTHONPATH": str(tmp_path / "otel")}
    try:
        await process.start()
        house = House(process.address, Admin(process.address, process.token), "")
        bot = await house.bot()
        attending = await bot.attend()
        async with dealt(house) as (table, _, _):
            await table.play_out()
            assert (await house.admin.over(table.name)).result.points
        await attending.close()
        await house.drop_all()
        await house.admin.drop()
    finally:
        await process.stop()
    ends = [line["code"] for line in process.log if line.get("method") == PLAY]
    assert len(ends) == 2
    assert {*ends} <= {"OK", "CANCELLED"}, "whichever the server hears of first"
