"""Builds the published table of a season."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.student_t import CONFIDENCE
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import Schedule, SoFar, list_walk_overs
from seatwise_server.competition.standings.ranking import StandingsRow, rank_entrants, standings_in_order
from seatwise_server.competition.statistics.anytime_test import (
    AnytimeTest,
    TrialVerdict,
    summarize_differences,
)
from seatwise_server.league.rules import criteria_of, schedule_of
from seatwise_server.league.settings import BELOW_HALF, League

DIGITS = 6
"""The number of decimal places. Further digits may differ between versions of Python."""

Row: TypeAlias = dict[str, Any]
"""The row of one entrant, as plain values."""


def standings_of(league: League, so_far: SoFar) -> dict[str, Any]:
    """Return the published table as plain values, the same on every machine."""
    schedule = schedule_of(league)
    table: dict[str, Any] = {
        "league": league.name,
        "settings": League.from_json(league.to_published_json()).digest,
        "matches": len(so_far.results),
        "tie_breaks": list(criteria_of(league)),
        "rows": rows_of(league, schedule, so_far),
    }
    return table | _verdict_values(schedule, so_far)


def rows_of(league: League, schedule: Schedule, so_far: SoFar) -> list[Row]:
    """Return the row of each entrant, the best first."""
    names = {each.player: each.name for each in league.entrants}
    return [_published_row(line, names[line.bot]) for line in _rank_rows(league, schedule, so_far)]


def _rank_rows(league: League, schedule: Schedule, so_far: SoFar) -> tuple[StandingsRow, ...]:
    byes = schedule.list_byes(so_far)
    results = [result for table, result in so_far.results.items() if table not in so_far.left]
    lost = list_walk_overs(so_far)
    if isinstance(schedule, Knockout):
        by_absent = [(absent, absent) for absent in lost.values()]
        return standings_in_order(results, schedule.final_order(so_far), byes, by_absent)
    walk_overs = Counter(bot for absent in lost.values() for bot in absent)
    gone = _find_gone(results, walk_overs) if league.withdrawals == BELOW_HALF else set[str]()
    stay = [result for result in results if gone.isdisjoint(result.bots)]
    missed = [
        (match.bots if gone.isdisjoint(match.bots) else lost[match.id], lost[match.id])
        for match in (schedule.known_matches(so_far) if lost else ())
        if match.id in lost
    ]
    return rank_entrants(stay, league.players, criteria_of(league), byes, league.seed, missed, gone)


def _find_gone(results: Iterable[LoggedResult], walk_overs: Mapping[str, int]) -> set[str]:
    """Return the bots that lost more matches by walk-over than they played."""
    played = Counter(bot for result in results for bot in set(result.bots))
    return {bot for bot, lost in walk_overs.items() if played[bot] < lost}


def _published_row(line: StandingsRow, name: str) -> Row:
    return {
        "rank": line.rank,
        "name": name,
        "player": line.bot,
        "matches": line.matches,
        "points": round(line.points, DIGITS),
        "score": round(line.score, DIGITS),
        "wins": round(line.wins, DIGITS),
        "byes": line.byes,
        "forfeits": line.forfeits,
        "resigned": line.resigned,
        "walk_overs": line.walk_overs,
    }


def _verdict_values(schedule: Schedule, so_far: SoFar) -> dict[str, Any]:
    """Return the verdict of an A-against-B test with its figures; empty for any other format."""
    if not isinstance(schedule, ABTest):
        return {}
    differences = schedule.unit_differences(so_far)
    ratios, verdict = schedule.test.run_test(differences)
    ratio = round(ratios[-1], DIGITS) if ratios else 0.0
    return {
        "verdict": str(verdict),
        "units": len(ratios),
        "log_likelihood_ratio": ratio,
        "has_too_few": schedule.test.has_too_few(differences[: len(ratios)]),
        **_evidence_values(schedule.test, differences[: len(ratios)]),
    }


def _evidence_values(test: AnytimeTest, differences: Sequence[float]) -> dict[str, Any]:
    """Return the figures of a test: the logs of its evidence, and the difference with its interval."""
    if not differences:
        return {}
    last = test.trace_evidence(differences)[-1]
    found = summarize_differences(differences)
    ends = [round(end, DIGITS) if math.isfinite(end) else None for end in found.interval(1 - CONFIDENCE)]
    return {
        "log_evidence_h1": round(last.for_h1, DIGITS),
        "log_evidence_h0": round(last.for_h0, DIGITS),
        "difference": round(found.mean, DIGITS),
        "difference_interval": ends,
    }


# Texts for people

LEAGUE_COLUMNS = {"matches": "matches", "points": "mean points", "score": "ahead of", "wins": "wins"}
RARE = {"byes": "byes", "forfeits": "forfeits", "resigned": "resigned", "walk_overs": "walk-overs lost"}
"""Columns that are shown only if an entrant has a value other than 0."""


def describe_verdict(league: League, standings: Mapping[str, Any]) -> str:
    """Return the verdict of an A-against-B test as a sentence; empty for any other format."""
    if "verdict" not in standings:
        return ""
    points = league.trial.least_points
    units = standings["units"]
    a, b = (each.name for each in league.entrants)
    match standings["verdict"]:
        case TrialVerdict.H1:
            return f"After {units} units the test accepts H1: {a} makes more points than {b}."
        case TrialVerdict.H0:
            return f"After {units} units the test accepts H0: {a} does not make {points:g} points a match more than {b}."
    if standings.get("has_too_few"):
        return f"After {units} units there are too few different deals to decide."
    return f"After {units} units the test has no verdict."


def column_heads(standings: Mapping[str, Any]) -> list[str]:
    """Return the heads of the columns after rank and name."""
    return [*LEAGUE_COLUMNS.values(), *(RARE[key] for key in _rare_columns(standings))]


def row_cells(standings: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """Return the texts of a row for these columns."""
    shown = [str(row["matches"]), f"{row['points']:.2f}", f"{100 * row['score']:.1f} %", f"{row['wins']:g}"]
    return shown + [str(row[key]) for key in _rare_columns(standings)]


def _rare_columns(standings: Mapping[str, Any]) -> list[str]:
    return [key for key in RARE if any(row[key] for row in standings["rows"])]
