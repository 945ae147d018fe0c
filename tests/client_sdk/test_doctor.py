"""`seatwise doctor`: a good client passes, and each planted fault is found by exactly its check."""

from __future__ import annotations

import asyncio
import json
import os
import random
import selectors
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from doubles.raw_bot import raw_bot

from seatwise.cli import main
from seatwise.doctor.checks import CHECKS, NEW_REASON, UNKNOWN_FIELD
from seatwise.doctor.doctor import CheckOutcome, DoctorReport, DoctorSettings, examine_bot, junit_of
from seatwise.doctor.examination import CheckFailed, Examination, ScriptedMatch
from seatwise.doctor.examined_bot import process_starter, processes_of
from seatwise.doctor.scripted_server import ScriptedReferee, Transcript
from seatwise.doctor.scripted_socket import (
    JSON_SUBPROTOCOL,
    LATER_FIELD,
    LATER_VALUE,
    ScriptedSocket,
    later_json_of,
)
from seatwise.doctor.stream_link import Door, NothingCame
from seatwise.errors import UsageError
from seatwise.kits.codecs import CODECS
from seatwise.v1 import play_service_pb2

PATIENCE_S = 15.0
"""A fault that is a silence takes as long as this to be found."""

FAULTS = {
    "has_no_token": "attends",
    "has_one_nonce": "sits_down",
    "plays_any_card": "plays_legal_moves",
    "answers_no_pings": "answers_pings",
    "reads_one_question": "plays_many_matches",
    "answers_twice": "answers_once",
    "never_comes_back": "comes_back",
    "forgets_receipts": "shows_receipt",
    "moves_again": "repeats_move",
    "ignores_epochs": "follows_epoch",
    "answers_the_old_referee": "ignores_old_referee",
    "follows_stale_offers": "ignores_stale_offer",
    "never_gives_up": "survives_illegal",
    "ends_at_rejections": "survives_rejections",
    "ends_when_closed": "survives_closed",
    "drains": "drains",
    "stops_at_the_first_loss": "returns_to_lobby",
    "hammers": "backs_off",
    "ignores_retry_after": "waits_retry_after",
    "ignores_final": "stops_for_good",
    "breaks_at_unknown_fields": "passes_over_unknown_fields",
    "breaks_at_unknown_events": "passes_over_unknown_fields",
    "breaks_at_unknown_enums": "passes_over_unknown_enums",
    "takes_small_messages": "takes_large_message",
    "breaks_at_a_wrong_seed": "survives_wrong_seed",
}
"""The faults of `doubles.raw_bot`, each with the check that must find it."""

SOON_FOUND = {"has_no_token", "has_one_nonce", "plays_any_card", "hammers", "breaks_at_unknown_events"}
"""Faults that `make test` looks for, too. Each of the others takes longer, and a silence as long as the patience."""


def settings(**others: Any) -> DoctorSettings:
    return DoctorSettings(**{"patience_s": PATIENCE_S, "positions": 40, "jobs": 30, **others})


SOON_FOUND_BY_WEBSOCKET = {"has_one_nonce"}
"""The same for bots over WebSocket: what finds the faults does not depend on the door."""


async def examine(fault: str = "", **others: Any) -> DoctorReport:
    return await examine_bot(partial(raw_bot, fault=fault), settings(**others), print)


def found_by(report: DoctorReport, outcome: CheckOutcome = CheckOutcome.FAILED) -> list[str]:
    return [each.of.name for each in report.results if each.outcome is outcome]


@pytest.mark.parametrize("door", Door)
async def test_a_good_client_passes_every_check(door: Door) -> None:
    report = await examine(patience_s=60.0, door=door)
    assert {
        each.of.name: each.why for each in report.results if each.outcome is not CheckOutcome.PASSED
    } == {}
    assert len(report.results) == len(CHECKS) - 1
    assert not any(each.measured.notes for each in report.results)
    assert report.answer_ms["p50"] <= report.answer_ms["p99"] <= report.answer_ms["max"]


