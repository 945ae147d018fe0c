"""Moves that are read without JSON are the moves that JSON would give, and nothing else in a line passes for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matches.forging import Body, genuine, record_of, the
from matches.scenes import SCENES

from seatwise_referee.journal import Moved, canonical_json, encode_entry, entry_from_json, public_part
from seatwise_referee.verify import verify_line
from seatwise_referee.verify.reading import PLACE, PLACE_TEXT, read_line, take_moves_out

MOVE: Body = {
    "allowance_ms": 0, "asked_ms": 5, "at_ms": 7, "charged_ms": 2, "kind": "move",
    "move": {"play": "R3"}, "prompt": 1, "seat": 0, "seq": 1,
}  # fmt: skip
WRITTEN = canonical_json(MOVE)


@pytest.mark.parametrize("scene", SCENES)
def test_a_record_is_read_as_json_reads_it(scene: str) -> None:
    record, written = read_line(genuine(scene))
    plain = record_of(scene)
    assert written == list(map(canonical_json, plain["entries"]))
    found = [each if isinstance(each, Moved) else entry_from_json(each) for each in record.pop("entries")]
    assert found == list(map(entry_from_json, plain.pop("entries")))
    assert record == plain


def test_the_moves_of_a_real_match_are_all_plain() -> None:
    plain = record_of("smooth")
    _, texts, _ = take_moves_out(genuine("smooth"))
    assert len(texts) == sum(entry["kind"] == "move" for entry in plain["entries"]) > 0


@given(
    numbers=st.lists(st.integers(-1, 10**16), min_size=7, max_size=7),
    move=st.one_of(
        st.dictionaries(st.text('aZ"\\', max_size=3), st.text('aZ9"\\\u00e9', max_size=22), max_size=2),
        st.builds(lambda cards: {"arrange": cards}, st.lists(st.text("R3", max_size=3), max_size=12)),
        st.integers(),
    ),
)
def test_a_move_that_is_taken_out_is_canonical_and_in_its_ranges(numbers: list[int], move: Any) -> None:
    names = ("allowance_ms", "asked_ms", "at_ms", "charged_ms", "prompt", "seat", "seq")
    line = canonical_json({**MOVE, **dict(zip(names, numbers, strict=True)), "move": move})
    _, texts, moves = take_moves_out(line)
    if texts:
        assert texts == [line] == [public_part(encode_entry(moves[0]))]
        assert min(numbers) >= 0
        assert min(moves[0].prompt, moves[0].seq) >= 1


@pytest.mark.parametrize(
    "inside",
    [
        b'{"entries":[%b,{"x":%b}]}',
        b'{"entries":[%b,[%b]]}',
        b'{"deals":[%b],"entries":[%b]}',
        b'{"entries":[{"x":[%b]},0,%b]}',
    ],
)
def test_a_move_inside_of_something_else_is_no_entry(inside: bytes) -> None:
    line = inside % (WRITTEN, WRITTEN)
    record, written = read_line(line)
    assert canonical_json(record) == line
    assert written == list(map(canonical_json, json.loads(line)["entries"]))


@pytest.mark.parametrize(
    "line",
    [
        b'{"entries":[{%b:1}]}',  # as a key
        b'{"entries":["\\%b]}',  # behind a backslash in a text
        b'{"entries":["x%b"]}',
        b'{"entries":[1%b]}',
        b'{"entries":[%b,]}',
        b'{"entries":[,%b]}',
        b'{"entries":[%b%b]}',
        b'{"b":[],"entries":[%b],"a":[]}',
    ],
)
def test_a_line_that_is_wrong_around_a_move_is_refused(line: bytes) -> None:
    fault = verify_line(line.replace(b"%b", WRITTEN)).fault
    assert "JSON" in str(fault)


def test_the_text_that_takes_the_place_of_a_move_is_a_text_like_any_other() -> None:
    line = b'{"entries":[%b,[%b]]}' % (PLACE, WRITTEN)  # as many places as moves, and no move is an entry
    record, written = read_line(line)
    assert record["entries"] == [PLACE_TEXT, [MOVE]]
    assert written == [PLACE, b"[%b]" % WRITTEN]


def test_a_move_of_a_seat_that_the_table_does_not_have_is_refused() -> None:
    body = record_of("smooth")
    the(body, "move")["seat"] = 9
    assert "there is no seat 9" in str(verify_line(canonical_json(body)).fault)
