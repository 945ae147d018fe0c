"""Builds the sections about the statistics of competition/: how certain the figures are, and whether the season was fair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from markupsafe import Markup

from seatwise.replay.frame_builder import join_names
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.student_t import CONFIDENCE
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.schedule import (
    Schedule,
    ScheduledMatch,
    SoFar,
    list_walk_over_meetings,
)
from seatwise_server.competition.statistics.anytime_test import summarize_differences
from seatwise_server.competition.statistics.fairness import FairnessReport, check_fairness
from seatwise_server.competition.statistics.season_statistics import (
    Estimate,
    bootstrap_orders,
    compare_pairs,
    estimate_differences,
    estimate_entrant_means,
    follow_differences,
)
from seatwise_server.league.report.facts import Facts
from seatwise_server.league.report.figures import Whisker, draw_curves, draw_whiskers
from seatwise_server.league.report.luck import correct_for_luck
from seatwise_server.league.table import describe_verdict

AT_EVERY_LOOK = (
    "These intervals hold however often somebody looks, and whenever somebody stops. Those that hold for one look, after the last "
    "match, follow when the season is over. The price: to tell two bots apart takes about 1.2 times the matches of a fixed sample on average. "
    "Four of five seasons tell them apart within 1.7 times."
)
ROUND_FORMATS = ("swiss", "knockout")
"""The formats whose pairings follow results: there a round is one unit."""
MOST_ORDERS = 5
MOST_CERTAIN = 0.9995
MOST_FAVOURS = 8
LEVEL = 0.005
LESS_LUCK = "Mean points a match, corrected for the luck of the deal, with 95 % intervals"
PARTS = "The parts are the same in all seasons. The standings use uncorrected points."
ROTATED = "All bots had the same cards at every seat, so the means above contain no luck of the deal."
UNMET = "-"
YES_NO = {True: "yes", False: "no"}
T = TypeVar("T")


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


def extra_sections(
    schedule: Schedule, facts: Facts, so_far: SoFar, due: Sequence[ScheduledMatch] = ()
) -> list[Section]:
    """Return the sections that apply to this season. `due` are the matches that may yet be played, while it runs."""
    results = list(so_far.results.values())
    if not results:
        return []
    sections: list[Section] = []
    if isinstance(schedule, ABTest):
        sections.append(Section("test", "The test", (_test_part(schedule, facts, so_far),)))
    is_last_look = facts.is_last_look(due)
    parts = _last_look_parts(facts, results) if is_last_look else _running_parts(facts, so_far, due)
    if statistics := tuple(parts):
        sections.append(Section("statistics", "How certain the figures are", statistics))
    meetings = [*results, *list_walk_over_meetings(schedule, so_far)]
    found = check_fairness(meetings, facts.timed_answers())
    parts = fairness_parts(found, facts.names, _name_owners(facts))
    return [*sections, Section("fairness", "Fairness checks", parts)]


def _last_look_parts(facts: Facts, results: Sequence[LoggedResult]) -> Iterable[Part]:
    """Yield the figures that hold for one look, after the last match."""
    yield _means_part(facts, results)
    yield from _luck_parts(facts, results)
    yield _differences_part(facts, results)
    yield _pairs_part(facts, results)
    yield _orders_part(facts, results)


def _means_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    means = estimate_entrant_means(results)
    return Part(
        title="Points a match",
        plot=_draw_means("Mean points a match with 95 % intervals", means, facts),
        notes=("Matches on the same deal are not independent: each deal counts as one observation.",),
    )


def _draw_means(title: str, means: Mapping[str, Estimate], facts: Facts) -> Markup:
    rows = [_make_whisker(facts.names[player], means[player]) for player in facts.order if player in means]
    return draw_whiskers(title, rows, "points a match")


def _luck_parts(facts: Facts, results: Sequence[LoggedResult]) -> Iterable[Part]:
    found = correct_for_luck(facts.league, results, facts.records)
    if not found:
        return
    best = found[-1]
    means, plain = estimate_entrant_means(results, best.points), estimate_entrant_means(results)
    is_level = all(abs(means[player].value - plain[player].value) < LEVEL for player in means)
    told = "Minus {}: {:.0f} % of the variance of single matches remains."
    yield Part(
        title="Corrected for the luck of the deal",
        words=tuple(told.format(each.how, 100 * each.left) for each in found),
        plot=None if is_level else _draw_means(LESS_LUCK, means, facts),
        notes=(ROTATED, PARTS) if is_level else (PARTS,),
    )


def _running_parts(facts: Facts, so_far: SoFar, due: Sequence[ScheduledMatch]) -> Iterable[Part]:
    """Yield the differences as they may be read while the season runs. An A-B test has its own."""
    if not due or facts.league.format == "ab-test":
        return
    by_round = facts.league.format in ROUND_FORMATS
    found = follow_differences(so_far.results, [match.id for match in due], by_round=by_round)
    rows = []
    for pair, own in _in_order(facts, found):
        ends, is_told = own.interval(1 - CONFIDENCE), bool(own.find_side(0.0, 1 - CONFIDENCE))
        rows.append((pair, f"{own.mean:+.2f}", _format_ends(*ends), str(own.count), YES_NO[is_told]))
    units = "rounds" if by_round else "deals"
    yield Part(
        title="Differences at every look",
        words=(AT_EVERY_LOOK,),
        heads=("pair", "points a match", "95 % at every look", units, "distinguishable"),
        rows=tuple(rows),
        notes=("Rounds count in their order, up to the first one that is not complete.",),
    )


def _in_order(facts: Facts, found: Mapping[tuple[str, str], T]) -> Iterable[tuple[str, T]]:
    """Yield what was found of each pair, with the words for it, in the order of the standings."""
    for one, other in combinations(facts.order, 2):
        if (own := found.get((one, other))) is not None:
            yield f"{facts.names[one]} less {facts.names[other]}", own


def _format_ends(low: float, high: float) -> str:
    return f"{low:+.2f} to {high:+.2f}" if math.isfinite(low + high) else "too few: none"


def _differences_part(facts: Facts, results: Sequence[LoggedResult]) -> Part:
    rows = []
    for pair, own in _in_order(facts, estimate_differences(results)):
        ends = f"{own.low:+.2f} to {own.high:+.2f}" if math.isfinite(own.standard_error) else "one deal: none"
        is_told = own.low > 0 or own.high < 0
        rows.append((pair, f"{own.value:+.2f}", ends, str(own.clusters), YES_NO[is_told]))
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
    course = test.trace_evidence(differences[: len(ratios)])
    found = summarize_differences(differences[: len(ratios)])
    a, b = facts.names[schedule.a], facts.names[schedule.b]
    most = 2 * math.log(1 / min(test.alpha, test.beta))  # beyond this the test has long been decided
    needed = math.log(1 / test.alpha)
    series = {
        "for H1": [(unit, max(-most, min(most, each.for_h1))) for unit, each in enumerate(course, 1)],
        "for H0": [(unit, max(-most, min(most, each.for_h0))) for unit, each in enumerate(course, 1)],
        "needed": [(1, needed), (len(ratios), needed)] if ratios else [],
    }
    told = {"verdict": verdict, "units": len(ratios), "has_too_few": test.has_too_few(differences)}
    return Part(
        words=(
            f"H1: {a} makes more points than {b}. H0: {a} does not make {test.least_points:g} points a match more.",
            describe_verdict(facts.league, told),
            f"{a} makes {found.mean:+.2f} points a match more; 95 % interval {_format_ends(*found.interval(1 - CONFIDENCE))}.",
        ),
        plot=draw_curves("Course of the test", series, "log of the evidence", "units, each on one deal"),
        notes=(
            f"alpha {test.alpha:g}, beta {test.beta:g}; a unit is all matches of the two on one deal. Units are evaluated in their order.",
            "Test and interval hold at every look, so it makes no difference to them when the test ended.",
        ),
    )


def fairness_parts(
    found: FairnessReport, names: Mapping[str, str], told: Iterable[str] = ()
) -> tuple[Part, ...]:
    """Return the parts of a report on fairness: first `told` and a sentence for each remarkable figure, then the figures.

    `names` are what the page calls each bot.
    """
    remarks = [_replace_names(remark, names) for remark in found.list_remarks()]
    verdict = Part(
        words=(*told, *(remarks or ["No figure is remarkable."])),
        notes=(
            "This is a report, not a verdict. Chance alone makes each check name something in at most one of twenty honest seasons.",
        ),
    )
    return (verdict, *_favour_parts(found, names), *_seat_bias_parts(found), *_timing_parts(found, names))


def _name_owners(facts: Facts) -> Iterable[str]:
    """Yield a sentence for each owner of several entrants, who may help each other."""
    entrants = facts.league.entrants
    for owner in sorted({each.owner for each in entrants if each.owner}):
        names = [each.name for each in entrants if each.owner == owner]
        if len(names) > 1:
            yield f"{join_names(names)} have one owner, {owner}."


def _favour_parts(found: FairnessReport, names: Mapping[str, str]) -> Iterable[Part]:
    rows = [
        (f"{names[each.taker]} where {names[each.giver]} sits", f"{each.gain:+.2f}", f"{each.low:+.2f} to {each.high:+.2f}",
         str(each.matches), each.found_by, f"{each.corrected_p_value:.3f}")
        for each in found.favours[:MOST_FAVOURS]
    ]  # fmt: skip
    if rows:
        yield Part(
            title="Pairs: results at the tables of another bot",
            heads=("", "points a match", "95 % interval", "matches", "most surprising", "p, corrected"),
            rows=tuple(rows),
            notes=(
                "Points beyond the bot's strength. Each pair is tested by points and by places, in all of its matches and in each quarter of "
                "them. p is the probability that chance gives as much to some pair by some test. The most surprising pair comes first.",
            ),
        )


def _seat_bias_parts(found: FairnessReport) -> Iterable[Part]:
    for each in found.seat_bias:
        gains = ", ".join(f"seat {seat} {gain:+.2f}" for seat, gain in enumerate(each.gains))
        yield Part(
            title=f"Seats at tables of {len(each.gains)}",
            words=(f"Points a match above the mean seat: {gains}; p = {each.p_value:.3f}.",),
        )


def _timing_parts(found: FairnessReport, names: Mapping[str, str]) -> Iterable[Part]:
    rows = [
        (names[each.bot], f"{each.mean_ms:.1f}", f"{each.low_ms:.1f} to {each.high_ms:.1f}",
         f"{each.worst.over_ms:.1f} in {each.worst.match}", str(each.answers), f"{each.corrected_p_value:.3f}")
        for each in found.clock_bias
    ]  # fmt: skip
    if rows:
        yield Part(
            title="The referee's clock compared with the bots' own",
            heads=("", "ms charged beyond its report", "95 % interval", "largest", "answers", "p, corrected"),
            rows=tuple(rows),
            notes=(
                "Only for bots that report their own times; no other source confirms them. p is the probability that chance sets some bot this far apart from the others.",
            ),
        )


def _replace_names(remark: str, names: Mapping[str, str]) -> str:
    for player in sorted(names, key=len, reverse=True):  # versions/12 before versions/1
        remark = remark.replace(player, names[player])
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