@pytest.mark.parametrize(
    "fault", [name if name in SOON_FOUND else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS]
)
async def test_each_planted_fault_is_found_by_exactly_its_check(fault: str) -> None:
    assert found_by(await examine(fault)) == [FAULTS[fault]]


@pytest.mark.parametrize(
    "fault",
    [
        name if name in SOON_FOUND_BY_WEBSOCKET else pytest.param(name, marks=pytest.mark.slow)
        for name in FAULTS
    ],
)
async def test_each_planted_fault_is_found_over_websocket(fault: str) -> None:
    assert found_by(await examine(fault, door=Door.WEBSOCKET)) == [FAULTS[fault]]


def test_every_check_has_a_planted_fault() -> None:
    without = {"plays_over_slow_link"}  # a client that fails there fails at any busy moment
    assert {check.name for check in CHECKS if not check.is_note} - without == set(FAULTS.values())


async def test_a_check_is_left_out_if_one_that_it_needs_has_failed() -> None:
    report = await examine("never_comes_back", only=("comes_back", "repeats_move"), patience_s=2.0)
    assert found_by(report) == ["comes_back"]
    assert found_by(report, CheckOutcome.SKIPPED) == ["repeats_move"]
    assert report.results[1].why == "it needs comes_back"


async def test_a_bot_that_does_nothing_fails_and_the_transcript_shows_how_far_it_came() -> None:
    report = await examine("ends_when_closed", only=("survives_closed",), patience_s=2.0)
    [result] = report.results
    assert any("AttendResponse {closed {" in line for line in result.transcript)
    assert any("< PlayRequest {items {" in line for line in result.transcript)
    assert result.transcript[-1].endswith(result.why)
    assert result.see == "docs/protocol.md#wait-for-matches-lobbyserviceattend"


def test_each_check_quotes_a_line_of_its_section_of_the_protocol() -> None:
    text = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    sections: dict[str, str] = {}
    for part in text.split("\n#")[1:]:
        heading = part.partition("\n")[0].lstrip("# ").lower().replace("`", "")
        anchor = "".join(letter for letter in heading if letter.isalnum() or letter in " -").replace(" ", "-")
        sections[anchor] = part
    for check in CHECKS:
        assert check.line in sections[check.section], check.name


async def test_junit_has_a_case_for_each_check() -> None:
    report = await examine("has_one_nonce", only=("attends", "sits_down", "answers_once"))
    suite = fromstring(junit_of(report))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = suite.find("testcase[@name='sits_down']/failure")
    assert failure is not None
    assert "the same nonce in two matches" in str(failure.get("message"))
    assert "Draw 32 new random bytes" in str(failure.text)


async def test_a_bot_that_sits_down_again_in_a_match_that_is_just_over_does_nothing_wrong() -> None:
    """After NOT_SEATED a client may do so, and on a busy machine the item comes late."""
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    streams = SimpleNamespace(lobbies=asyncio.Queue(), referees=asyncio.Queue())
    streams.referees.put_nowait(SimpleNamespace(is_gone=asyncio.Event(), read=lambda _: inbox.get()))
    exam = Examination(streams, raw_bot, Transcript(), 5.0)  # type: ignore[arg-type]
    first, second, never = exam.new_match(), exam.new_match(), exam.new_match()
    for match in (first, first, second, never):
        sit = play_service_pb2.Sit(nonce=bytes(32))
        inbox.put_nowait(play_service_pb2.PlayRequestItem(match=match.name, seat=match.seat, sit=sit))
    assert (await exam.wait_for_sit(first)).match == first.name
    assert (await exam.wait_for_sit(second)).match == second.name
    with pytest.raises(CheckFailed, match=f"it sat down at {never.name}"):
        await exam.wait_for_sit(second)


