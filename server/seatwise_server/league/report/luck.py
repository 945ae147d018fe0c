"""Corrects points for the luck of the deal: by what a house bot made of the same cards, and by the other tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatwise.kits import KITS
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.luck_correction import (
    DEAL_VARIANCE_SHARE,
    DEAL_VARIANCE_SHARE_AFTER_PAR,
    DEAL_VARIANCE_SHARE_AFTER_PLAYOUTS,
    DRAWS_PART,
    PAR_COEFFICIENT,
    PAR_PART,
    PLAYOUTS_PART,
    CorrectedPoints,
    SeatValues,
    correct_by_measures,
    correct_by_other_tables,
    remaining_variance,
    uncorrected_points,
)
from seatwise_server.league.par import draw_luck_of, par_of, playouts_of
from seatwise_server.league.settings import League

MOST_PAR_MATCHES = 2000
"""The most matches for which par and playouts are played. More would delay the page for too long."""
MOST_DRAW_MATCHES = 500
"""The most matches for which the luck of draws is measured, which takes ten times as long."""
SAME_CARDS = "at the same seat of the same deal"


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
    by_house = _correct_by_house(league, results, records)
    points = by_house.points if by_house else uncorrected_points(results)
    travelled = correct_by_other_tables(results, points, _deal_share(league, by_house))
    found = [by_house] if by_house else []
    if travelled.values != points.values:
        first, where = (f"{by_house.how}, and ", "there") if by_house else ("", SAME_CARDS)
        how = f"{first}a part of the other tables' scores above what their bots explain {where}"
        found.append(_make_corrected(results, travelled, how))
    return found


def _correct_by_house(
    league: League, results: Sequence[LoggedResult], records: Mapping[str, str]
) -> Corrected | None:
    """Return the correction by what house bots make of the same cards; `None` if that is not known, or would take too long."""
    who = KITS[league.game].par_bot
    if not who or len(results) > MOST_PAR_MATCHES or any(result.match not in records for result in results):
        return None
    read = [json.loads(records[result.match]) for result in results]
    measures = [[par_of(record) or () for record in read]]
    if not KITS[league.game].playouts_module:
        how = f"{PAR_COEFFICIENT} of the score of {who} {SAME_CARDS}"
        return _make_corrected(results, correct_by_measures(results, measures, [PAR_COEFFICIENT]), how)
    measures.append([playouts_of(record) or () for record in read])
    parts = [PAR_PART, PLAYOUTS_PART]
    how = f"{PAR_PART} of the score of {who} and {PLAYOUTS_PART} of the mean score of playouts {SAME_CARDS}"
    if draws := _draws_of(results, read):
        measures.append(draws)
        parts.append(DRAWS_PART)
        how += f", and {DRAWS_PART} of the luck of draws that bots left to the referee"
    return _make_corrected(results, correct_by_measures(results, measures, parts), how)


def _draws_of(results: Sequence[LoggedResult], records: Sequence[Mapping[str, Any]]) -> SeatValues:
    """Return the luck of draws by match and seat; nothing if there are no draws, or too many matches."""
    found = [draw_luck_of(record) for record in records] if len(results) <= MOST_DRAW_MATCHES else []
    if not any(found):
        return []
    return [luck or (0.0,) * len(result.bots) for luck, result in zip(found, results, strict=True)]


def _deal_share(league: League, by_house: Corrected | None) -> float:
    """Return the deal's share of the variance that is left."""
    if by_house is None:
        return DEAL_VARIANCE_SHARE
    has_playouts = KITS[league.game].playouts_module
    return DEAL_VARIANCE_SHARE_AFTER_PLAYOUTS if has_playouts else DEAL_VARIANCE_SHARE_AFTER_PAR


def _make_corrected(results: Sequence[LoggedResult], points: CorrectedPoints, how: str) -> Corrected:
    return Corrected(points, how, remaining_variance(results, points))
