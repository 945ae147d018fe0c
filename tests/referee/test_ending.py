"""Who ranks before whom when some have left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise_referee.ending import Ending, SeatExit, result_ranks
from seatwise_referee.game import ranks_of


def left(seq: int) -> SeatExit:
    return SeatExit(Ending.RESIGNED if seq else Ending.NEVER_SAT, seq)


@pytest.mark.parametrize(
    ("points", "exits", "ranks"),
    [
        ((5, 9, 7), (None, None, None), (3, 1, 2)),
        ((9, 9, 7), (None, None, None), (1, 1, 3)),
        ((5, 9), (None, left(40)), (1, 2)),
        ((5, 9, 8), (None, left(40), left(60)), (1, 3, 2)),
        ((-3, 40, 8, 8), (None, left(0), left(0), None), (2, 3, 3, 1)),
        ((1, 2, 3), (None, left(0), left(7)), (1, 3, 2)),
    ],
)
def test_a_seat_that_left_ranks_behind_all_others_and_the_later_exit_before_the_earlier(
    points: tuple[int, ...], exits: tuple[SeatExit | None, ...], ranks: tuple[int, ...]
) -> None:
    assert result_ranks(ranks_of(points), exits) == ranks


def test_those_who_never_sat_left_together() -> None:
    assert result_ranks((1, 2, 2), (None, left(0), left(0))) == (1, 2, 2)


def test_those_who_stayed_rank_as_the_rules_rank_them() -> None:
    """Of equal points too: a game may say what breaks a tie."""
    assert result_ranks((2, 1, 2, 4), (None, None, None, None)) == (2, 1, 2, 4)
    assert result_ranks((2, 1, 2, 4), (None, left(9), None, None)) == (1, 4, 1, 3)


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.one_of(st.none(), st.integers(0, 5))), min_size=2, max_size=4)
)
def test_a_rank_is_one_and_the_number_of_those_who_did_better(seats: list[tuple[int, int | None]]) -> None:
    points = [each for each, _ in seats]
    ranks = result_ranks(ranks_of(tuple(points)), [None if seq is None else left(seq) for _, seq in seats])
    assert min(ranks) == 1
    for rank in ranks:
        assert rank == 1 + sum(other < rank for other in ranks)
    stayed = [rank for rank, (_, seq) in zip(ranks, seats, strict=True) if seq is None]
    gone = [rank for rank, (_, seq) in zip(ranks, seats, strict=True) if seq is not None]
    assert not stayed or not gone or max(stayed) < min(gone)
