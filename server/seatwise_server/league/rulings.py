"""The decisions of an organiser between two runs of a league. None changes a result, and each is published with its reason."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seatwise.errors import UsageError
from seatwise_server.competition.schedules.schedule import list_walk_overs
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


def annul_walk_over(folder: Path, table: str, why: str) -> None:
    """Log that no bot loses this match by walk-over; the next run plays it again.

    Raises `UsageError` if it is not lost by walk-over, or if the draw of a later round rests on it.
    """
    settings, season = season_log.read_season(folder)
    league = league_in(folder, settings)
    with closing(season_log.open_season_log(folder, league, season.league)) as book:
        lost = list_walk_overs(book.season.so_far)
        if table not in lost:
            there = f"lost by walk-over: {', '.join(lost)}" if lost else "no match is lost by walk-over"
            raise UsageError(f"{table!r} is not lost by walk-over in this league; {there}")
        if league.format in ("swiss", "knockout") and _has_later_round(book.season, table):
            raise UsageError(
                f"a later round was drawn after {table}; `league run --stop-at-walk-over` ends before that"
            )
        book.annul_walk_over(table, why)


def _has_later_round(season: season_log.Season, table: str) -> bool:
    own = _round_of(table)
    tables = (*season.results, *(void.table for void in season.voids))
    return any(_round_of(each) > own for each in tables) or any(number > own for number in season.draws)


def _round_of(table: str) -> int:
    return int(table.partition("-")[0].removeprefix("r"))
