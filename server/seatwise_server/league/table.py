"""The table of a season, as it is published."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from seatwise_server.competition.results import Result
from seatwise_server.competition.tables import tallies
from seatwise_server.league.settings import League


def standings_of(league: League, results: Mapping[str, Result], voids: Collection[str]) -> dict[str, Any]:
    """Plain values, the same on every machine."""
    found = tallies(list(results.values()))
    rows = sorted(
        ((found[each.player].points if each.player in found else 0.0, each.name) for each in league.entrants),
        reverse=True,
    )
    return {
        "league": league.name,
        "rows": [{"rank": i, "name": n, "mean_points": p} for i, (p, n) in enumerate(rows, 1)],
    }
