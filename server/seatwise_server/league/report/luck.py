"""Corrects points for the luck of the deal: by what a house bot made of the same cards, and by the other tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.luck_correction import (
    DEAL_VARIANCE_SHARE,
    DEAL_VARIANCE_SHARE_AFTER_PAR,
    PAR_COEFFICIENT,
    CorrectedPoints,
    add_par,
    correct_by_other_tables,
    correct_by_par,
    fit_par_coefficient,
    remaining_variance,
    uncorrected_points,
)
from seatwise_server.competition.statistics.luck_correction_version_1 import correct_by_other_tables_version_1
from seatwise_server.league.par import PAR_BOTS, par_of
from seatwise_server.league.settings import League

MOST_PAR_MATCHES = 2000
"""The most matches for which par is played. More would delay the page for too long."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """Points that are corrected for the luck of the deal."""

    points: CorrectedPoints
    how: str
    """The value that was subtracted, in words."""
    left: float
    """The share of the variance of single matches that remains."""


def correct_for_luck(
    league: League, results: Sequence[LoggedResult], records: Mapping[str, str]
) -> list[Corrected]:
    """Return the corrections that can be made, the best one last. No coefficient can favour a bot."""
    found: list[Corrected] = []
    game, is_old = league.game, league.statistics_version == 1
    if has_par(game, results, records):
        results = add_par(results, lambda result: par_of(json.loads(records[result.match])))
        part = PAR_COEFFICIENT if is_old else fit_par_coefficient(results)
        how = f"{part:.2g} of the score of {PAR_BOTS[game]} at the same seat of the same deal"
        found.append(_make_corrected(results, correct_by_par(results, part), how))
    before, share = (
        (found[-1].points, DEAL_VARIANCE_SHARE_AFTER_PAR)
        if found
        else (uncorrected_points(results), DEAL_VARIANCE_SHARE)
    )
    by_other_tables = correct_by_other_tables_version_1 if is_old else correct_by_other_tables
    travelled = by_other_tables(results, before, share)
    if travelled.values != before.values:
        what = "scores" if is_old else "scores above what their bots explain"
        also = (
            f"{found[-1].how}, and a part of the other tables' {what} there"
            if found
            else f"a part of the other tables' {what} at the same seat of the same deal"
        )
        found.append(_make_corrected(results, travelled, also))
    return found


def has_par(game: str, results: Sequence[LoggedResult], records: Mapping[str, str]) -> bool:
    """Return whether all deals are known, and there are few enough of them to play par."""
    return (
        game in PAR_BOTS
        and len(results) <= MOST_PAR_MATCHES
        and all(result.match in records for result in results)
    )


def _make_corrected(results: Sequence[LoggedResult], points: CorrectedPoints, how: str) -> Corrected:
    return Corrected(points, how, remaining_variance(results, points))
