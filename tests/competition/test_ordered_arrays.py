"""The arrays behind fitted strengths add in the same order as plain loops: not one bit differs."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings import sandwich_covariance
from seatwise_server.competition.ratings.comparisons import Comparisons, count_comparisons, probability_ahead
from seatwise_server.competition.ratings.sandwich_covariance import (
    HALF_TRUSTED_INFORMATION,
    LEAST_LOG_ODDS,
    add_in_order,
    gradient_covariance,
    information_by_bot,
    information_matrix,
    invert_array,
    pair_places,
    prior_information,
    probabilities_ahead,
    sandwich_product,
)

Rows = list[list[float]]

BOTS = 9


def season(seed: int, seats: Sequence[int], deals: int = 0) -> Comparisons:
    """The comparisons of a season; with `deals`, two of three matches are on one of so many shared deals."""
    chance = random.Random(seed)
    log = []
    for seq in range(1, 90):
        table = chance.sample(range(BOTS), chance.choice(seats))
        ranks = tuple(chance.randint(1, len(table)) for _ in table)
        deal = f"d{chance.randrange(deals)}" if deals and chance.random() < 2 / 3 else ""
        bots = tuple(f"bots/b{bot}/versions/1" for bot in table)
        log.append(LoggedResult(seq, f"matches/{seq}", bots, ranks, ranks, ("COMPLETED",) * len(bots), deal=deal))  # fmt: skip
    return count_comparisons(log)


def drawn_strengths(seed: int, scale: float = 1.0) -> list[float]:
    chance = random.Random(seed)
    return [scale * chance.gauss(0, 1) for _ in range(BOTS)]


def zeros(size: int) -> Rows:
    return [[0.0] * size for _ in range(size)]


def multiply_rows(one: Rows, other: Rows) -> Rows:
    product = zeros(len(one))
    for i, row in enumerate(one):
        for j, column in enumerate(other):
            for left, right in zip(row, column, strict=True):
                product[i][j] += left * right
    return product


def invert_plainly(matrix: Rows) -> Rows:
    size = len(matrix)
    root, inverse, product = zeros(size), zeros(size), zeros(size)
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i][j] - add_up(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = math.sqrt(rest) if i == j else rest / root[j][j]
    for j in range(size):
        inverse[j][j] = 1 / root[j][j]
        for i in range(j + 1, size):
            inverse[i][j] = -add_up(root[i][k] * inverse[k][j] for k in range(j, i)) / root[i][i]
    for i in range(size):
        for j in range(i + 1):
            found = add_up(inverse[k][i] * inverse[k][j] for k in range(i, size))
            product[i][j] = product[j][i] = found
    return product


def add_up(values: Iterable[float]) -> float:
    """`sum` of Python 3.12 and later corrects its rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


def covariance_plainly(seen: Comparisons, strengths: list[float]) -> Rows:
    """What `gradient_covariance` finds without shared deals."""
    known = [0.0] * len(strengths)
    for (one, other), met, _ in seen.pairs:
        p = probability_ahead(strengths[one] - strengths[other])
        known[one] += met * p * (1 - p)
        known[other] += met * p * (1 - p)
    total, tables = zeros(len(strengths)), defaultdict[tuple[int, ...], float](float)
    for piece, count in seen.clusters:
        sums = {bot: 0.0 for match in piece for bot, _ in match}
        for match in piece:
            for (one, its), (other, others) in combinations(match, 2):
                won = 0.5 if its == others else float(its < others)
                more = won - probability_ahead(strengths[one] - strengths[other])
                sums[one] += more
                sums[other] -= more
        part = min(known[bot] / (known[bot] + HALF_TRUSTED_INFORMATION) for bot in sums)
        for one, its in sums.items():
            for other, others in sums.items():
                total[one][other] += count * part * its * others
        for match in piece:
            tables[tuple(bot for bot, _ in match)] += count * (1 - part)
    for table, weight in sorted(tables.items()):
        add_table_plainly(total, table, strengths, weight)
    return total


def add_table_plainly(total: Rows, table: tuple[int, ...], strengths: list[float], weight: float) -> None:
    best = max(strengths[bot] for bot in table)
    odds = {bot: math.exp(max(strengths[bot] - best, LEAST_LOG_ODDS)) for bot in table}
    for one, other in combinations(table, 2):
        variance = weight * odds[one] * odds[other] / ((odds[one] + odds[other]) * (odds[one] + odds[other]))
        for row, column, value in ((one, one, variance), (other, other, variance), (one, other, -variance), (other, one, -variance)):  # fmt: skip
            total[row][column] += value
    for a, b, c in combinations(table, 3):
        of_all = odds[a] + odds[b] + odds[c]
        for first, left, right in ((a, b, c), (b, c, a), (c, a, b)):
            own = odds[first]
            apart = own * own / ((own + odds[left]) * (own + odds[right]))
            value = weight * (own / of_all - apart)
            total[first][first] += 2 * value
            for row, column in ((first, left), (first, right), (left, first), (right, first)):
                total[row][column] -= value
            total[left][right] += value
            total[right][left] += value


