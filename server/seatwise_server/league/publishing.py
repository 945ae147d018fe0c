"""Publishes a season: report, tables and bundle, all worked out from the season log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatwise.bot_errors import UsageError
from seatwise_server.league import season_log, time_reports
from seatwise_server.league.bundle import format_json, write_season_bundle
from seatwise_server.league.csv_files import write_csv
from seatwise_server.league.report import render_report
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season import is_over
from seatwise_server.league.settings import League
from seatwise_server.league.table import describe_verdict, standings_of


@dataclass(frozen=True, slots=True)
class PublishedSeason:
    """What is in the folder now."""

    standings: dict[str, Any]
    digest: str
    """Of the bundle; empty while the season goes on, for then there is none."""
    verdict: str
    """What a test of A against B has come to; empty for any other format."""


def publish_season(folder: Path) -> PublishedSeason:
    """Write report, tables and bundle again. Raises `UsageError` if the folder holds no league."""
    settings, season = season_log.read_season(folder)
    league = league_in(folder, settings)
    voids = {void.table for void in season.voids}
    standings = standings_of(league, season.results, voids)
    (folder / "standings.json").write_text(format_json(standings))
    write_csv(folder, standings, season)
    schedule = schedule_of(league)
    digest = write_season_bundle(folder, league, season, standings) if is_over(schedule, season) else ""
    page = render_report(
        league, season, schedule, standings, digest, time_reports.read_time_reports(folder / "logs", league)
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    return PublishedSeason(standings, digest, describe_verdict(league, standings))


def league_in(folder: Path, settings: dict[str, Any]) -> League:
    """Return the league as its season log describes it. Raises `UsageError` if another version wrote that."""
    try:
        return League.from_json(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{folder}/season.jsonl was written by another version of seatwise: {error!r}"
        ) from None
