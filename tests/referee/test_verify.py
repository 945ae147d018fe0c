"""Genuine records pass, one by one and as files; what only the chain holds only the chain notices."""

from __future__ import annotations

import re
from typing import Any

import pytest
from matches.forging import Forgery, chained, fault_of, genuine, record_of, set_in, swap, the
from matches.scenes import SCENES

from seatwise_referee.verify import verify_line, verify_lines

# Genuine records


@pytest.mark.parametrize("scene", SCENES)
def test_a_genuine_record_is_right_in_every_way(scene: str) -> None:
    verdict = verify_line(genuine(scene))
    assert verdict.fault is None
    assert verdict.match == "matches/test"
    assert verdict.chain == record_of(scene)["chain"]


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("rounds", [1, 4, 8])
def test_records_of_every_table_and_length_pass(seats: int, rounds: int) -> None:
    assert verify_line(SCENES["smooth"](seats, rounds).line()).fault is None


def test_a_line_may_be_text_and_may_lack_its_newline() -> None:
    line = genuine("smooth")
    assert verify_line(line.decode()) == verify_line(line) == verify_line(line.rstrip(b"\n"))


# What only the chain notices


@pytest.mark.parametrize(
    "forge",
    [
        set_in(["match"], "matches/other"),
        set_in(["seats", 0, "bot"], "bots/champion/versions/1"),
        set_in(["durability"], "none"),
        set_in(["time_control", "grace_ms"], 51),
        set_in(["chain"], "00" * 32),
        lambda body: the(body, "sat", 1).update(at_ms=3),
        lambda body: swap(["arrange"], 0, 1)(
            the(body, "move", 2)["move"]
        ),  # below the top, where nothing counts
    ],
)
def test_only_the_chain_notices_a_change_of_fields_that_only_it_covers(forge: Forgery) -> None:
    body = record_of("never_sat")
    forge(body)
    told = fault_of(body)
    assert re.search("^the chain ends with '[0-9a-f]{64}', but header and entries give '[0-9a-f]{64}'", told)
    assert fault_of(chained(body)) == "None"


# Files


def test_a_file_gets_a_verdict_for_each_line() -> None:
    lines = [genuine("smooth"), b"{}\n", SCENES["smooth"](3).line()]
    verdicts = list(verify_lines(lines))
    assert [verdict.line for verdict in verdicts] == [1, 2, 3]
    assert [verdict.fault is None for verdict in verdicts] == [True, False, False]


def test_a_match_may_stand_in_a_file_only_once() -> None:
    verdicts = list(verify_lines([genuine("smooth"), genuine("eventful"), genuine("smooth")]))
    assert [str(verdict.fault) for verdict in verdicts] == [
        "None",
        "'matches/test' is already in line 1",
        "'matches/test' is already in line 1",
    ]


def test_a_file_is_read_as_it_is_verified() -> None:
    read = []

    def lines() -> Any:
        for number in range(3):
            read.append(number)
            yield b"{}\n"

    verdicts = verify_lines(lines())
    next(verdicts)
    assert read == [0]
