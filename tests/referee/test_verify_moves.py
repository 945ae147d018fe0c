"""A move has a check of its own in the verifier, which is quicker. It lets nothing pass that the check of all entries refuses."""

from __future__ import annotations

from typing import Any

import pytest

from seatwise_referee.verify.fault import BadRecord
from seatwise_referee.verify.shape import check_entry

SEATS = 4
MOVE: dict[str, Any] = {
    "kind": "move", "seq": 6, "at_ms": 9, "seat": 3, "prompt": 1, "move": {"play": "R3"},
    "asked_ms": 2, "allowance_ms": 0, "charged_ms": 7,
}  # fmt: skip
NUMBERS = ("seq", "at_ms", "seat", "prompt", "asked_ms", "allowance_ms", "charged_ms")


def _fault_of(entry: dict[str, Any]) -> str:
    with pytest.raises(BadRecord) as refused:
        check_entry(entry, SEATS)
    return refused.value.fault.text


def test_a_genuine_move_passes() -> None:
    check_entry(dict(MOVE), SEATS)


@pytest.mark.parametrize("value", [True, False, -1, "1", None, [1], {}])
@pytest.mark.parametrize("key", NUMBERS)
def test_each_number_is_a_whole_number(key: str, value: Any) -> None:
    assert _fault_of({**MOVE, key: value}).startswith(f"{key} is ")


@pytest.mark.parametrize("key", ["seq", "prompt"])
def test_numbers_of_prompts_and_entries_begin_at_one(key: str) -> None:
    assert "from 1 on" in _fault_of({**MOVE, key: 0})


def test_the_seat_is_at_the_table() -> None:
    assert _fault_of({**MOVE, "seat": SEATS}) == "there is no seat 4 at a table of 4"


@pytest.mark.parametrize("key", sorted(MOVE.keys() - {"kind"}))
def test_no_key_is_missing(key: str) -> None:
    assert f"'{key}' is missing" in _fault_of({name: value for name, value in MOVE.items() if name != key})


def test_no_key_is_added() -> None:
    assert "'request_id' does not belong there" in _fault_of({**MOVE, "request_id": ""})
