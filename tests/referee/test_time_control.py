"""Charges and banks, to the millisecond."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise_referee.time_control import LONGEST_LIMIT_MS, BadTimeControl, TimeControl

LIMITS = TimeControl(free_ms={"card": 1000, "arrange": 400}, bank_ms=500, grace_ms=50)
NUMBERS = [name for name in LIMITS.to_json() if name != "free_ms"]


def test_the_highest_charge_in_time_is_free_time_bank_and_grace() -> None:
    assert LIMITS.allowed_ms("card", 500) == 1550
    assert LIMITS.allowed_ms("arrange", 0) == 450


@pytest.mark.parametrize(
    ("charged_ms", "left_ms"), [(0, 500), (1000, 500), (1001, 499), (1499, 1), (1500, 0), (1550, 0)]
)
def test_only_what_is_beyond_the_free_time_comes_out_of_the_bank(charged_ms: int, left_ms: int) -> None:
    assert LIMITS.bank_after("card", 500, charged_ms) == left_ms


def test_the_grace_is_never_taken_from_the_bank() -> None:
    assert LIMITS.bank_after("card", 0, 1050) == 0


def test_the_increment_comes_after_the_move_has_been_paid() -> None:
    limits = TimeControl(free_ms={"card": 1000}, bank_ms=500, increment_ms=70)
    assert limits.bank_after("card", 500, 900) == 570
    assert limits.bank_after("card", 500, 1600) == 70


@given(bank_ms=st.integers(0, LONGEST_LIMIT_MS), charged_ms=st.integers(0, LONGEST_LIMIT_MS))
def test_a_bank_is_never_negative_and_never_grows_without_an_increment(bank_ms: int, charged_ms: int) -> None:
    assert 0 <= LIMITS.bank_after("card", bank_ms, charged_ms) <= bank_ms


def test_a_time_control_is_as_it_was_after_a_way_through_json() -> None:
    assert TimeControl.from_json(LIMITS.to_json()) == LIMITS


def test_a_limit_that_is_left_out_has_its_default() -> None:
    assert TimeControl.from_json({"free_ms": {"card": 5}}) == TimeControl(free_ms={"card": 5})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("bad", [-1, LONGEST_LIMIT_MS + 1, 1.5, "10", None, True])
def test_a_limit_is_a_whole_number_within_a_day(name: str, bad: Any) -> None:
    with pytest.raises(BadTimeControl, match=name):
        TimeControl.from_json({name: bad})


@pytest.mark.parametrize("name", ["max_strikes", "max_rejections"])
def test_no_seat_is_forfeited_for_nothing(name: str) -> None:
    with pytest.raises(BadTimeControl, match="from 1"):
        TimeControl.from_json({name: 0})


@pytest.mark.parametrize("free_ms", [{"card": 0}, {"card": -1}, {"card": "1"}, [], 7])
def test_free_time_is_at_least_a_millisecond_by_pace(free_ms: Any) -> None:
    with pytest.raises(BadTimeControl, match="free_ms"):
        TimeControl.from_json({"free_ms": free_ms})


def test_an_unknown_limit_is_named() -> None:
    with pytest.raises(BadTimeControl, match="'bank'"):
        TimeControl.from_json({"bank": 10})
