"""How many matches it takes to tell two bots apart whose true difference is 2 points a match: plain, duplicate, luck-corrected.

    python tests/bench/matches_needed.py [--deals N] [--only WHAT] [--fit]

Everything is played here, by the referee's own rules, with fixed deals. A pair is told apart when a 95 % interval of its
difference leaves out 0, which it does in four of five seasons of the length given: that is (1.960 + 0.842)² V / 2² matches of
each of the two, V being the variance of the difference per match. Figures come with 95 % intervals, by drawing the deals anew.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from random import Random
from statistics import fmean, variance
from typing import NamedTuple

from seatwise import Card, View
from seatwise.bot import BotFactory
from seatwise.kits.ugo.match_luck import mean_playout_points
from seatwise.kits.ugo.samples import Greedy
from seatwise.local.table import LocalPlayer, LocalTable, local_time_control
from seatwise.samples import sample
from seatwise_referee.games.registry import GAMES
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import deal_seed_of_set
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.competition.statistics.luck_correction import (
    DEAL_VARIANCE_SHARE,
    DEAL_VARIANCE_SHARE_AFTER_PAR,
    DEAL_VARIANCE_SHARE_AFTER_PLAYOUTS,
    PAR_COEFFICIENT,
    PAR_GUESS,
    PAR_PRIOR_DEALS,
    PLAYOUTS_GUESS,
    CorrectedPoints,
    correct_by_measures,
    correct_by_other_tables,
    correct_by_par,
    fit_luck_parts,
    fit_par_coefficient,
    remaining_variance,
    uncorrected_points,
)

GAME = GAMES["ugo"]
DIFFERENCE = 2.0
CERTAINTY = (1.960 + 0.842) ** 2
DRAWS = 400
FIELD = ("greedy", "greedy-5", "greedy-10", "greedy-20", "greedy-30", "greedy-50", "random", "random-2")

Units = Sequence[tuple[float, ...]]


# Bots and matches


def bot_of(name: str) -> BotFactory:
    """A sample; with a number behind it, `greedy` that plays so many of a hundred cards at random."""
    kind, _, number = name.partition("-")
    if kind != "greedy" or not number:
        return sample(kind)
    return partial(Careless, int(number) / 100)


class Careless(Greedy):
    def __init__(self, part: float) -> None:
        self._part = part

    def choose(self, view: View) -> Card:
        if self.chance.random() < self._part:
            return self.chance.choice(view.legal_cards)
        return super().choose(view)


def played(deal: str, match: str, names: Sequence[str], lot: str = "") -> tuple[int, ...]:
    """The points by seat; chance of bots follows from the match, or from `lot` if it is given, and the cards from the deal."""
    return _table(deal, match, names, lot).play_match().points


def _table(deal: str, match: str, names: Sequence[str], lot: str = "") -> LocalTable:
    setup = Setup(
        match=f"matches/{match}",
        game=GAME.name,
        rules_version=GAME.rules_version,
        options=GAME.complete_options({}),
        bots=tuple(f"bots/{name}/versions/{seat}" for seat, name in enumerate(names)),
        time_control=local_time_control(GAME.name),
        seed=sha256(f"match/{match}".encode()).digest(),
        durability="none",
        deal_set=DealSet("sets/bench", 1, 1, seed_of(deal)),
    )
    players = [
        LocalPlayer(name, bot_of(name), bytes(32), Random(f"{lot or match}/{seat}"))
        for seat, name in enumerate(names)
    ]
    return LocalTable(setup, players, _failed, lambda value: value)


def seed_of(deal: str) -> bytes:
    return sha256(f"deal/{deal}".encode()).digest()


def _failed(failure: object) -> None:
    raise RuntimeError(f"a bot failed: {failure}")


def par(deal: str, seats: int) -> tuple[int, ...]:
    """What the house's greedy bot scores at every seat: it draws no lots, so one match is enough."""
    return played(deal, "par", ["greedy"] * seats)


