"""Drawings of layouts for people at terminals of any width."""

from __future__ import annotations

from seatwise.kits.ubongo.text import rows_of

PARTS = [("one: 10", "+--+\n|AB|\n+--+"), ("two: 3", "+-+\n|C|\n+-+"), ("three: 0", "(nothing laid)")]


def test_drawings_stand_side_by_side_where_there_is_room() -> None:
    (row,) = rows_of(PARTS, 80)
    assert row.splitlines() == [
        "one: 10   two: 3   three: 0",
        "+--+      +-+      (nothing laid)",
        "|AB|      |C|",
        "+--+      +-+",
    ]


def test_a_part_that_does_not_fit_beside_the_others_stands_below() -> None:
    first, second = rows_of(PARTS, 20)
    assert [len(row.splitlines()) for row in (first, second)] == [4, 2]
    assert first.startswith("one: 10   two: 3\n")


def test_a_terminal_that_is_too_narrow_for_one_gets_one_below_the_other() -> None:
    assert len(list(rows_of(PARTS, 1))) == len(PARTS)
