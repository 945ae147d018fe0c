"""Builds the sections about the statistics of competition/: how certain the figures are, and whether the season was fair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.schedule import Schedule, SoFar
from seatwise_server.competition.statistics.bootstrap import bootstrap_orders
from seatwise_server.competition.statistics.estimate import Estimate
from seatwise_server.competition.statistics.fairness import FairnessReport, check_fairness
from seatwise_server.competition.statistics.season_statistics import (
    compare_pairs,
    estimate_differences,
    estimate_entrant_means,
)
from seatwise_server.competition.statistics.sprt import wald_bounds
from seatwise_server.league.report.facts import Facts
from seatwise_server.league.report.figures import Whisker, draw_curves, draw_whiskers
from seatwise_server.league.report.luck import correct_for_luck
from seatwise_server.league.table import describe_verdict

MOST_ORDERS = 5
MOST_CERTAIN = 0.9995
MOST_SOFT = 8
LEVEL = 0.005
LESS_LUCK = "Mean points a match, corrected for the luck of the deal, with 95 % intervals"
ROTATED = "All bots had the same cards at every seat, so the means above contain no luck of the deal."
UNMET = "-"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a section. Each of its fields may be empty."""

    title: str = ""
    words: tuple[str, ...] = ()
    plot: Markup | None = None
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    id: str
    title: str
    parts: tuple[Part, ...]


def extra_sections(schedule: Schedule, facts: Facts, so_far: SoFar) -> list[Section]:
    """Return the sections that apply to this season."""
    results = list(so_far.results.values())
    if not results:
        return []
    statistics = (
        _means_part(facts, results),
        *_luck_parts(facts, results),
        _differences_part(facts, results),
        _pairs_part(facts, results),
        _orders_part(facts, results),
    )
    sections = [
        Section("statistics", "How certain the figures are", statistics),
        Section(
            "fairness",
            "Fairness checks",
            _fairness_parts(facts, check_fairness(results, facts.timed_answers())),
        ),
    ]
    if isinstance(schedule, ABTest):
        sections.insert(0, Section("test", "The test", (_test_part(schedule, facts, so_far),)))
    return sections


def _means_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    means = estimate_entrant_means(results)
    rows = [_make_whisker(facts.names[player], means[player]) for player in facts.order if player in means]
    return Part(
        title="Points a match",
        plot=draw_whiskers("Mean points a match with 95 % intervals", rows, "points a match"),
        notes=("Matches on the same deal are not independent: each deal counts as one observation.",),
    )


def _luck_parts(facts: Facts, results: Sequence[LoggedResult]) -> Iterable[Part]:
    found = correct_for_luck(facts.league, results, facts.records)
    if not found:
        return
    best = found[-1]
    means, plain = estimate_entrant_means(results, best.points), estimate_entrant_means(results)
    rows = [_make_whisker(facts.names[player], means[player]) for player in facts.order if player in means]
    is_level = all(abs(means[player].value - plain[player].value) < LEVEL for player in means)
    yield Part(
        title="Corrected for the luck of the deal",
        words=tuple(
            f"Minus {each.how}: {100 * each.left:.0f} % of the variance of single matches remains."
            for each in found
        ),
        plot=None if is_level else draw_whiskers(LESS_LUCK, rows, "points a match"),
        notes=(
            *((ROTATED,) if is_level else ()),
            "All coefficients were fixed beforehand, on deals that were used for nothing else. The standings use uncorrected points.",
        ),
    )


def _differences_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    found = estimate_differences(results)
    rows = [
        (
            f"{facts.names[one]} less {facts.names[other]}",
            f"{own.value:+.2f}",
            _format_interval(own),
            str(own.clusters),
            _format_apart(own),
        )
        for place, one in enumerate(facts.order)
        for other in facts.order[place + 1 :]
        if (own := found.get((one, other))) is not None
    ]
    return Part(
        title="Differences on the same deals",
        heads=("pair", "points a match", "95 % interval", "deals", "distinguishable"),
        rows=tuple(rows),
        notes=(
            "Over all deals that both bots have played, at one table or at two. So the luck of the cards cancels out.",
        ),
    )


def _pairs_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    found = compare_pairs(results)

    def cell(one: str, other: str) -> str:
        pair = found.get((one, other))
        return UNMET if pair is None or one == other else _format_percent(pair.probability_better)

    rows = [(facts.names[one], *(cell(one, other) for other in facts.order)) for one in facts.order]
    return Part(
        title="The better of two",
        words=(
            "The probability, after this season and nothing else, that the bot of the row makes more points in the long run than the bot of the column.",
        ),
        heads=("", *(facts.names[player] for player in facts.order)),
        rows=tuple(rows),
    )


def _orders_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    found = bootstrap_orders(results, seed=facts.league.seed)
    places = tuple(f"place {place}" for place in range(1, len(found.bots) + 1))
    rows = [(facts.names[bot], *map(_format_percent, found.rank_probabilities[bot])) for bot in found.bots]
    likeliest = [
        f"{_format_percent(share)}: {', '.join(facts.names[bot] for bot in order)}"
        for order, share in found.likeliest_orders[:MOST_ORDERS]
    ]
    return Part(
        title="Final orders",
        words=("The probability of each place by mean points, from a bootstrap of the season's deals.",),
        heads=("", *places),
        rows=tuple(rows),
        notes=(f"{found.draws} draws of deals. The likeliest orders: {'; '.join(likeliest)}.",),
    )


