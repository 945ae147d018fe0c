"""Removes the luck of the deal from the points, by par and by others' luck at the same seat and deal.

Par is the score of a published house bot at that seat of that deal, with the same bot at all seats. A second measure of the
luck is the mean points of playouts: many simulations of the deal by simple players.

A correction subtracts from a match's points a value that is known without looking at the match, minus that value's
mean. So no correction changes the mean of all points. Its coefficient is fixed before the season, so no bot can steer it. A badly chosen coefficient reduces precision, but never makes the result wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import Vector, add_up, dot_product, solve_system, zero_matrix
from seatwise_server.competition.standings.scoring import counted_points

PAR_COEFFICIENT: Final = 0.5
"""The part of par that is subtracted where nothing else is known, for points of UGO! with `greedy` as the par bot."""
PAR_PART: Final = 0.2
PLAYOUTS_PART: Final = 0.7
"""The parts of par and of playouts that are subtracted where both are known."""
DRAWS_PART: Final = 0.8
"""The part of the luck of draws that is subtracted.

All parts are the same in all seasons. A part that is fitted follows what bots play: a bot could read its luck so far from the records, and
move the part up after bad luck and down after good luck.
"""
DEAL_VARIANCE_SHARE: Final = 0.45
"""The share of the variance at a seat that the deal causes."""
DEAL_VARIANCE_SHARE_AFTER_PAR: Final = 0.3
"""The same after the correction by par."""
DEAL_VARIANCE_SHARE_AFTER_PLAYOUTS: Final = 0.05
"""The same after the correction by par and playouts."""
# All of them were fitted by tests/bench/matches_needed.py of version 0.2.0, on deals that serve no other purpose.

RIDGE: Final = 1e-9
"""A relative addition to the diagonal. Without it the effects of two bots that always play together have no unique split."""

SeatValues = list[tuple[float, ...]]
"""Values by match and seat."""
SeatEffects = tuple[int, ...]
"""The numbers of the effects whose sum is expected at a seat: that of its bot, and one for each opponent."""


@dataclass(frozen=True, slots=True)
class CorrectedPoints:
    """The points of all matches, corrected or not."""

    values: SeatValues
    common_shifts: Mapping[str, float] = field(default_factory=dict)
    """By deal: its contribution to the means of all bots alike.

    A correction subtracts a mean that was measured in the same season. So the luck of the deals is removed from
    the differences, but not from the level of all bots, and intervals of means have to include it.
    """


def deal_name(result: LoggedResult) -> str:
    """Return the name of the deal, on which all matches that depend on each other agree. An unshared deal has the match's name."""
    return result.deal or result.match


def uncorrected_points(results: Sequence[LoggedResult]) -> CorrectedPoints:
    """Return the points as tables count them."""
    return CorrectedPoints([tuple(map(float, counted_points(result))) for result in results])


def correct_by_measures(
    results: Sequence[LoggedResult], measures: Sequence[SeatValues], parts: Sequence[float]
) -> CorrectedPoints:
    """Subtract a part of each measure's distance from its mean at that seat."""
    luck = [
        tuple(dot_product(parts, at_seat) for at_seat in zip(*match, strict=True))
        for match in zip(*measures, strict=True)
    ]
    return _subtract_luck(results, uncorrected_points(results), subtract_seat_means(luck))


def _subtract_luck(
    results: Sequence[LoggedResult], points: CorrectedPoints, luck: SeatValues
) -> CorrectedPoints:
    """Return the points less this luck, with what each deal contributes to the mean of all because of that."""
    values = [
        tuple(value - off for value, off in zip(own, less, strict=True))
        for own, less in zip(points.values, luck, strict=True)
    ]
    count = sum(map(len, luck))
    shifts = defaultdict(float, points.common_shifts)
    for result, off in zip(results, luck, strict=True):
        shifts[deal_name(result)] += add_up(off) / count
    return CorrectedPoints(values, shifts)


def correct_by_other_tables(
    results: Sequence[LoggedResult], points: CorrectedPoints, deal_share: float
) -> CorrectedPoints:
    """Where a deal travelled, subtract a part of the luck that others had at the same seat of it.

    Luck is the residual of `seat_residuals`: what the bot and its opponents do not explain. So it makes no difference to a
    bot which others sat at its seat, however unequal they are. `deal_share` is the share of the variance at a seat that the
    deal causes, fixed before the season. The part to subtract follows from it and the number of other tables, because the
    mean of few tables is itself mostly chance.
    """
    tables = tables_by_deal(results)
    luck, _ = seat_residuals(results, subtract_seat_means(points.values))
    sums = sums_by_seat(results, luck)
    taken = []
    for result, own in zip(results, luck, strict=True):
        others = tables.get(result.deal, 1) - 1
        part = part_to_subtract(others, deal_share) / max(others, 1)
        taken.append(tuple(part * (sums[result.deal, seat] - value) for seat, value in enumerate(own)))
    return _subtract_luck(results, points, taken)