def test_values_are_added_from_the_first_to_the_last() -> None:
    total = np.zeros(2)
    add_in_order(total, np.array([0, 1, 0, 1, 0]), np.array([1e16, 1.0, 1.0, 1e16, -1e16]))
    assert total.tolist() == [0.0, 1e16], "1e16 + 1 is 1e16; another order would leave 1"


def test_pairs_of_places_stay_within_their_block() -> None:
    one, other = pair_places(np.array([2, 1, 2]))
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_an_inverse_and_a_sandwich_have_the_digits_of_plain_loops(seed: int) -> None:
    chance = random.Random(seed)
    root = [[chance.gauss(0, 1) for _ in range(23)] for _ in range(23)]
    matrix = multiply_rows(root, root)
    back = invert_array(np.array(matrix))
    assert back.tolist() == invert_plainly(matrix)
    product = multiply_rows(multiply_rows(back.tolist(), matrix), back.tolist())
    found = sandwich_product(back, np.array(matrix)).tolist()
    assert [row[: i + 1] for i, row in enumerate(found)] == [row[: i + 1] for i, row in enumerate(product)]
    assert found == [list(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("bad", [[[0.0]], [[-1.0]], [[1.0, 2.0], [2.0, 1.0]], [[math.nan]]])
def test_a_matrix_that_is_not_positive_definite_is_refused(bad: Rows) -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        invert_array(np.array(bad))


@pytest.mark.parametrize("at_once", [1, 700, 2**19])
@pytest.mark.parametrize("scale", [0.5, 400.0])
@pytest.mark.parametrize("seats", [(4,), (2, 3, 4)])
def test_the_covariance_has_the_digits_of_plain_loops(
    seats: tuple[int, ...], scale: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the tables are of one size, or of several in turn; and where they do not fit into one array."""
    monkeypatch.setattr(sandwich_covariance, "TERMS_AT_ONCE", at_once)
    monkeypatch.setattr(sandwich_covariance, "measure_design_effects", lambda _, of: [1.0] * len(of))
    for deals in (0, 5):
        seen, strengths = season(11, seats, deals), drawn_strengths(deals, scale)
        found = gradient_covariance(seen, strengths)
        plain = covariance_plainly(seen, strengths)
        assert found.tolist() == plain if not deals else found == pytest.approx(np.array(plain), rel=1e-9)


def test_tables_of_many_seats_fill_no_memory() -> None:
    """Sixteen seats have 12,240 terms, so 4,000 such tables would take gigabytes in one array."""
    tables = dict.fromkeys([tuple(range(first, first + 16)) for first in range(200)], 1.0)
    chunks = sandwich_covariance._split_in_chunks(sorted(tables), sandwich_covariance._count_table_terms)
    sizes = list(map(len, chunks))
    assert sum(sizes) == 200
    assert max(sizes) == sandwich_covariance.TERMS_AT_ONCE // 12_240


def test_the_information_has_the_digits_of_plain_loops() -> None:
    seen, strengths = season(5, (2, 4)), drawn_strengths(5)
    plain = zeros(BOTS)
    for (one, other), met, _ in seen.pairs:
        p = probability_ahead(strengths[one] - strengths[other])
        weight = met * p * (1 - p)
        plain[one][other] = plain[other][one] = -weight
        plain[one][one] += weight
        plain[other][other] += weight
    assert np.diagonal(np.array(plain)).tolist() == information_by_bot(seen, strengths).tolist()
    for bot, strength in enumerate(strengths):
        plain[bot][bot] += prior_information(strength)
    assert information_matrix(seen, strengths).tolist() == plain


def test_probabilities_are_those_of_single_differences() -> None:
    chance = random.Random(1)
    differences = [chance.gauss(0, 10) for _ in range(500)] + [-699.9, -700.0, -5000.0, 0.0, 40.0, 5000.0]
    assert probabilities_ahead(np.array(differences)).tolist() == list(map(probability_ahead, differences))


def test_only_the_fit_of_strengths_needs_numpy() -> None:
    """Verification of a season does not."""
    program = (
        "import sys; sys.modules['numpy'] = None; import seatwise_referee.verify, seatwise_server.league.proof;"
        "from seatwise_server.competition.ratings.strengths import fit_strengths\n"
        "try: fit_strengths([])\n"
        "except ImportError: sys.exit(7)"
    )
    told = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert told.returncode == 7, told.stderr
