"""No draw of a Swiss round has more repeated pairs than the one that an integer programme finds (HiGHS, through scipy)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from seatwise_server.competition.schedules.swiss import draw_swiss_round
from seatwise_server.competition.schedules.swiss_rules import SCORE_UNITS, SwissState, count_pairs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NODE_LIMIT = 2_000
"""The programme ends here. The bound is on its nodes, never on its seconds."""


def fewest_repeats(entrants: list[int], size: int, met: Counter[tuple[int, int]]) -> float:
    """The least sum over all choices of tables that seat everybody once: a set partition, one column for each table."""
    optimize, sparse = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.sparse")
    tables = list(combinations(sorted(entrants), size))
    costs = [sum(met[pair] > 0 for pair in combinations(table, 2)) for table in tables]
    row = {entrant: number for number, entrant in enumerate(sorted(entrants))}
    cells = [(row[entrant], column) for column, table in enumerate(tables) for entrant in table]
    matrix = sparse.csr_matrix(([1] * len(cells), tuple(zip(*cells, strict=True))))
    found = optimize.milp(
        costs,
        integrality=[1] * len(tables),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(matrix, 1, 1),
        options={"node_limit": NODE_LIMIT},
    )
    return float("inf") if found.x is None else float(round(found.fun))


def compare_rounds(entrants: int, size: int, rounds: int, seed: int) -> None:
    chance = Random(f"optimal/{entrants}/{size}/{seed}")
    state = SwissState((0,) * entrants)
    for number in range(1, rounds + 1):
        draw = draw_swiss_round(state, number, size, str(seed), is_last=number == rounds)
        met = state.count_meetings()
        seated = [each for each in range(entrants) if each not in draw.byes]
        repeats = sum(met[pair] > 0 for pair in count_pairs(draw.tables))
        assert repeats <= fewest_repeats(seated, size, met), (number, draw)
        scores = list(state.scores)
        for table in draw.tables:
            order = sorted(table, key=lambda _: chance.random())
            for place, entrant in enumerate(order):
                scores[entrant] += place * SCORE_UNITS // (size - 1)
        for entrant in draw.byes:
            scores[entrant] += SCORE_UNITS
        state = SwissState(
            tuple(scores),
            (*state.tables, *draw.tables),
            state.byes.union(draw.byes),
            state.find_floaters(draw.tables),
        )


def test_the_programme_finds_the_least() -> None:
    met = Counter({(0, 1): 1, (2, 3): 1, (4, 5): 2})
    assert fewest_repeats(list(range(6)), 2, met) == 0
    assert fewest_repeats(list(range(6)), 3, Counter(combinations(range(6), 2))) == 6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("entrants", "size", "rounds"),
    [(8, 3, 4), (10, 2, 7), (12, 3, 5), (12, 4, 5), (15, 3, 6), (16, 4, 6), (17, 4, 4), (20, 4, 5)],
)
def test_no_round_repeats_more_pairs_than_an_integer_programme_finds(
    entrants: int, size: int, rounds: int, seed: int
) -> None:
    compare_rounds(entrants, size, rounds, seed)
