"""Lets an entrant back into a league that gave it up. What it has lost stays lost: no result is touched."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seatwise.bot_errors import UsageError
from seatwise_server.league import season_log
from seatwise_server.league.publishing import league_in
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season import is_over
from seatwise_server.league.settings import League


def reinstate(folder: Path, name: str, why: str) -> None:
    """Notes it in the season log, where anybody sees it; the next run starts it. `UsageError` where that cannot be."""
    settings, season = season_log.season_in(folder)
    league = league_in(folder, settings)
    with closing(season_log.opened(folder, league, season.league)) as book:
        book.let_back(_given_up(league, book.season, name), why)


def _given_up(league: League, season: season_log.Season, name: str) -> str:
    """The player of that name, whom a substitute resigns for."""
    out = {each.name: each.player for each in league.entrants if each.player in season.given_up}
    if name not in out:
        there = f"given up: {', '.join(out)}" if out else "no entrant is given up"
        raise UsageError(f"{name!r} was not given up in this league; {there}")
    if is_over(schedule_of(league), season):
        raise UsageError("the season is over, and its results are final")
    return out[name]
