"""Lists the matches of each pair of entrants, for the cells of the crosstable."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

from seatwise_server.league.report.facts import Facts

MOST_PAIR_LINES = 3_000
"""The most lines of all pairs together. More would make a large page; the bundle has all matches."""


@dataclass(frozen=True, slots=True)
class PairMatch:
    """A match at which both entrants of a pair sat."""

    match: str
    """The last part of its name, as `seatwise replay` takes it."""

    points: str
    """The points of all its seats, as text."""


@dataclass(frozen=True, slots=True)
class PairMatches:
    """The matches of one pair."""

    id: str
    """The anchor on the page."""

    title: str
    """Both names."""

    matches: tuple[PairMatch, ...]

    more: int
    """How many more matches there are than the page lists."""


def pair_anchor(one: int, other: int) -> str:
    """Return the anchor of a pair, by the places of both in the table, in any order."""
    return f"pair-{min(one, other)}-{max(one, other)}"


def list_pair_matches(facts: Facts) -> list[PairMatches]:
    """Return the pairs that have met, in the order of the table."""
    places = {player: place for place, player in enumerate(facts.order)}
    found: dict[tuple[int, int], list[PairMatch]] = defaultdict(list)
    for result in facts.results.values():
        scored = zip(result.bots, result.points, strict=True)
        points = ", ".join(f"{facts.names[player]} {own}" for player, own in scored)
        match = PairMatch(result.match.removeprefix("matches/"), points)
        for pair in combinations(sorted({places[player] for player in result.bots}), 2):
            found[pair].append(match)
    most = MOST_PAIR_LINES // max(1, len(found))
    return [_make_pair(facts, pair, matches, max(1, most)) for pair, matches in sorted(found.items())]


def _make_pair(facts: Facts, pair: tuple[int, int], matches: list[PairMatch], most: int) -> PairMatches:
    one, other = (facts.names[facts.order[place]] for place in pair)
    return PairMatches(
        pair_anchor(*pair), f"{one} against {other}", tuple(matches[:most]), max(0, len(matches) - most)
    )
