"""No line crashes the verifier, and no change goes unnoticed."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matches.effort import examples
from matches.forging import Body, chained, fault_of, genuine, record_of, set_in, the
from matches.one_match import dealt
from matches.scenes import SCENES

from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import Frozen, canonical_json
from seatwise_referee.verify import MOST_BYTES, verify_line
from seatwise_referee.verify.replay import RecordReplay

# Lines that are no records


HOSTILE: dict[str, tuple[bytes | str, str]] = {
    "nothing": (b"", "is empty"),
    "a newline": (b"\n", "is empty"),
    "spaces": (b"   ", "is not JSON"),
    "half a record": (b'{"format":', "is not JSON: Expecting value at byte 10$"),
    "cut off in a text": (b'{"format":"seat', "is not JSON: Unterminated string starting at byte 10$"),
    "not utf-8": (b"\xff\xfe\x00", "byte 0 is not ASCII"),
    "letters beyond ascii": ('{"format":"\u00e9"}', "byte 11 is not ASCII"),
    "lone surrogate": ('{"format":"\ud800"}', "byte 11 is not ASCII"),
    "byte order mark": (b"\xef\xbb\xbf{}", "byte 0 is not ASCII"),
    "utf-16": ("{}".encode("utf-16-le"), "is not JSON"),
    "a list": (b"[]", r"a record is a JSON object, not \[\]"),
    "a number": (b"17", "a record is a JSON object, not 17"),
    "null": (b"null", "a record is a JSON object, not None"),
    "two records": (b"{}{}", "is not JSON: Extra data"),
    "NaN": (b'{"format":NaN}', "'NaN' is not an integer"),
    "infinity": (b'{"format":-Infinity}', "'-Infinity' is not an integer"),
    "a fraction": (b'{"format":1.5}', "'1.5' is not an integer"),
    "an exponent": (b'{"format":1e3}', "'1e3' is not an integer"),
    "minus nothing": (b'{"format":-0}', "is not canonical JSON: at byte 10 stands '-0}'"),
    "a huge number": (b'{"format":' + b"9" * 100_000 + b"}", r"is beyond \+-\(2\^53 - 1\)"),
    "a number too large": (b'{"format":9007199254740992}', "the number '9007199254740992' is beyond"),
    "deep lists": (b'{"format":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    "deep objects": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "nested too deeply"),
    "one too deep": (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", "nested too deeply, more than 32 times"),
    "just not too deep": (b'{"a":' + b"[" * 31 + b"]" * 31 + b"}", "^format is None"),
    "brackets in a text": (b'{"a":"' + b'[{\\"' * 100 + b'"}', "^format is None"),
    "brackets behind a text without an end": (b'{"a":"' + b"[" * 100, "is not JSON: Unterminated string"),
    "more values than memory should hold": (
        b'{"a":[' + b"0," * 2**20 + b"0]}",
        "^is no record: it has more than 1048576 values",
    ),
    "more keys than memory should hold": (
        b'"":' * 2**21 + b'"',
        "^is no record: it has more than 1048576 values",
    ),
    "a key twice": (b'{"format":"a","format":"b"}', "the key 'format' stands twice in one object"),
    "a key twice, below": (b'{"format":{"a":1,"a":1}}', "the key 'a' stands twice in one object"),
    "a key twice, after many": (
        b"{" + b"".join(b'"%d":0,' % key for key in range(10**5)) + b'"x":0,"x":0}',
        "the key 'x' stands twice in one object",
    ),
    "unsorted": (b'{"b":1,"a":1}', "is not canonical JSON: at byte 2 stands"),
    "spaced": (b'{"a": 1}', "is not canonical JSON: at byte 5 stands ' 1}'"),
    "escaped without need": (b'{"a":"\\u0041"}', "is not canonical JSON"),
    "upper-case escape": (b'{"a":"\\u00E9"}', "is not canonical JSON"),
    "carriage return": (b'{"a":1}\r\n', "is not canonical JSON"),
    "tab in a text": (b'{"a":"\t"}', "is not JSON: Invalid control character"),
    "an empty object": (b"{}", "^format is None"),
    "a list for a format": (b'{"format":[]}', r"^format is \[\]"),
    "a list for a game": (b'{"format":"seatwise.record/1","game":[[]]}', r"^game is \[\[\]\]"),
    "too long": (b"[" + b"0" * MOST_BYTES + b"]", "longer than 16777216 bytes"),
    "half of a letter": (
        b'{"format":"\\ud800"}',
        r"is not canonical JSON: '\\ud800' is half of a surrogate pair",
    ),
    "the other half": (
        b'{"\\udfff\\ud800":1}',
        r"is not canonical JSON: '\\udfff' is half of a surrogate pair",
    ),
    "escape codes": (b'{"format":"\\u001b[2J\\u0007"}', r"^format is '\\x1b\[2J\\x07'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_that_is_no_record_is_told_why(name: str) -> None:
    line, expected = HOSTILE[name]
    told = str(verify_line(line).fault)
    assert re.search(expected, told), told


def test_standstills_are_not_copied_for_each_that_follows() -> None:
    """Or a record of nothing else would take hours."""
    desk = dealt()
    course = RecordReplay(desk.setup)
    for entry in desk.journal:
        course.apply_entry(entry)
    question = course._question
    assert question
    for seq in (4, 5, 6):
        course.apply_entry(Frozen(seq=seq, at_ms=1, ms=1, why="STALL"))
    assert [each.seq for each in question.frozen] == [4, 5, 6]


def test_a_fault_is_short_and_safe_to_print_whatever_the_record_holds() -> None:
    body = record_of("smooth")
    body["format"] = "\x1b[2J\u202e" * 10_000
    told = fault_of(body)
    assert told.isascii()
    assert told.isprintable()
    assert len(told) < 600


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (["match"], "match"),
        (["seats", 0, "bot"], r"seats\[0\].bot"),
        (["options", "rounds"], "options.rounds"),
        (["options", "x" * 257], "a key of options"),
        (["time_control", "free_ms", "x" * 257], "a key of time_control.free_ms"),
        (["entries", 0, "x" * 257], r"a key of entries\[0\]"),
    ],
)
def test_a_name_is_no_longer_than_names_are(path: list[Any], where: str) -> None:
    """Or a file of records with names of 16 MiB would fill the memory."""
    body = record_of("smooth")
    set_in(path, "n" * 257)(body)
    told = fault_of(chained(body))
    assert re.search(f"^{where} is 'n?x?.* \\.\\.\\.; it may have at most 256 characters$", told), told


def test_a_default_move_of_a_million_lays_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    body = record_of("left_race")
    moves = the(body, "default")["moves"]
    moves[:0] = [moves[0]] * 100
    game, played = GAMES["ubongo"], []
    play = type(game).play
    monkeypatch.setattr(type(game), "play", lambda *given: played.append(given) or play(*given))
    assert "lays for seat 1 more than once" in fault_of(body)
    assert len(played) < 10


def test_durability_is_held_by_the_chain_alone() -> None:
    """So says section 14 of the page."""
    body = record_of("smooth") | {"durability": "loss-allowed"}
    assert fault_of(chained(body)) == "None"
    assert "the chain ends with" in fault_of(body)


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.sampled_from([0, 1, -1, 2**53 - 1, "R3", "move", "TIMED_OUT", "00" * 32, ""]),
        st.text(max_size=6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """All containers and keys in a record."""
    found: list[tuple[Any, Any]] = []
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found += [(value, key), *places(value[key])]
    return found


def mutate(body: Body, data: st.DataObject) -> None:
    """One thing replaced, taken away, doubled or exchanged, anywhere."""
    spots = places(body)
    holder, key = spots[data.draw(st.integers(0, len(spots) - 1))]
    how = data.draw(st.sampled_from(["replace", "nudge", "remove", "double", "exchange"]))
    if how == "nudge" and type(holder[key]) is int:
        holder[key] += data.draw(st.sampled_from([-1, 1, 100]))
    elif how == "remove":
        del holder[key]
    elif how == "double" and isinstance(holder, list):
        holder.insert(key, deepcopy(holder[key]))
    elif how == "exchange" and isinstance(holder, list):
        other = data.draw(st.integers(0, len(holder) - 1))
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[key] = data.draw(JUNK)


@settings(max_examples=examples(400, 100))
@given(scene=st.sampled_from(sorted(SCENES)), count=st.integers(1, 3), data=st.data())
def test_no_change_of_a_record_goes_unnoticed(scene: str, count: int, data: st.DataObject) -> None:
    body = record_of(scene)
    for _ in range(count):
        mutate(body, data)
    verdict = verify_line(canonical_json(body))
    assert (verdict.fault is None) == (canonical_json(body) + b"\n" == genuine(scene))


@settings(max_examples=examples(300, 100))
@given(scene=st.sampled_from(sorted(SCENES)), count=st.integers(1, 3), data=st.data())
def test_no_record_with_a_chain_that_fits_crashes_the_verifier(
    scene: str, count: int, data: st.DataObject
) -> None:
    body = record_of(scene)
    for _ in range(count):
        mutate(body, data)
    if isinstance(body.get("entries"), list):
        body = chained(body)
    verdict = verify_line(canonical_json(body))
    assert str(verdict.fault).isascii()


@settings(max_examples=examples(300, 100))
@given(scene=st.sampled_from(["smooth", "eventful"]), data=st.data())
def test_no_change_of_a_byte_goes_unnoticed(scene: str, data: st.DataObject) -> None:
    line = bytearray(genuine(scene))
    place = data.draw(st.integers(0, len(line) - 2))
    line[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[place]))
    assert verify_line(bytes(line)).fault is not None


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_verifier(line: bytes) -> None:
    assert verify_line(line).fault is not None
