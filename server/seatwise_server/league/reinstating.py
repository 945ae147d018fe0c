"""Readmits an entrant that a league gave up. Its lost matches stay lost: no result is changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seatwise.errors import UsageError
from seatwise_server.league import season_log
from seatwise_server.league.publishing import league_in
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season import is_over
from seatwise_server.league.settings import League


def reinstate_entrant(folder: Path, name: str, why: str) -> None:
    """Log that the entrant is readmitted; the next run starts it.

    Raises `UsageError` if it was not given up, or if the season is over.
    """
    settings, season = season_log.read_season(folder)
    league = league_in(folder, settings)
    with closing(season_log.open_season_log(folder, league, season.league)) as book:
        book.let_entrant_back(_given_up(league, book.season, name), why)


def _given_up(league: League, season: season_log.Season, name: str) -> str:
    """Return the player of the entrant with this name, which was given up."""
    out = {each.name: each.player for each in league.entrants if each.player in season.given_up}
    if name not in out:
        there = f"given up: {', '.join(out)}" if out else "no entrant is given up"
        raise UsageError(f"{name!r} was not given up in this league; {there}")
    if is_over(schedule_of(league), season):
        raise UsageError("the season is over, and its results are final")
    return out[name]