async def test_a_bot_may_close_a_stream_on_which_it_has_no_seat_and_open_another() -> None:
    streams = SimpleNamespace(lobbies=asyncio.Queue(), referees=asyncio.Queue())
    exam = Examination(streams, raw_bot, Transcript(), 60.0)  # type: ignore[arg-type]
    match = exam.new_match()
    sit = play_service_pb2.PlayRequestItem(match=match.name, sit=play_service_pb2.Sit(nonce=bytes(32)))
    inboxes: list[asyncio.Queue[Any]] = [asyncio.Queue(), asyncio.Queue()]
    old, new = (SimpleNamespace(is_gone=asyncio.Event(), read=lambda _, it=it: it.get()) for it in inboxes)
    streams.referees.put_nowait(old)
    waiting = asyncio.create_task(exam.wait_for_sit(match))
    await asyncio.sleep(0)
    assert streams.referees.empty()
    old.is_gone.set()
    streams.referees.put_nowait(new)
    inboxes[1].put_nowait(sit)
    assert await waiting == sit


@pytest.mark.parametrize(("kind", "due"), [("sit", "submit_move"), ("pong", "sit")])
async def test_a_bot_that_sends_other_items_again_and_again_does_not_prolong_the_patience(
    kind: str, due: str
) -> None:
    streams = SimpleNamespace(lobbies=asyncio.Queue(), referees=asyncio.Queue())
    exam = Examination(streams, raw_bot, Transcript(), 1.0)  # type: ignore[arg-type]
    item = play_service_pb2.PlayRequestItem(sit=play_service_pb2.Sit(nonce=bytes(32)))
    if kind == "pong":
        item = play_service_pb2.PlayRequestItem(pong=play_service_pb2.Pong(number=1))

    async def read(patience_s: float) -> play_service_pb2.PlayRequestItem:
        await asyncio.sleep(0.1)
        if patience_s <= 0:
            raise NothingCame
        return item

    streams.referees.put_nowait(SimpleNamespace(is_gone=asyncio.Event(), read=read))
    with pytest.raises(NothingCame, match=f"no {due} came for 1 s"):
        await exam.wait_for_item(due)


async def test_a_bot_that_sends_without_end_is_not_read_without_end() -> None:
    link = ScriptedSocket("Bearer doctor", JSON_SUBPROTOCOL, lambda _: asyncio.sleep(0))
    referee = ScriptedReferee(link, Transcript())
    referee.inbox.put_nowait(play_service_pb2.PlayRequestItem())
    with pytest.raises(NothingCame):
        await referee.read(0.0)


def test_json_shows_what_is_unknown_as_a_later_version_would_write_it() -> None:
    rejected = play_service_pb2.MoveRejected(reason=NEW_REASON)  # type: ignore[arg-type]
    item = play_service_pb2.PlayResponseItem(move_rejected=rejected)
    item.MergeFromString(UNKNOWN_FIELD)
    shown = later_json_of(play_service_pb2.PlayResponse(items=[item]))
    assert shown == {
        "items": [
            {
                "match": "", "seat": 0, "epoch": "0", LATER_FIELD: "hello",
                "moveRejected": {"requestId": "", "reason": LATER_VALUE, "message": ""},
            }
        ]
    }  # fmt: skip


async def test_json_that_is_no_message_is_told_in_place_of_a_silence() -> None:
    link = ScriptedSocket("Bearer doctor", JSON_SUBPROTOCOL, lambda _: asyncio.sleep(0))
    link._messages.put_nowait(b'{"itms": []}')
    referee = ScriptedReferee(link, Transcript())
    await referee._read_all()
    with pytest.raises(NothingCame, match=r'its message is no PlayRequest: .*"itms"'):
        await referee.read(1.0)


async def test_a_check_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="--only flies: there is no such check; there are answers_alike"):
        await examine(only=("flies",))


# The command

BOT = """
import sys, seatwise
class First(seatwise.Bot):
    def choose(self, view):
        return view.legal_cards[0]
seatwise.run(First, address=sys.argv[1])
"""


