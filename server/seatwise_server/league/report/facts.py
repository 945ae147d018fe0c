"""Computes the facts on the page of a season from its results and records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from seatwise.replay.frame_builder import join_names
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.competition.standings.scoring import counted_points
from seatwise_server.competition.statistics.fairness import TimedAnswer, TimeReports, match_reports
from seatwise_server.league.settings import League

MOST_CURVE_POINTS = 240
"""The most points of a rating curve: more would be finer than the page can show."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A seat whose bot did not finish its match, with the evidence from the record."""

    match: str
    table: str
    seat: int
    name: str
    ending: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """All facts about a season, by player in the order of the table."""

    league: League
    results: Mapping[str, LoggedResult]
    records: Mapping[str, str]
    order: Sequence[str]
    """The players in the order of the table."""
    reports: TimeReports

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each player in the report."""
        return {each.player: each.name for each in self.league.entrants}

    def is_last_look(self, due: Sequence[ScheduledMatch]) -> bool:
        """Return whether intervals for one look hold: no match is due, and the season was no test that stops by what it sees."""
        return not due and self.league.format != "ab-test"

    def points_by_player(self) -> dict[str, list[int]]:
        """Return the points of each player in each match."""
        found: dict[str, list[int]] = {player: [] for player in self.order}
        for result in self.results.values():
            for player, points in zip(result.bots, counted_points(result), strict=True):
                found[player].append(points)
        return found

    def rating_curves(self) -> dict[str, list[tuple[float, float]]]:
        """Return the course of each rating by name, as pairs of match number and rating."""
        ratings, every = OpenskillRatings(), max(1, len(self.results) // MOST_CURVE_POINTS)
        found: dict[str, list[tuple[float, float]]] = {self.names[player]: [] for player in self.order}
        for result in self.results.values():
            ratings.apply_result(result)
            if result.seq % every == 0 or result.seq == len(self.results):
                for player in self.order:
                    found[self.names[player]].append((result.seq, ratings.rating_of(player).ordinal))
        return found

    def seat_rows(self) -> list[dict[str, Any]]:
        """Return a row for each entrant, and one for all: its name, and by seat its matches there and their mean points."""
        found: dict[tuple[str, int], list[int]] = defaultdict(list)
        for result in self.results.values():
            for seat, (player, points) in enumerate(zip(result.bots, counted_points(result), strict=True)):
                found[player, seat].append(points)
                found["", seat].append(points)
        rows = []
        for player in (*self.order, ""):
            by_seat = [found[player, seat] for seat in range(self.league.seats)]
            means = [add_up(each) / len(each) if each else None for each in by_seat]
            rows.append(
                {"name": self.names.get(player, "all"), "counts": [*map(len, by_seat)], "means": means}
            )
        return rows

    def list_incidents(self) -> list[Incident]:
        """List the seats that were forfeited or resigned."""
        found = []
        for table, result in self.results.items():
            for seat, (player, ending) in enumerate(zip(result.bots, result.endings, strict=True)):
                if ending != Ending.COMPLETED:
                    evidence = self._find_evidence(result.match, seat)
                    found.append(Incident(result.match, table, seat, self.names[player], ending, evidence))
        return found

    def timed_answers(self) -> list[TimedAnswer]:
        """Return the answers that have both a charge in the record and a report of the bot."""
        records = map(json.loads, self.records.values()) if self.reports else ()
        return [answer for record in records for answer in match_reports(record, self.reports)]

    def _find_evidence(self, match: str, seat: int) -> tuple[str, ...]:
        record = self.records.get(match)
        if record is None:
            return ("its record is not published yet, because others may still play the same deal",)
        entries = json.loads(record)["entries"]
        return tuple(_describe_entry(entry) for entry in entries if _concerns_seat(entry, seat))


def _concerns_seat(entry: Mapping[str, Any], seat: int) -> bool:
    """Return whether the entry is evidence against that seat."""
    if entry["kind"] == "default":
        return entry["reason"] == "TIMED_OUT" and any(move["seat"] == seat for move in entry["moves"])
    return entry["kind"] in ("rejected", "forfeited", "resigned") and entry.get("seat") == seat


def _describe_entry(entry: Mapping[str, Any]) -> str:
    what = {"default": "ran out of time", "rejected": "was rejected"}.get(entry["kind"], entry["kind"])
    reason = entry.get("ending") or (entry.get("reason") if entry["kind"] == "rejected" else "")
    told = f"seq {entry['seq']}, {entry['at_ms']} ms: {what}"
    return f"{told} ({reason})" if reason else told


# Lists the matches of each pair of entrants, for the cells of the crosstable.

MOST_PAIR_LINES = 3_000
"""The most lines of all pairs together. More would make a large page; the bundle has all matches."""


@dataclass(frozen=True, slots=True)
class PairMatches:
    """The matches of one pair."""

    id: str
    """The anchor on the page."""
    title: str
    """Both names."""
    matches: list[tuple[str, str]]
    """The last part of the name of each, as `seatwise replay` takes it, and the points of all its seats."""
    more: int
    """How many more matches there are than the page lists."""


def pair_anchor(one: int, other: int) -> str:
    """Return the anchor of a pair, by the places of both in the table, in any order."""
    return f"pair-{min(one, other)}-{max(one, other)}"


def list_pair_matches(facts: Facts) -> list[PairMatches]:
    """Return the pairs that have met, in the order of the table."""
    places = {player: place for place, player in enumerate(facts.order)}
    found: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    for result in facts.results.values():
        scored = zip(result.bots, result.points, strict=True)
        points = ", ".join(f"{facts.names[player]} {own}" for player, own in scored)
        for pair in combinations(sorted({places[player] for player in result.bots}), 2):
            found[pair].append((result.match.removeprefix("matches/"), points))
    most = max(1, MOST_PAIR_LINES // max(1, len(found)))
    pairs = []
    for pair, matches in sorted(found.items()):
        title = " against ".join(facts.names[facts.order[place]] for place in pair)
        pairs.append(PairMatches(pair_anchor(*pair), title, matches[:most], max(0, len(matches) - most)))
    return pairs


# Says in one sentence how a season ended, or stands, and how certain that is.

MOST_NAMED = 6
"""The most leaders, or rivals, that a verdict names."""


def describe_leaders(leaders: Sequence[str], rivals: Sequence[str] | None, *, is_over: bool) -> str:
    """Return the verdict on a season.

    Args:
        leaders: The names of the entrants that share the first rank; none if there is no result.
        rivals: The names of the entrants that cannot be told apart from the only leader; `None` if that is not known.
        is_over: Whether the season is over.

    >>> describe_leaders(["ann"], ["bob", "eve"], is_over=True)
    'ann wins, but the results do not tell it apart from bob and eve.'
    """
    if not leaders:
        return "No result counts yet."
    if len(leaders) > 1:
        return f"{join_some(leaders)} share the first rank."
    verb = "wins" if is_over else "leads"
    if rivals is None:
        return f"{leaders[0]} {verb}."
    if not rivals:
        return f"{leaders[0]} {verb}, and the results tell it apart from every other entrant."
    return f"{leaders[0]} {verb}, but the results do not tell it apart from {join_some(rivals)}."


def join_some(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many more there are, as words in a sentence."""
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return join_names([*names[:MOST_NAMED], *more])
