"""Ranks the entrants of a season by declared criteria: `scoring` says what a match is worth, and `PlayedSeason` what a walk-over
is. Each criterion of `tie_breaks` is applied only to bots that all earlier ones left level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.standings.played_season import PlayedSeason, WalkOver, mean_of
from seatwise_server.competition.standings.tie_breaks import BY_POINTS, TIE_BREAKS


@dataclass(frozen=True, slots=True)
class StandingsRow:
    """One entrant."""

    rank: int
    """The rank, from 1. Bots that share a rank have the best of the ranks that they fill."""
    bot: str
    matches: int
    points: float
    """The mean points of its matches."""
    score: float
    """The mean share of the others that it finished ahead of, including byes."""
    wins: float
    """Matches in which no bot finished ahead of it. A first rank that n seats share counts 1 / n."""
    byes: int
    forfeits: int
    resigned: int
    walk_overs: int
    """The matches that it lost by walk-over. They are in the means, and not among its matches."""


def rank_entrants(
    results: Iterable[LoggedResult],
    entrants: Sequence[str],
    criteria: Sequence[str] = BY_POINTS,
    byes: Iterable[tuple[int, str]] = (),
    seed: str = "",
    missed: Sequence[WalkOver] = (),
    gone: Collection[str] = (),
) -> tuple[StandingsRow, ...]:
    """Return the table of a season, the best first.

    `entrants` come by seed, `criteria` are names of `TIE_BREAKS`, `byes` are (round, bot), `seed` seeds the lots, and `missed`
    are the matches that bots lost by walk-over. Bots that are `gone` rank behind all others.
    Raises `KeyError` for a criterion that does not exist.
    """
    season = PlayedSeason(tuple(results), tuple(entrants), Counter(bot for _, bot in byes), seed, missed)
    stay = [bot for bot in entrants if bot not in gone]
    groups = [group for group in (stay, [bot for bot in entrants if bot in gone]) if group]
    for name in criteria:
        groups = [part for group in groups for part in _split_group(group, name, season)]
    return _build_rows(season, map(sorted, groups))


def standings_in_order(
    results: Iterable[LoggedResult],
    order: Sequence[Sequence[str]],
    byes: Iterable[tuple[int, str]] = (),
    missed: Sequence[WalkOver] = (),
) -> tuple[StandingsRow, ...]:
    """Return the table of a season whose format itself decides the order, as a knockout does.

    `order` has the best first; the bots of one group share a rank. `byes` are (round, bot).
    """
    entrants = [bot for group in order for bot in group]
    season = PlayedSeason(tuple(results), tuple(entrants), Counter(bot for _, bot in byes), "", missed)
    return _build_rows(season, order)


def _split_group(group: list[str], name: str, season: PlayedSeason) -> list[list[str]]:
    """Split level bots by one criterion, the best first. A bot that is alone needs no criterion."""
    if len(group) == 1:
        return [group]
    values = {bot: round(TIE_BREAKS[name](season, bot, group), 9) for bot in group}
    return [
        [bot for bot in group if values[bot] == level] for level in sorted(set(values.values()), reverse=True)
    ]


def _build_rows(season: PlayedSeason, groups: Iterable[Sequence[str]]) -> tuple[StandingsRow, ...]:
    rows: list[StandingsRow] = []
    for group in groups:
        rank = len(rows) + 1
        rows += [_build_row(season, bot, rank) for bot in group]
    return tuple(rows)


def _build_row(season: PlayedSeason, bot: str, rank: int) -> StandingsRow:
    return StandingsRow(
        rank=rank,
        bot=bot,
        matches=season.match_counts[bot],
        points=mean_of(season.points_by_bot.get(bot), 0.0),
        score=mean_of(season.scores_by_bot.get(bot), 0.0),
        wins=add_up(season.wins_by_bot.get(bot, ())),
        byes=season.byes.get(bot, 0),
        forfeits=season.count_forfeits(bot) - season.walk_overs[bot],
        resigned=season.ending_counts[bot, "RESIGNED"],
        walk_overs=season.walk_overs[bot],
    )


def format_ranges(numbers: Sequence[int]) -> str:
    """Write numbers as ranges: 1, 2, 3, 5 is 1-3, 5."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)