def test_a_bot_of_the_sdk_passes_as_a_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    only = ("attends", "plays_legal_moves", "drains", "stops_for_good", "survives_wrong_seed")
    named = [part for name in only for part in ("--only", name)]
    command = ["--", sys.executable, str(tmp_path / "bot.py"), "{address}"]
    junit = tmp_path / "doctor.xml"
    assert main(["doctor", "--json", "--positions", "60", "--junit", str(junit), *named, *command]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["outcome"] for each in told["checks"]] == ["passed"] * 5
    assert (told["ok"], told["suite"]) == (True, "seatwise-doctor/1")
    assert [note for each in told["checks"] for note in each["notes"]] == []
    assert b'failures="0"' in junit.read_bytes()


def test_a_bot_that_breaks_is_shown_with_what_it_printed(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "--",
        sys.executable,
        "-c",
        "import sys; sys.exit('no such bot at ' + sys.argv[1])",
        "{address}",
    ]
    assert main(["doctor", "--only", "attends", "--patience", "2", *command]) == 1
    told = capsys.readouterr().out
    assert "FAILED attends: its process ended with exit code 1 before it opened an Attend stream" in told
    assert 'it printed "no such bot at 127.0.0.1:' in told
    assert "1 to mend: 1 checks" in told


QUITTER = "import sys; print('reading', file=sys.stderr); sys.exit('no model at ./model.bin')"


@pytest.mark.parametrize("check", [each.name for each in CHECKS])
async def test_a_bot_that_ends_at_once_is_told_so_at_once_in_each_check(check: str) -> None:
    """The patience is longer than a test may last."""
    start = process_starter([sys.executable, "-I", "-S", "-c", QUITTER, "{address}"])
    report = await examine_bot(start, settings(only=(check,), patience_s=600.0), print)
    [result] = report.results
    assert result.outcome is CheckOutcome.FAILED
    assert result.why == (
        'its process ended with exit code 1 before it opened an Attend stream; it printed "no model at ./model.bin"'
    )
    assert "It must run until it is stopped" in result.of.mend
    case = fromstring(junit_of(report)).find("testcase/system-out")
    assert case is not None
    assert str(case.text).splitlines() == ["reading", "no model at ./model.bin"]


async def test_a_bot_that_ends_in_the_middle_of_a_check_is_told_what_the_check_asks_for() -> None:
    report = await examine("ends_at_rejections", only=("survives_rejections",), patience_s=600.0)
    [result] = report.results
    assert result.why == "its process ended with exit code 0 in the middle of the check; it printed nothing"
    assert "After none of them a client may end" in result.of.mend


async def test_a_bot_that_leaves_its_referee_for_a_stale_offer_is_told_so() -> None:
    report = await examine("follows_stale_offers", only=("ignores_stale_offer",), patience_s=3.0)
    assert report.results[0].why == "it went to the referee of an offer with a lower epoch"


class StarvedBot(SimpleNamespace):
    """A process that gets no core for so long. It attends after the first look at that, or never."""

    def read_starved_s(self) -> float:
        if self.attends:
            self.lobbies.put_nowait("lobby")
        return float(self.starved_s)


@pytest.mark.parametrize(
    ("attends", "starved_s", "is_found"), [(True, 60.0, True), (True, 0.0, False), (False, 60.0, False)]
)
async def test_a_bot_that_gets_no_core_may_start_later_but_not_for_ever(
    attends: bool, starved_s: float, is_found: bool
) -> None:
    """On a machine under load a start took longer than a minute: its bot was told that it opens no stream."""
    lobbies: asyncio.Queue[Any] = asyncio.Queue()
    bot: Any = StarvedBot(lobbies=lobbies, attends=attends, starved_s=starved_s)
    source: Any = SimpleNamespace(lobbies=lobbies)
    exam = Examination(source, bot, Transcript(), patience_s=0.05)
    if is_found:
        found: Any = await exam.wait_for_lobby()
        assert found == "lobby"
    else:
        with pytest.raises(NothingCame, match=r"no Attend stream was opened for 0\.05 s"):
            await exam.wait_for_lobby()


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this system does not count waits for a core"
)
async def test_the_wait_for_a_core_is_read_from_all_processes_of_a_bot() -> None:
    assert os.getpid() in processes_of(os.getpgrp())
    began_s = monotonic()
    async with process_starter([sys.executable, "-c", "while True: pass", "{address}"])("nowhere") as bot:
        starved_s = 0.0
        while not starved_s:  # each process waits for a moment before it runs for the first time
            await asyncio.sleep(0.01)
            starved_s = bot.read_starved_s()
        assert starved_s <= monotonic() - began_s