def _test_part(schedule: ABTest, facts: Facts, so_far: SoFar) -> Part:
    test, differences = schedule.test, schedule.unit_differences(so_far)
    ratios, verdict = test.run_test(differences)
    low, high = wald_bounds(test.alpha, test.beta)
    a, b = facts.names[schedule.a], facts.names[schedule.b]
    drawn = [
        max(2 * low, min(2 * high, ratio)) for ratio in ratios
    ]  # beyond these bounds the test has long been decided
    steps = [(float(unit), ratio) for unit, ratio in enumerate(drawn, 1)]
    course = {"ratio": steps, "H1": _level_curve(high, ratios), "H0": _level_curve(low, ratios)}
    return Part(
        words=(
            f"H0: {a} makes no more points a match than {b}. H1: it makes {test.least_points:g} more.",
            describe_verdict(facts.league, {"verdict": verdict, "units": len(ratios)}),
        ),
        plot=draw_curves(
            "Course of the test", course, "log of the likelihood ratio", "units, each on one deal"
        ),
        notes=(
            f"alpha {test.alpha:g}, beta {test.beta:g}; a unit is all matches of the two on one deal. Units are evaluated in their order.",
        ),
    )


def _level_curve(value: float, ratios: Sequence[float]) -> list[tuple[float, float]]:
    return [(1, value), (len(ratios), value)] if ratios else []


def _fairness_parts(facts: Facts, found: FairnessReport) -> tuple[Part, ...]:
    remarks = [_replace_names(remark, facts) for remark in found.list_remarks()]
    verdict = Part(
        words=tuple(remarks) or ("No figure is remarkable.",),
        notes=(
            "This is a report, not a verdict. Chance alone makes each check name something in at most one of twenty honest seasons.",
        ),
    )
    return (verdict, *_soft_play_parts(facts, found), *_seat_bias_parts(found), *_timing_parts(facts, found))


def _soft_play_parts(facts: Facts, found: FairnessReport) -> Iterable[Part]:
    rows = [
        (
            f"{facts.names[each.bot]} where {facts.names[each.at_tables_of]} sits",
            f"{each.gain:+.2f}",
            f"{each.low:+.2f} to {each.high:+.2f}",
            str(each.matches),
            f"{each.corrected_p_value:.3f}",
        )
        for each in found.soft_play[:MOST_SOFT]
    ]
    if rows:
        yield Part(
            title="Soft play: results at the tables of another bot",
            heads=("", "points a match", "95 % interval", "matches", "p, corrected"),
            rows=tuple(rows),
            notes=(
                "Points beyond the bot's strength. p is the probability that chance gives as much to some pair. The most surprising pair comes first.",
            ),
        )


def _seat_bias_parts(found: FairnessReport) -> Iterable[Part]:
    for each in found.seat_bias:
        gains = ", ".join(f"seat {seat} {gain:+.2f}" for seat, gain in enumerate(each.gains))
        yield Part(
            title=f"Seats at tables of {len(each.gains)}",
            words=(f"Points a match above the mean seat: {gains}; p = {each.p_value:.3f}.",),
        )


def _timing_parts(facts: Facts, found: FairnessReport) -> Iterable[Part]:
    rows = [
        (
            facts.names[each.bot],
            f"{each.mean_ms:.1f}",
            f"{each.low_ms:.1f} to {each.high_ms:.1f}",
            f"{each.worst.over_ms:.1f} in {each.worst.match}",
            str(each.answers),
            f"{each.corrected_p_value:.3f}",
        )
        for each in found.clock_bias
    ]
    if rows:
        yield Part(
            title="The referee's clock compared with the bots' own",
            heads=("", "ms charged beyond its report", "95 % interval", "largest", "answers", "p, corrected"),
            rows=tuple(rows),
            notes=(
                "Only for bots that report their own times; no other source confirms them. p is the probability that chance sets some bot this far apart from the others.",
            ),
        )


def _replace_names(remark: str, facts: Facts) -> str:
    for player, name in facts.names.items():
        remark = remark.replace(player, name)
    return remark


def _make_whisker(name: str, own: Estimate) -> Whisker:
    if not math.isfinite(own.standard_error):
        return Whisker(name, own.value, own.value, own.value)
    return Whisker(name, own.value, own.low, own.high)


def _format_percent(share: float) -> str:
    """Format a share as a percentage. No share is shown as 0 % or 100 %, because nothing is certain after one season."""
    if share > MOST_CERTAIN:
        return "> 99.9 %"
    return "< 0.1 %" if share < 1 - MOST_CERTAIN else f"{100 * share:.1f} %"


def _format_interval(own: Estimate) -> str:
    return f"{own.low:+.2f} to {own.high:+.2f}" if math.isfinite(own.standard_error) else "one deal: none"


def _format_apart(own: Estimate) -> str:
    return "yes" if own.low > 0 or own.high < 0 else "no"
