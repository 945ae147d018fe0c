"""Entries and their one way to be written."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise_referee.ending import Ending, RejectReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import (
    ENTRY_TYPES,
    PRIVATE_FIELDS,
    Agreed,
    AgreedReason,
    BadEntry,
    Charge,
    Defaulted,
    DefaultMove,
    DefaultReason,
    Entry,
    RaceCall,
    Rejected,
    SeatTimeout,
    canonical_json,
    decode_entry,
    encode_entry,
    entry_from_json,
    public_part,
)

WHOLE = st.integers(0, 2**53 - 1)
TEXT = st.text(max_size=20)
MOVES = st.one_of(
    st.fixed_dictionaries({"play": st.sampled_from(["R3", "K8"])}),
    st.fixed_dictionaries({"arrange": st.lists(st.sampled_from(["B0", "G4", "Y1"]), max_size=4)}),
)
SEATS = st.integers(0, 3).map(Seat)
CHARGES = st.builds(Charge, WHOLE, WHOLE, WHOLE)
BY_SEAT = st.lists(st.integers(-200, 200), min_size=2, max_size=4)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "seq": st.integers(1, 10**6),
    "at_ms": WHOLE,
    "seat": st.integers(0, 3),
    "nonce": st.one_of(st.none(), st.binary(min_size=32, max_size=32).map(bytes.hex)),
    "prompt": st.integers(1, 2**31 - 1),
    "move": MOVES,
    "asked_ms": WHOLE,
    "allowance_ms": WHOLE,
    "charged_ms": WHOLE,
    "request_id": TEXT,
    "message": TEXT,
    "reason": st.sampled_from(["TIMED_OUT", "ILLEGAL", "ABORTED"]),
    "calls": st.lists(st.builds(RaceCall, SEATS, WHOLE, CHARGES), max_size=3).map(tuple),
    "layouts": st.lists(st.lists(MOVES, max_size=2), max_size=4).map(tuple),
    "request_ids": st.lists(TEXT, max_size=3).map(tuple),
    "window_ms": WHOLE,
    "silent": st.lists(st.integers(0, 3), max_size=4).map(tuple),
    "asked": st.lists(st.builds(SeatTimeout, SEATS, CHARGES), max_size=3).map(tuple),
    "moves": st.lists(st.builds(DefaultMove, SEATS, MOVES, st.none() | CHARGES), max_size=3).map(tuple),
    "ending": st.sampled_from(Ending),
    "epoch": WHOLE,
    "ms": WHOLE,
    "why": st.sampled_from(["STALL", "STORE"]),
    "outcome": st.fixed_dictionaries({"points": BY_SEAT, "ranks": BY_SEAT, "rounds": st.lists(BY_SEAT)}),
    "result": st.fixed_dictionaries({"ranks": BY_SEAT}),
    "endings": st.lists(st.sampled_from(Ending)).map(tuple),
}
REASONS: dict[type[Entry], dict[str, st.SearchStrategy[Any]]] = {
    Defaulted: {"reason": st.sampled_from(DefaultReason)},
    Agreed: {"reason": st.sampled_from(AgreedReason)},
    Rejected: {"reason": st.sampled_from(RejectReason)},
}


def entries_of(kind: type[Entry]) -> st.SearchStrategy[Entry]:
    given = {each.name: FIELDS[each.name] for each in fields(kind)}
    return st.builds(kind, **(given | REASONS.get(kind, {})))


ANY_ENTRY = st.one_of([entries_of(kind) for kind in ENTRY_TYPES.values()])
by_kind = pytest.mark.parametrize("kind", ENTRY_TYPES)


@by_kind
@given(data=st.data())
def test_an_entry_comes_back_from_the_store_as_it_went(kind: str, data: st.DataObject) -> None:
    entry = data.draw(entries_of(ENTRY_TYPES[kind]))
    assert decode_entry(encode_entry(entry)) == entry


@by_kind
@given(data=st.data())
def test_an_entry_of_a_record_lacks_only_what_is_private(kind: str, data: st.DataObject) -> None:
    entry = data.draw(entries_of(ENTRY_TYPES[kind]))
    public = {name: value for name, value in entry.to_json().items() if name not in PRIVATE_FIELDS}
    again = entry_from_json(public).to_json()
    assert {name: value for name, value in again.items() if name not in PRIVATE_FIELDS} == public
    assert not any(again[name] for name in again.keys() & PRIVATE_FIELDS)


@given(ANY_ENTRY)
def test_the_store_holds_what_records_show_and_behind_it_what_is_private(entry: Entry) -> None:
    halves: list[dict[str, Any]] = [{}, {}]
    for name, value in entry.to_json().items():
        halves[name in PRIVATE_FIELDS][name] = value
    assert public_part(encode_entry(entry)) == canonical_json(halves[False])
    assert encode_entry(entry) == b"\t".join(canonical_json(half) for half in halves if half)


@given(ANY_ENTRY)
def test_the_same_entry_is_always_the_same_bytes(entry: Entry) -> None:
    data = encode_entry(entry)
    assert data == encode_entry(decode_entry(data))
    assert data.isascii()
    assert b"\n" not in data


@given(ANY_ENTRY, st.data())
def test_an_entry_that_lacks_a_key_or_has_one_too_many_is_refused(entry: Entry, data: st.DataObject) -> None:
    body = entry.to_json()
    dropped = data.draw(st.sampled_from(sorted(body.keys() - PRIVATE_FIELDS)))
    with pytest.raises(BadEntry):
        entry_from_json({name: value for name, value in body.items() if name != dropped})
    with pytest.raises(BadEntry, match="extra"):
        entry_from_json({**body, "extra": 1})


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "sat",
        {},
        {"kind": "sits"},
        {"kind": None},
        {"kind": []},
        {"kind": "default", "seq": 1, "at_ms": 0, "reason": "TIMED_OUT", "prompt": 1, "moves": 5},
        {"kind": "default", "seq": 1, "at_ms": 0, "reason": "TIMED_OUT", "prompt": 1, "moves": [{"seat": 0}]},
        {"kind": "default", "seq": 1, "at_ms": 0, "reason": "ASLEEP", "prompt": 1, "moves": []},
        {"kind": "forfeited", "seq": 1, "at_ms": 0, "seat": 0, "ending": "LEFT"},
        {"kind": "forfeited", "seq": 1, "at_ms": 0, "seat": 0, "ending": []},
        {"kind": "finished", "seq": 1, "at_ms": 0, "outcome": {}, "result": {}, "endings": ["LEFT"]},
        {"kind": "finished", "seq": 1, "at_ms": 0, "outcome": {}, "result": {}, "endings": 0},
    ],
)
def test_json_that_is_no_entry_is_refused(body: Any) -> None:
    with pytest.raises(BadEntry):
        entry_from_json(body)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff", b"7"])
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(BadEntry):
        decode_entry(data)


@given(st.dictionaries(TEXT, st.one_of(st.integers(), TEXT, st.none(), st.booleans())))
def test_canonical_json_has_sorted_keys_no_spaces_and_only_ascii(body: dict[str, Any]) -> None:
    data = canonical_json(body)
    assert data.isascii()
    assert json.loads(data) == body
    assert data == canonical_json(dict(reversed(body.items())))


def test_canonical_json_is_written_in_one_way() -> None:
    assert canonical_json({"b": [1, None], "a": {"é": "\n"}}) == b'{"a":{"\\u00e9":"\\n"},"b":[1,null]}'