async def test_a_bot_that_is_killed_is_told_the_signal() -> None:
    kill = "import os; print('panic: no model\\nmain.go:7', flush=True); os.kill(os.getpid(), 11)"
    start = process_starter([sys.executable, "-I", "-S", "-c", kill, "{address}"])
    report = await examine_bot(start, settings(only=("attends",), patience_s=600.0), print)
    assert report.results[0].why == (
        'its process ended by SIGSEGV before it opened an Attend stream; it printed "panic: no model"'
    )


FAMILY = """
import os, subprocess, sys
link = os.open(sys.argv[2], os.O_WRONLY)
child = subprocess.Popen(["sleep", "600"], pass_fds=[link])
os.write(link, b"x")
child.wait()
"""
"""A bot that starts a process of its own. Both hold the pipe of the test open."""


def test_a_doctor_that_is_killed_leaves_nothing_of_its_bot_running(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    only = ["--only", "attends"]
    bot = [sys.executable, "-c", FAMILY, "{address}", str(tmp_path / "pipe")]
    with subprocess.Popen([sys.executable, "-m", "seatwise", "doctor", *only, "--", *bot]) as doctor:
        assert read_when_ready(held) == b"x"
        doctor.kill()
    assert read_when_ready(held) == b""
    os.close(held)


def read_when_ready(pipe: int) -> bytes:
    """Return the next bytes; none if all that could write them have ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        assert selector.select(60), "the bot neither began nor ended"
    return os.read(pipe, 1)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "give the command that starts the bot"),
        (["--", "./bot"], "the command has no {address}"),
        (["--", "/no/such/bot", "{address}"], "/no/such/bot: cannot be started"),
    ],
)
def test_mistakes_in_the_command_are_told(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *command]) == 2
    assert said in capsys.readouterr().err


def mixed_of(match: ScriptedMatch, *weights: int) -> play_service_pb2.SubmitMove:
    """The first legal cards of a question, each with one of the weights; the last is repeated where there are too few."""
    cards = list(match._game.legal_moves(match._state, match.seat))
    submitted = play_service_pb2.SubmitMove(request_id="mine")
    for place, weight in enumerate(weights):
        choice = submitted.choices.add(weight=weight)
        choice.ugo.ParseFromString(
            CODECS["ugo"].encode_move(cards[min(place, len(cards) - 1)]).SerializeToString()
        )
    return submitted


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((1, 2**31 - 1), ""),
        ((1, 0), "must be at least 1"),
        ((1, -1), "must be at least 1"),
        ((1,) * 65, "at most 64 choices"),
        ((1,) * 64, "occurs twice"),
    ],
)
def test_a_mixed_move_is_held_to_what_servers_take(weights: tuple[int, ...], words: str) -> None:
    match = ScriptedMatch(random.Random(1), "mixed", 0)
    assert match.play_to_question()
    fault = match.play_answer(mixed_of(match, *weights))
    assert words in fault
    assert bool(fault) == bool(words)


def test_a_move_beside_choices_is_refused() -> None:
    match = ScriptedMatch(random.Random(1), "mixed", 0)
    assert match.play_to_question()
    submitted = mixed_of(match, 1)
    submitted.ugo.CopyFrom(submitted.choices[0].ugo)
    assert "it must have one of them" in match.play_answer(submitted)