def playouts(deal: str, seats: int) -> tuple[float, ...]:
    """The mean points of playouts at every seat."""
    return mean_playout_points(seats, deal_seed_of_set(seed_of(deal)), GAME.complete_options({}))


class Season(NamedTuple):
    """A season of a league, and what playouts make of the deal of each match."""

    results: list[LoggedResult]
    playouts: list[tuple[float, ...]]

    @property
    def measures(self) -> list[list[tuple[float, ...]]]:
        return [[result.par for result in self.results], self.playouts]


# Two bots at one table


def head_to_head(
    deal: str, pair: tuple[str, str], seats: int, *, is_common: bool = False
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Par, and the points of all rotations of the table, each turned back to where the first bot's seat is first."""
    circle = (pair[0], pair[1]) if seats == 2 else (pair[0], "greedy", pair[1], "greedy")
    turned = []
    for by in range(seats):
        points = played(deal, f"{deal}/{by}", circle[by:] + circle[:by], deal if is_common else "")
        turned.append(points[seats - by :] + points[: seats - by])
    return par(deal, seats), turned


def at_one_table(pair: tuple[str, str], seats: int, deals: int, pool: ProcessPoolExecutor) -> list[Row]:
    names = [f"{'-'.join(pair)}/{seats}/{number}" for number in range(deals)]
    found = list(pool.map(partial(head_to_head, pair=pair, seats=seats), names, chunksize=4))
    other = seats // 2
    singles = [[points[0] - points[other] for points in turned] for _, turned in found]
    pars = [[own[-by] - own[(other - by) % seats] for by in range(seats)] for own, _ in found]
    slopes = [_slope(single, luck) for single, luck in zip(_centered(singles), _centered(pars), strict=True)]
    outs = list(pool.map(partial(playouts, seats=seats), names, chunksize=4))
    means = [[own[-by] - own[(other - by) % seats] for by in range(seats)] for own in outs]
    parts = _slopes(_flat(singles), [_flat(pars), _flat(means)])
    both = _lucky(_lucky(singles, pars, [parts[0]] * seats), means, [parts[1]] * seats)
    common = list(pool.map(partial(head_to_head, pair=pair, seats=seats, is_common=True), names, chunksize=4))
    shared = [[points[0] - points[other] for points in turned] for _, turned in common]
    return [
        Row("same table, plain", needed(_columns(singles), _single)),
        Row("same table, par", needed(_columns(_lucky(singles, pars, [PAR_COEFFICIENT] * seats)), _single)),
        Row(
            f"same table, par x {fmean(slopes):.2f}", needed(_columns(_lucky(singles, pars, slopes)), _single)
        ),
        Row(f"same table, par x {parts[0]:.2f}, playouts x {parts[1]:.2f}", needed(_columns(both), _single)),
        Row(f"same table, rotation of {seats}", needed(_columns(singles), partial(_mean_of_all, seats))),
        Row("the same, common chance", needed(_columns(shared), partial(_mean_of_all, seats))),
    ]


def _centered(deals: Sequence[Sequence[float]]) -> list[list[float]]:
    """The columns, each less its mean: what a seat is worth is no luck."""
    columns = [list(column) for column in zip(*deals, strict=True)]
    return [[value - fmean(column) for value in column] for column in columns]


def _slope(values: Sequence[float], lucks: Sequence[float]) -> float:
    """As `fit_par_coefficient` finds it in a season of one match on each of these deals."""
    squares = sum(luck * luck for luck in lucks)
    prior = PAR_PRIOR_DEALS * squares / len(lucks)
    both = sum(value * luck for value, luck in zip(values, lucks, strict=True))
    return (both + prior * PAR_COEFFICIENT) / (squares + prior)


def _flat(deals: Sequence[Sequence[float]]) -> list[float]:
    return [value for column in _centered(deals) for value in column]


def _slopes(values: Sequence[float], lucks: Sequence[Sequence[float]]) -> list[float]:
    """The least squares of two measures together, as a long season finds them."""
    (a, b), (_, d) = ([_product(one, other) for other in lucks] for one in lucks)
    p, q = (_product(values, luck) for luck in lucks)
    return [(p * d - q * b) / (a * d - b * b), (q * a - p * b) / (a * d - b * b)]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True))


