"""Publishes a season: report, tables and bundle, all computed from the season log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatwise.errors import UsageError
from seatwise.output import writing_file
from seatwise_server.competition.schedules.schedule import list_walk_overs
from seatwise_server.competition.statistics.season_statistics import order_of_match
from seatwise_server.league import season_log, time_reports
from seatwise_server.league.report.page import render_report
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season import is_over
from seatwise_server.league.season_files import format_json, write_csv, write_season_bundle
from seatwise_server.league.settings import League, OtherVersion
from seatwise_server.league.table import describe_verdict, standings_of


@dataclass(frozen=True, slots=True)
class PublishedSeason:
    """The published files of a season."""

    standings: dict[str, Any]
    digest: str
    """The digest of the bundle; empty while the season goes on, because there is no bundle before its end."""
    verdict: str
    """The verdict of an A-against-B test; empty for any other format."""


def publish_season(folder: Path) -> PublishedSeason:
    """Write report, tables and bundle again. Raises `UsageError` if the folder holds no league."""
    settings, complete = season_log.read_season(folder)
    league = league_in(folder, settings)
    season = complete.without_running_deals()
    standings = standings_of(league, season.so_far)
    if withheld := len(complete.results) - len(season.results):
        standings |= {"withheld": withheld}
    _write(folder / "standings.json", format_json(standings))
    write_csv(folder, standings, season)
    schedule = schedule_of(league)
    digest = write_season_bundle(folder, league, season, standings) if is_over(schedule, complete) else ""
    reports = time_reports.read_time_reports(folder / "logs", league)
    last_write = datetime.fromtimestamp(season_log.log_path(folder).stat().st_mtime, UTC)
    page = render_report(league, season, schedule, standings, digest, reports, last_write)
    _write(folder / "report.html", page)
    return PublishedSeason(standings, digest, describe_verdict(league, standings))


def _write(path: Path, text: str) -> None:
    with writing_file(path) as file:
        file.write(text.encode())


def league_in(folder: Path, settings: dict[str, Any]) -> League:
    """Return the league as its season log describes it. Raises `UsageError` if the log is of another version."""
    try:
        return League.from_json(settings)
    except OtherVersion as other:
        raise UsageError(f"{folder}/season.jsonl: {other}") from None
    except (KeyError, TypeError, ValueError) as error:
        why = f"{folder}/season.jsonl was written by another version of seatwise: {error!r}"
        raise UsageError(why) from None


# The decisions of an organiser between two runs of a league. None changes a result, and each is published with its reason.


def reinstate_entrant(folder: Path, name: str, why: str) -> None:
    """Log that the entrant is readmitted; the next run starts it. Raises `UsageError` if it was not given up, or the season is over."""
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
            message = (
                f"a later round was drawn after {table}; `league run --stop-at-walk-over` ends before that"
            )
            raise UsageError(message)
        book.annul_walk_over(table, why)


def _has_later_round(season: season_log.Season, table: str) -> bool:
    rounds = {order_of_match(each)[0] for each in (*season.results, *(void.table for void in season.voids))}
    return max(rounds.union(season.draws)) > order_of_match(table)[0]