def part_to_subtract(others: int, deal_share: float) -> float:
    """Return the part of the others' mean luck at a seat that the deal explains, for so many other tables."""
    return deal_share * others / (1 + deal_share * (others - 1)) if others else 0.0


def sums_by_seat(results: Sequence[LoggedResult], values: SeatValues) -> dict[tuple[str, int], float]:
    """Return the sum of the values at each seat of each deal."""
    sums: dict[tuple[str, int], float] = defaultdict(float)
    for result, own in zip(results, values, strict=True):
        for seat, value in enumerate(own):
            sums[result.deal, seat] += value
    return sums


def subtract_seat_means(values: SeatValues) -> SeatValues:
    """Return each value minus the mean at its seat, over all tables of its size."""
    by_seat: dict[tuple[int, int], list[float]] = defaultdict(list)
    for own in values:
        for seat, value in enumerate(own):
            by_seat[len(own), seat].append(value)
    means = {seat: add_up(found) / len(found) for seat, found in by_seat.items()}
    return [tuple(value - means[len(own), seat] for seat, value in enumerate(own)) for own in values]


def tables_by_deal(results: Iterable[LoggedResult]) -> dict[str, int]:
    """Return the number of tables of each deal that no bot has met twice."""
    met: dict[str, list[str]] = defaultdict(list)
    tables: dict[str, int] = defaultdict(int)
    for result in results:
        if result.deal:
            met[result.deal].extend(result.bots)
            tables[result.deal] += 1
    return {deal: count for deal, count in tables.items() if len(set(met[deal])) == len(met[deal])}


def remaining_variance(results: Sequence[LoggedResult], points: CorrectedPoints) -> float:
    """Return the share of the variance of single matches that remains after a correction. 1 if there was no variance."""
    before, after = (
        _sum_squared_residuals(results, each.values) for each in (uncorrected_points(results), points)
    )
    return after / before if before else 1.0


def _sum_squared_residuals(results: Sequence[LoggedResult], values: SeatValues) -> float:
    """Return the sum of squares of the part that bots, opponents and seats do not explain."""
    left, _ = seat_residuals(results, subtract_seat_means(values))
    return add_up(value * value for own in left for value in own)


# --- Chance: the part of the points that the bot and its opponents do not explain -------------------------------
#
# A schedule is fixed, so a strong opponent is not chance. Without this, intervals in a very unequal field would be far too wide. A
# least-squares fit explains each seat's points as the sum of an effect of its bot and one of each opponent.


class _Design(NamedTuple):
    """The effects at the tables of a season."""

    bots: int
    seats: list[list[SeatEffects]]
    together: Mapping[tuple[int, int], int]
    """By two effects, at how many seats both are expected."""


def seat_residuals(
    results: Sequence[LoggedResult], values: Sequence[tuple[float, ...]]
) -> tuple[list[tuple[float, ...]], float]:
    """Return the residuals by match and seat, and the factor by which the true squares exceed theirs.

    The fit of the opponents removes a part of the chance, one degree of freedom for each bot. The factor restores
    it. The fit of a bot's own mean removes some too, but every interval around a mean already allows for that.
    """
    design = _make_design(tuple(result.bots for result in results))
    parts = _fit_effects(design, values)
    left = [
        tuple(value - add_up(parts[part] for part in seat) for seat, value in zip(table, own, strict=True))
        for table, own in zip(design.seats, values, strict=True)
    ]
    count = sum(map(len, left))
    return left, count / max(count - design.bots, 1)


@lru_cache(maxsize=4)  # one page fits several measures to the same tables
def _make_design(tables: tuple[tuple[str, ...], ...]) -> _Design:
    bots = sorted({bot for table in tables for bot in table})
    number = {bot: at for at, bot in enumerate(bots)}
    seats = [_effects_at_seats([number[bot] for bot in table], len(bots)) for table in tables]
    together: Counter[tuple[int, int]] = Counter()
    for table in seats:
        for seat in table:
            together.update((one, other) for one in seat for other in seat)
    return _Design(len(bots), seats, together)


def _effects_at_seats(numbers: Sequence[int], bots: int) -> list[SeatEffects]:
    return [
        (own, *(bots + other for there, other in enumerate(numbers) if there != seat))
        for seat, own in enumerate(numbers)
    ]


def _fit_effects(design: _Design, values: Sequence[tuple[float, ...]]) -> Vector:
    """Return the effect of each bot on its own points, and then the effect of each on its opponents' points."""
    unknowns = 2 * design.bots
    if not unknowns:
        return []
    sums = [0.0] * unknowns
    for table, own in zip(design.seats, values, strict=True):
        for seat, value in zip(table, own, strict=True):
            for part in seat:
                sums[part] += value
    matrix = zero_matrix(unknowns)
    for (one, other), count in design.together.items():
        matrix[one][other] = count * (1 + RIDGE * (one == other))
    scale = [matrix[part][part] for part in range(unknowns)]
    return solve_system(lambda x: [dot_product(row, x) for row in matrix], scale, sums)
