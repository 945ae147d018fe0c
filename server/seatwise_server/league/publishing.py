"""Publishes a season: report, tables and bundle, all computed from the season log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatwise.errors import UsageError
from seatwise.output import writing_file
from seatwise_server.league import season_log, time_reports
from seatwise_server.league.bundle import format_json, write_season_bundle
from seatwise_server.league.csv_files import write_csv
from seatwise_server.league.report import render_report
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season import is_over
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
        raise UsageError(
            f"{folder}/season.jsonl was written by another version of seatwise: {error!r}"
        ) from None
