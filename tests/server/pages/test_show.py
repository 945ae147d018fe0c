"""Drawings of layouts for people at terminals of any width."""

from __future__ import annotations

from seatwise.kits.frames import arrange_blocks

PARTS = ["one: 10\n+--+\n|AB|\n+--+", "two: 3\n+-+\n|C|\n+-+", "three: 0\n(nothing laid)"]


def rows_in(columns: int) -> list[str]:
    title, *rows = arrange_blocks("\n\n".join(["As it ended:", *PARTS]), columns).split("\n\n")
    assert title == "As it ended:"
    return rows


def test_drawings_stand_side_by_side_where_there_is_room() -> None:
    (row,) = rows_in(80)
    assert row.splitlines() == [
        "one: 10   two: 3   three: 0",
        "+--+      +-+      (nothing laid)",
        "|AB|      |C|",
        "+--+      +-+",
    ]


def test_a_part_that_does_not_fit_beside_the_others_stands_below() -> None:
    first, second = rows_in(20)
    assert [len(row.splitlines()) for row in (first, second)] == [4, 2]
    assert first.startswith("one: 10   two: 3\n")


def test_a_terminal_that_is_too_narrow_for_one_gets_one_below_the_other() -> None:
    assert len(rows_in(1)) == len(PARTS)