def _lucky(
    singles: Sequence[Sequence[float]], pars: Sequence[Sequence[float]], slopes: Sequence[float]
) -> list[list[float]]:
    return [
        [single - slope * luck for single, luck, slope in zip(deal, off, slopes, strict=True)]
        for deal, off in zip(singles, pars, strict=True)
    ]


def _columns(deals: Sequence[Sequence[float]]) -> Units:
    return [tuple(deal) for deal in deals]


def _single(units: Units) -> float:
    """The variance of one match: within each rotation, so that what a seat is worth is none."""
    return fmean(variance(column) for column in zip(*units, strict=True))


def _mean_of_all(seats: int, units: Units) -> float:
    """That of a deal's mean, per match that it takes."""
    return seats * variance(map(fmean, units))


# Two bots of a league


def season(rounds: int, label: str, pool: ProcessPoolExecutor) -> Season:
    """A round robin of eight at tables of four, a deal of each round travelling to both tables."""
    matches = RoundRobin(FIELD, 4, rounds, seed=label).all_matches()
    deals = [f"{label}/{number}" for number in range(1, rounds + 1)]
    pars = dict(zip(deals, pool.map(partial(par, seats=4), deals, chunksize=4), strict=True))
    outs = dict(zip(deals, pool.map(partial(playouts, seats=4), deals, chunksize=4), strict=True))
    points = pool.map(partial(_played, label), matches, chunksize=4)
    results = [
        LoggedResult(
            seq, f"matches/{match.id}", match.bots, each, _ranks(each), ("COMPLETED",) * 4, "",
            f"{label}/{match.round}", tuple(map(float, pars[f"{label}/{match.round}"])),
        )
        for seq, (match, each) in enumerate(zip(matches, points, strict=True), 1)
    ]  # fmt: skip
    return Season(results, [outs[result.deal] for result in results])


def _played(label: str, match: ScheduledMatch) -> tuple[int, ...]:
    return played(f"{label}/{match.round}", f"{label}/{match.id}", match.bots)


def _ranks(points: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 + sum(other > own for other in points) for own in points)


def correct_by_house(played_season: Season) -> CorrectedPoints:
    """By par and by playouts, as a season of version 3 is."""
    results, measures = played_season.results, played_season.measures
    parts = fit_luck_parts(results, measures, (PAR_GUESS, PLAYOUTS_GUESS))
    return correct_by_measures(results, measures, parts)


def in_a_league(pair: tuple[str, str], played_season: Season) -> list[Row]:
    results = played_season.results
    corrected = correct_by_par(results, fit_par_coefficient(results))
    both = correct_by_house(played_season)
    designs: list[tuple[str, CorrectedPoints, Callable[[Units], float]]] = [
        ("league, plain", uncorrected_points(results), _apart),
        ("league, par", corrected, _apart),
        ("league, par and playouts", both, _apart),
        ("league, travelling", uncorrected_points(results), _paired),
        (
            "league, travelling, other tables",
            correct_by_other_tables(results, uncorrected_points(results), DEAL_VARIANCE_SHARE),
            _paired,
        ),
        ("league, travelling, par", corrected, _paired),
        (
            "league, travelling, par and other tables",
            correct_by_other_tables(results, corrected, DEAL_VARIANCE_SHARE_AFTER_PAR),
            _paired,
        ),
        ("league, travelling, par and playouts", both, _paired),
        (
            "league, travelling, par, playouts and other tables",
            correct_by_other_tables(results, both, DEAL_VARIANCE_SHARE_AFTER_PLAYOUTS),
            _paired,
        ),
    ]
    return [Row(name, needed(_by_deal(pair, results, points), rule)) for name, points, rule in designs]


