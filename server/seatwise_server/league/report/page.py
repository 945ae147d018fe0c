"""Builds the page of a season."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from seatwise.kits import KITS
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.ratings.strengths import Strength, StrengthFit, fit_strengths
from seatwise_server.competition.schedules.round_robin import FixedSchedule
from seatwise_server.competition.schedules.schedule import Schedule, list_walk_overs
from seatwise_server.competition.standings.scoring import CrosstableCell, build_crosstable
from seatwise_server.competition.standings.tie_breaks import TIE_BREAK_WORDS
from seatwise_server.competition.statistics.fairness import TimeReports
from seatwise_server.league.report import figures
from seatwise_server.league.report.facts import Facts, describe_leaders, list_pair_matches, pair_anchor
from seatwise_server.league.report.sections import extra_sections
from seatwise_server.league.season_files import CSV_FILES
from seatwise_server.league.season_log import Season
from seatwise_server.league.settings import LOCAL_TABLES, SERVER_TABLES, League
from seatwise_server.league.table import column_heads, describe_verdict, row_cells

FORMAT_TITLES = {"ab-test": "A against B", "round-robin": "round robin", "swiss": "Swiss"}
DEAL_SENTENCES = {
    "none": "Each match has cards of its own.",
    "travelling": "Duplicate deals travel: a deal goes to several tables, and no bot meets it twice.",
    "rotation": "Duplicate deals rotate: the same bots play each deal from every seat, and {how}.",
}
STAYED = "The settings ask for travelling deals, but a round had too few tables for them. So each match had cards of its own."
FRESH = "each bot starts a new process for each match"
TRUSTED = "the operator trusts the bots not to remember a deal"
TABLE_SENTENCES = {
    SERVER_TABLES: "The matches were played at a server.",
    LOCAL_TABLES: "The matches were played at local tables of the operator, without a server and without limits of time: the operator "
    "trusts all entrants.",
}
BRACKET = (
    "Ordered by the round that each entrant reached. Entrants that went out in the same round share a rank."
)
MOST_INCIDENTS = 200
NEVER_MET = CrosstableCell()


def render_report(
    league: League,
    season: Season,
    schedule: Schedule,
    standings: Mapping[str, Any],
    digest: str,
    reports: TimeReports,
    last_write: datetime,
) -> str:
    """Return the whole page.

    `digest` is that of the bundle, empty while the season goes on. `reports` are the bots' own times for their
    answers. `last_write` is when the season log was last written.
    """
    so_far = season.so_far
    order = [row["player"] for row in standings["rows"]]
    facts = Facts(league, season.results, season.records, order, reports)
    due = schedule.due_matches(so_far)
    is_last_look = facts.is_last_look(due)
    found = fit_strengths(season.results.values()) if season.results else None
    if found and not is_last_look:
        found = found.widen_for_every_look()
    extra = extra_sections(schedule, facts, so_far, due)
    page: str = _load_template().render(
        league=league,
        facts=facts,
        digest=digest,
        install=os.environ.get("SEATWISE_INSTALL")
        or "Install Seatwise in a clone of its repository: pip install .",
        verdict=_describe_verdict(
            league, standings, found, facts, is_over=bool(digest), is_last_look=is_last_look
        ),
        date=f"{last_write.day} {last_write:%B %Y}",
        iso_date=f"{last_write:%Y-%m-%d}",
        style=Markup(_read_resource("style.css")),
        game=KITS[league.game].title,
        format=FORMAT_TITLES.get(league.format, league.format),
        deals=f"{_describe_deals(league, season)} {TABLE_SENTENCES[league.tables]}",
        due=max(0, len(due) - standings.get("withheld", 0)),
        withheld=standings.get("withheld", 0),
        overview=_overview_rows(season, facts),
        sections=[
            ("standings", "Standings"),
            ("crosstable", "Crosstable"),
            ("curves", "Rating curves"),
            ("points", "Points"),
            *((section.id, section.title) for section in extra),
            ("seats", "Seats"),
            ("incidents", "Forfeits and voids"),
            ("settings", "Settings"),
            ("verify", "Look at it, and check it"),
        ],
        standings=standings_table(standings, found, facts, is_last_look=is_last_look),
        is_last_look=is_last_look,
        strengths=_draw_strengths(found, facts),
        crosstable=_crosstable_rows(facts),
        pairs=list_pair_matches(facts),
        curves=figures.draw_curves(
            "Ratings over the season", facts.rating_curves(), "rating: mu - 3 sigma", "matches of the season"
        ),
        histograms=_draw_histograms(facts),
        extra=extra,
        seats=facts.seat_rows(),
        balance=schedule.measure_balance() if isinstance(schedule, FixedSchedule) else (),
        **_incident_values(facts, season),
        settings=_settings_rows(league),
        example=next((result.match for result in season.results.values()), "").removeprefix("matches/"),
        overview_files=CSV_FILES,
    )
    return page


def _describe_verdict(
    league: League,
    standings: Mapping[str, Any],
    found: StrengthFit | None,
    facts: Facts,
    *,
    is_over: bool,
    is_last_look: bool,
) -> str:
    """Return how the season ended, or stands. A test of A against B has a verdict of its own."""
    if verdict := describe_verdict(league, standings):
        return verdict
    first = [row["player"] for row in standings["rows"] if row["rank"] == 1 and row["matches"]]
    leaders = [facts.names[player] for player in first]
    rivals = None
    if found and len(first) == 1 and first[0] in {each.bot for each in found.strengths}:
        others = found.indistinct_bots(first[0], at_every_look=not is_last_look)
        rivals = [facts.names[other] for other in others]
    return describe_leaders(leaders, rivals, is_over=is_over)


def _describe_deals(league: League, season: Season) -> str:
    has_stayed = season.results and not any(each.deal for each in season.results.values())
    if league.deals == "travelling" and has_stayed:
        return STAYED
    return DEAL_SENTENCES[league.deals].format(how=TRUSTED if league.is_trusted else FRESH)


def _load_template() -> Any:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string(_read_resource("report.html.j2"))


def _read_resource(name: str) -> str:
    return (files("seatwise_server.league.report") / name).read_text(encoding="utf-8")


def _overview_rows(season: Season, facts: Facts) -> list[tuple[str, str]]:
    deals = {result.deal for result in season.results.values() if result.deal}
    seats = sum(len(result.bots) for result in season.results.values())
    return [
        ("entrants", str(len(facts.order))),
        ("matches", str(len(season.results))),
        ("shared deals", str(len(deals))),
        ("void matches", str(len(season.voids))),
        ("seats played to the end", f"{seats - len(facts.list_incidents())} of {seats}"),
    ]


def standings_table(
    standings: Mapping[str, Any], found: StrengthFit | None, facts: Facts, *, is_last_look: bool
) -> dict[str, Any]:
    """Return the table with fitted strengths. Before the last look, bots are told apart only by what holds at every look."""
    strengths = {each.bot: each for each in found.strengths} if found else {}
    rows = [
        {
            "rank": row["rank"],
            "player": row["player"],
            "cells": [*row_cells(standings, row), _format_strength(strengths.get(row["player"]))],
            "indistinct": _name_indistinct(row["player"], found, facts, is_last_look=is_last_look),
        }
        for row in standings["rows"]
    ]
    return {
        "heads": ["rank", "entrant", *column_heads(standings), "strength", "not distinguishable from"],
        "rows": rows,
        "rule": _describe_order(standings["tie_breaks"]),
        "has_provisional": any(each.provisional for each in strengths.values()),
    }


def _describe_order(tie_breaks: Sequence[str]) -> str:
    criteria = ", then ".join(map(TIE_BREAK_WORDS.__getitem__, tie_breaks))
    return f"Ordered by {criteria}." if criteria else BRACKET


def _format_strength(strength: Strength | None) -> str:
    if strength is None:
        return "-"
    half = (strength.high - strength.low) / 2
    return f"{strength.value:+.0f} ± {half:.0f}{' prov.' if strength.provisional else ''}"


def _name_indistinct(player: str, found: StrengthFit | None, facts: Facts, *, is_last_look: bool) -> str:
    if found is None or player not in {each.bot for each in found.strengths}:
        return ""
    others = found.indistinct_bots(player, at_every_look=not is_last_look)
    if len(others) == len(facts.order) - 1 > 1:
        return "any other"
    return ", ".join(facts.names[other] for other in others) or "none"


def _draw_strengths(found: StrengthFit | None, facts: Facts) -> Markup | None:
    if found is None:
        return None
    known = {each.bot: each for each in found.strengths}
    rows = [
        figures.Whisker(facts.names[player], known[player].value, known[player].low, known[player].high)
        for player in facts.order
        if player in known
    ]
    return figures.draw_whiskers("Strengths with their intervals", rows, "Elo above the field", middle=0)


def _crosstable_rows(facts: Facts) -> list[dict[str, Any]]:
    met = build_crosstable(facts.results.values())
    rows = []
    for row, player in enumerate(facts.order):
        cells = [
            None if other == player else (met.get((player, other), NEVER_MET), pair_anchor(row, column))
            for column, other in enumerate(facts.order)
        ]
        rows.append({"player": player, "cells": cells})
    return rows


def _draw_histograms(facts: Facts) -> list[dict[str, Any]]:
    points = facts.points_by_player()
    everything = [each for values in points.values() for each in values] or [0]
    low, high = min(everything), max(everything)
    most = figures.highest_column(list(points.values()), low, high)
    found = []
    for series, (player, values) in enumerate(points.items()):
        name = facts.names[player]
        plot = figures.draw_histogram(f"Points of {name}", values, low, high, most, series)
        found.append({"name": name, "plot": plot, "told": _describe_spread(values)})
    return found


def _describe_spread(values: Sequence[int]) -> str:
    if not values:
        return "no matches yet"
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return f"mean {add_up(values) / len(values):.1f}, median {middle}, {ordered[0]} to {ordered[-1]} in {len(values)} matches"


def _incident_values(facts: Facts, season: Season) -> dict[str, Any]:
    incidents = facts.list_incidents()
    return {
        "incidents": incidents[:MOST_INCIDENTS],
        "more_incidents": max(0, len(incidents) - MOST_INCIDENTS),
        "voids": season.voids[:MOST_INCIDENTS],
        "walk_overs": list_walk_overs(season.so_far),
        "entrant_changes": season.entrant_changes,
    }


def _settings_rows(league: League) -> list[tuple[str, str]]:
    plain = league.to_published_json()
    told = {key: value for key, value in plain.items() if key not in ("entrants", "time", "options", "trial")}
    told |= {f"option {key}": value for key, value in plain["options"].items()}
    told |= {f"time {key}": value for key, value in plain["time"].items()}
    told |= {f"entrant {each['name']}": f"{each['player']} {each['bot']}" for each in plain["entrants"]}
    return [(key, _flatten_value(value)) for key, value in told.items() if value not in ("", [])]


def _flatten_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
