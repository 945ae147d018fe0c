"""Removes the luck of the deal from the points, by par and by others' luck at the same seat and deal.

Par is the score of a published house bot at that seat of that deal, with the same bot at all seats. A second measure of the
luck is the mean points of playouts: many simulations of the deal by simple players.

A correction subtracts from a match's points a value that is known without looking at the match, minus that value's
mean. So no correction changes the mean of all points. Its coefficient is fixed before the season, so no bot can steer it. A badly chosen coefficient reduces precision, but never makes the result wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

ParLookup = Callable[[LoggedResult], Sequence[float] | None]
"""Returns the score of the par bot at each seat of that match's deal, or `None` if that is not known."""

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
    """Return the name of the deal, on which all matches that depend on each other agree.

    An unshared deal has the match's name.
    """
    return result.deal or result.match


def add_par(results: Iterable[LoggedResult], par_of: ParLookup) -> list[LoggedResult]:
    """Return the same results with their pars, as far as they are known."""
    return [replace(result, par=tuple(map(float, par_of(result) or ()))) for result in results]


def uncorrected_points(results: Sequence[LoggedResult]) -> CorrectedPoints:
    """Return the points as tables count them."""
    return CorrectedPoints([tuple(map(float, counted_points(result))) for result in results])


def correct_by_par(results: Sequence[LoggedResult], coefficient: float) -> CorrectedPoints:
    """Subtract a fixed part of the difference between par and its mean at that seat. Matches without par stay unchanged."""
    pars = [result.par or (0.0,) * len(result.bots) for result in results]
    above = subtract_seat_means(pars, [bool(result.par) for result in results])
    values = [
        tuple(value - coefficient * luck for value, luck in zip(own, off, strict=True))
        for own, off in zip(uncorrected_points(results).values, above, strict=True)
    ]
    return CorrectedPoints(values, shifts_by_deal(results, above, coefficient))


def correct_by_measures(
    results: Sequence[LoggedResult], measures: Sequence[SeatValues], parts: Sequence[float]
) -> CorrectedPoints:
    """Subtract a part of each measure's distance from its mean at that seat."""
    luck = [
        tuple(
            add_up(part * value for part, value in zip(parts, at_seat, strict=True))
            for at_seat in zip(*match, strict=True)
        )
        for match in zip(*measures, strict=True)
    ]
    above = subtract_seat_means(luck, [True] * len(luck))
    values = [
        tuple(value - off for value, off in zip(own, less, strict=True))
        for own, less in zip(uncorrected_points(results).values, above, strict=True)
    ]
    return CorrectedPoints(values, shifts_by_deal(results, above, 1.0))


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
    luck, _ = seat_residuals(results, subtract_seat_means(points.values, [True] * len(results)))
    sums = sums_by_seat(results, luck)
    taken = []
    for result, own in zip(results, luck, strict=True):
        others = tables.get(result.deal, 1) - 1
        part = part_to_subtract(others, deal_share) / max(others, 1)
        taken.append(tuple(part * (sums[result.deal, seat] - value) for seat, value in enumerate(own)))
    values = [
        tuple(value - off for value, off in zip(own, less, strict=True))
        for own, less in zip(points.values, taken, strict=True)
    ]
    return CorrectedPoints(values, _add_shifts(points.common_shifts, shifts_by_deal(results, taken, 1.0)))


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


def _add_shifts(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {deal: one.get(deal, 0.0) + other.get(deal, 0.0) for deal in dict.fromkeys((*one, *other))}


def subtract_seat_means(values: SeatValues, counts: Sequence[bool]) -> SeatValues:
    """Return each value minus the mean at its seat, and 0 in matches that do not count."""
    means = _seat_means(
        (len(own), seat, value)
        for own, is_in in zip(values, counts, strict=True)
        for seat, value in enumerate(own)
        if is_in
    )
    return [
        tuple(value - means[len(own), seat] if is_in else 0.0 for seat, value in enumerate(own))
        for own, is_in in zip(values, counts, strict=True)
    ]


def shifts_by_deal(
    results: Sequence[LoggedResult], above: SeatValues, coefficient: float
) -> dict[str, float]:
    """Return what each deal contributes to the mean of all values because of the mean that was subtracted."""
    count = sum(map(len, above))
    shifts: dict[str, float] = defaultdict(float)
    for result, off in zip(results, above, strict=True):
        shifts[deal_name(result)] += coefficient * add_up(off) / count
    return shifts


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
    left, _ = seat_residuals(results, subtract_seat_means(values, [True] * len(results)))
    return add_up(value * value for own in left for value in own)


def _seat_means(values: Iterable[tuple[int, int, float]]) -> dict[tuple[int, int], float]:
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for key, seat, value in values:
        sums[key, seat][0] += value
        sums[key, seat][1] += 1
    return {key: total / count for key, (total, count) in sums.items()}


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
