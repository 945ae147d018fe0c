"""`seatwise stress`: whom it may harm, within which bounds, and what it counts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from seatwise.bot_errors import UsageError
from seatwise.cli import main
from seatwise.link.security import Security
from seatwise.stress import hostile
from seatwise.stress.honest import Felt, count_harm
from seatwise.stress.hostile import HOSTILE_KINDS, HostileBot
from seatwise.stress.stress import StressPlan, StressReport, describe_phase

CALM = {phase: Felt(steps_ms=[1.0], matches=1) for phase in ("before", "during", "after")}


@pytest.mark.parametrize(
    "address",
    ["example.org:7433", "https://10.0.0.1:7433", "192.168.0.7:7433", "localhost.example.org:7433", "[::]:7433",
     "https://localhost@example.org:7433", "127.0.0.1.example.org:7433", "0.0.0.0:7433"],
)  # fmt: skip
def test_no_other_machine_is_stressed_whatever_token_is_given(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stress", address, "--token", "seatwise_admin"]) == 2
    said = capsys.readouterr().err
    assert "is not this machine" in said
    assert f"`seatwise ctl stress-permit --address {address}`" in said
    assert StressPlan(address, "token", permit="p").permit == "p"


@pytest.mark.parametrize("address", ["ws://localhost:7481", "rest+http://localhost:7480"])
def test_an_address_of_another_door_is_refused_with_what_to_give(address: str) -> None:
    with pytest.raises(UsageError, match="give the address for gRPC"):
        StressPlan(address, "token")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"seconds": 61.0}, "at most 60"),
        ({"pairs": 9}, "from 1 to 8"),
        ({"kinds": ("polite",)}, "there is no hostile bot polite; there are never-reads"),
        ({"token": ""}, "admin token"),
    ],
)
def test_time_and_count_are_bounded(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        StressPlan(**{"address": "localhost:7433", "token": "token", **wrong})


def test_every_hostile_bot_of_the_help_text_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stress", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(kind in shown for kind in HOSTILE_KINDS)


async def test_a_hostile_bot_ends_when_its_count_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "MOST_ACTS", 30)
    bot = HostileBot("localhost:7433", "token", Security())

    async def refuse(refused: HostileBot, _: str) -> None:
        refused.acts += 1

    monkeypatch.setattr(hostile, "_hold_stream", refuse)
    async with asyncio.timeout(30):
        await hostile.open_many_streams(bot)
    assert bot.acts == hostile.MANY_STREAMS


def test_harm_is_counted_from_the_record() -> None:
    moves = [{"seat": 0, "move": {}}, {"seat": 1, "move": {}}]
    entries = [
        {"kind": "default", "reason": "TIMED_OUT", "moves": moves},
        {"kind": "default", "reason": "RESIGNED", "moves": moves},
        {"kind": "forfeited", "seat": 0, "ending": "TIMED_OUT"},
        {"kind": "voided", "reason": "ABANDONED"},
        {"kind": "move", "seat": 0},
    ]
    assert count_harm(json.dumps({"entries": entries})) == {"timeouts": 2, "forfeits": 1, "voids": 1}


def test_a_report_has_the_times_of_each_phase() -> None:
    felt = Felt(steps_ms=[float(each) for each in range(200, 0, -1)], matches=3, harm=Counter(timeouts=2))
    assert describe_phase(felt) == {
        "matches": 3, "steps": 200, "p50_ms": 101.0, "p99_ms": 199.0, "max_ms": 200.0,
        "timeouts": 2, "forfeits": 0, "voids": 0, "errors": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "failure", "has_harm"),
    [
        ({}, "", False),
        ({"during": Felt(steps_ms=[1.0], harm=Counter(timeouts=1))}, "", True),
        ({"after": Felt()}, "", True),
        ({}, "OSError: no", True),
    ],
    ids=["calm", "a timeout", "no play after", "a hostile bot that failed"],
)
def test_a_report_says_whether_anybody_was_harmed(
    changed: dict[str, Felt], failure: str, has_harm: bool
) -> None:
    acted = [{"kind": "silent", "acts": 1, "ends": {}, "failure": failure}]
    report = StressReport(1.0, {**CALM, **changed}, acted)
    assert (report.has_harm, report.to_json()["harm"]) == (has_harm, has_harm)
