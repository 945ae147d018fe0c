"""The criteria that order a table. To add one, write a function here and give it a line in `TIE_BREAKS`.

A criterion takes the season, one bot, and the bots that all earlier criteria left level (this bot among them). It returns a
number; more is better. The settings of a league, its checks and its messages follow from `TIE_BREAKS` by themselves.

Several criteria are those of FIDE: "C.07" is its Handbook, "Tie-Break Regulations" (of 1 September 2023). FIDE takes sums.
Here they are means, because bots of one season may have played different numbers of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up
from seatwise_server.competition.standings.played_season import PlayedSeason, mean_of

TieBreak = Callable[[PlayedSeason, str, Sequence[str]], float]
"""The season, a bot, and the bots that are level with it, itself included. More is better."""

MEAN_OF_NOTHING: Final = float("-inf")
"""The value of a bot that has played no match: it ranks behind all others."""


def mean_points(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the bot's mean points a match: the game's own points, as `scoring.counted_points` counts them.

    Duplicate bridge ranks by the mean of table results in the same way. FIDE has no counterpart: a chess game has no points
    of its own.
    """
    return mean_of(season.points_by_bot.get(bot), MEAN_OF_NOTHING)


def mean_score(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the mean share of the others at the table that the bot finished ahead of, byes included.

    At tables of two this is the score percentage of chess: win 1, draw 0.5, loss 0.
    """
    return mean_of(season.scores_by_bot.get(bot), MEAN_OF_NOTHING)


def head_to_head(season: PlayedSeason, bot: str, level: Sequence[str]) -> float:
    """Return the share of its meetings with the level bots in which the bot finished ahead. 0.5 if it met none of them.

    "Direct encounter" (DE) of FIDE, C.07 article 6. FIDE applies it only if all level players have met. Here the meetings
    that there were count.
    """
    own = season.results_by_bot.get(bot, ())
    shares = [share for other in level if other != bot for share in _shares_against(own, bot, other)]
    return mean_of(shares, 0.5)


def count_wins(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the number of matches that the bot won. A first rank that n seats share counts 1 / n.

    "Number of wins" (WIN) of FIDE, C.07 article 7.1, but a bye is no win here.
    """
    return add_up(season.wins_by_bot.get(bot, ()))


def mean_buchholz(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the mean score of the opponents, each counted as often as the bot met it.

    "Buchholz" (BH) of FIDE, C.07 article 8.1, as a mean. Byes count for the opponents' scores and are no opponents.
    """
    own = season.results_by_bot.get(bot, ())
    met = [other for result in own for other in result.bots if other != bot]
    return mean_of([mean_score(season, other, ()) for other in met], MEAN_OF_NOTHING)


def fewest_forfeits(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the number of forfeited matches, negated, so that fewer are better. FIDE has no counterpart."""
    return -season.count_forfeits(bot)


def seed_order(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return the bot's place among the entrants (FIDE: tournament pairing number), negated, so that a better seed is better."""
    return -season.entrants.index(bot)


def draw_lots(season: PlayedSeason, bot: str, _: Sequence[str]) -> float:
    """Return a number drawn from SHA-256 of the season's seed and the bot's name, so that anyone can repeat the draw."""
    return int.from_bytes(sha256(f"{season.seed}/lot/{bot}".encode()).digest()[:6], "big")


TIE_BREAKS: Final[Mapping[str, TieBreak]] = {
    "points": mean_points,
    "score": mean_score,
    "head_to_head": head_to_head,
    "wins": count_wins,
    "buchholz": mean_buchholz,
    "forfeits": fewest_forfeits,
    "seed": seed_order,
    "lot": draw_lots,
}
"""All criteria, by the names that settings use."""

TIE_BREAK_WORDS: Final[Mapping[str, str]] = {
    "points": "mean points",
    "score": "the share of opponents finished ahead of",
    "head_to_head": "matches against each other",
    "wins": "wins",
    "buchholz": "the mean score of the opponents",
    "forfeits": "the fewest forfeits",
    "seed": "the better seed",
    "lot": "a drawn lot",
}
"""The same criteria, in the words that pages and reports use."""

BY_POINTS: Final = ("points", "head_to_head", "score", "wins")
"""The default criteria, in order."""
BY_SCORE: Final = ("score", "buchholz", "head_to_head", "points")
"""The default criteria of a Swiss tournament, in order."""


def _shares_against(results: Iterable[LoggedResult], bot: str, other: str) -> list[float]:
    """Return 1, 0.5 or 0 for each meeting: the bot finished ahead, level or behind. Each pair of their seats is one meeting."""
    return [
        (own < its) + (own == its) / 2
        for result in results
        for own in _ranks_of_bot(result, bot)
        for its in _ranks_of_bot(result, other)
    ]


def _ranks_of_bot(result: LoggedResult, bot: str) -> list[int]:
    return [rank for each, rank in zip(result.bots, result.ranks, strict=True) if each == bot]
