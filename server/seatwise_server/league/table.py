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
        (
            (found[each.player].points if each.player in found else 0.0, each.name, each.player)
            for each in league.entrants
        ),
        reverse=True,
    )
    return {
        "league": league.name,
        "rule": "By mean points.",
        "heads": ["mean points"],
        "rows": [
            {"rank": i, "name": n, "player": pl, "mean_points": p, "cells": [f"{p:.2f}"]}
            for i, (p, n, pl) in enumerate(rows, 1)
        ],
    }