def _by_deal(pair: tuple[str, str], results: Sequence[LoggedResult], points: CorrectedPoints) -> Units:
    found: dict[str, dict[str, float]] = {}
    for result, values in zip(results, points.values, strict=True):
        found.setdefault(result.deal, {}).update(zip(result.bots, values, strict=True))
    return [tuple(deal[bot] for bot in pair) for deal in found.values()]


def _apart(units: Units) -> float:
    """Each on deals of its own."""
    return float(sum(variance(column) for column in zip(*units, strict=True)))


def _paired(units: Units) -> float:
    """Both on the same deals."""
    return float(variance(one - other for one, other in units))


# How many


@dataclass(frozen=True)
class Needed:
    matches: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.matches:5.0f} ({self.low:.0f} to {self.high:.0f})"


@dataclass(frozen=True)
class Row:
    design: str
    needed: Needed


def needed(units: Units, spread: Callable[[Units], float]) -> Needed:
    """Matches of each bot, from the variance of a difference per match."""
    chance = Random(1)
    drawn = sorted(spread(chance.choices(units, k=len(units))) for _ in range(DRAWS))
    factor = CERTAINTY / DIFFERENCE**2
    return Needed(factor * spread(units), factor * drawn[DRAWS // 40], factor * drawn[-DRAWS // 40 - 1])


def show(title: str, rows: Sequence[Row]) -> None:
    print(f"\n{title}")
    for row in rows:
        part = row.needed.matches / rows[0].needed.matches
        print(f"  {row.design:42} {row.needed!s:22} {part:5.2f} of plain", flush=True)


def fit(played_season: Season) -> None:
    """The numbers that are fixed in competition/statistics/luck_correction.py, from deals that are used for nothing else."""
    results = played_season.results
    parts = fit_luck_parts(results, played_season.measures, (PAR_GUESS, PLAYOUTS_GUESS))
    print(f"par and playouts together: {parts[0]:.2f} and {parts[1]:.2f}")
    best = min(
        (remaining_variance(results, correct_by_par(results, part / 100)), part / 100)
        for part in range(0, 101, 5)
    )
    print(f"coefficient {best[1]:.2f} leaves {best[0]:.2f} of the variance")
    for name, points in (
        ("plain", uncorrected_points(results)),
        ("fitted par", correct_by_par(results, fit_par_coefficient(results))),
        ("par and playouts", correct_by_house(played_season)),
    ):
        left, share = min(
            (remaining_variance(results, correct_by_other_tables(results, points, part / 100)), part / 100)
            for part in range(0, 100, 5)
        )
        print(f"{name}: the deal's part is {share:.2f}, which leaves {left:.2f}")


PAIRS = (("greedy", "greedy-10"), ("greedy", "random"), ("counting", "greedy"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deals", type=int, default=200)
    names = ["-".join(pair) for pair in PAIRS]
    parser.add_argument("--only", choices=[*names, "league"], help="only this pair, or only the league")
    parser.add_argument("--fit", action="store_true", help="measure the fixed numbers anew")
    given = parser.parse_args()
    os.nice(5)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        if given.fit:
            fit(season(given.deals, "fit", pool))
            return
        print(f"UGO!, {given.deals} deals; matches of each bot, with 95 % intervals")
        for pair in PAIRS:
            if given.only not in (None, "-".join(pair)):
                continue
            for seats in (2, 4):
                show(f"{' and '.join(pair)}, {seats} seats", at_one_table(pair, seats, given.deals, pool))
        if given.only in (None, "league"):
            found = season(given.deals, "league", pool)
            part = fit_par_coefficient(found.results)
            left = remaining_variance(found.results, correct_by_par(found.results, part))
            both = remaining_variance(found.results, correct_by_house(found))
            print(
                f"\nin a league of {', '.join(FIELD)}, par x {part:.2f} leaves {left:.2f} of the variance of a match,"
                f" and par and playouts leave {both:.2f}"
            )
            for pair in (("greedy", "greedy-10"), ("greedy", "random"), ("greedy-20", "greedy-50")):
                show(f"{' and '.join(pair)}, 4 seats, tables apart", in_a_league(pair, found))


if __name__ == "__main__":
    main()
