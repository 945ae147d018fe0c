"""Tests whether the cards of a bot give more to a certain other bot than to the rest of the table (three or four seats)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import NamedTuple, Protocol

from seatwise_server.competition.numeric.significance import SIGNIFICANCE_LEVEL, holm_correction
from seatwise_server.competition.numeric.student_t import half_width_errors

LEAST_JUDGED_MATCHES = 16
"""The fewest matches of a pair for which its gifts are tested."""

EVEN_SPREAD = 6.0
"""In points, beside the spread of a match's gifts: it keeps a match with small gifts from counting as much as one with large gifts."""


class JudgedMatch(Protocol):
    """The points that the moves of each seat of a match gave to each seat."""

    @property
    def bots(self) -> tuple[str, ...]:
        """By seat."""
        ...

    @property
    def gifts(self) -> tuple[tuple[float, ...], ...]:
        """In points, by giving seat, then by receiving seat."""
        ...


@dataclass(frozen=True, slots=True)
class Gift:
    """How much more one bot's moves give another bot than the others at the same table."""

    giver: str
    taker: str
    matches: int
    """The number of matches with both."""
    gap: float
    """The mean gift to this bot less the mean gift to the others, in points a match."""
    low: float
    """The lower end of the 95 % interval of this gap alone."""
    high: float
    """The upper end of that interval."""
    p_value: float
    """How often chance gives this gap or a larger one to this pair."""
    corrected_p_value: float
    """How often chance gives such a gap to any pair of the season."""

    @property
    def is_remarkable(self) -> bool:
        """Whether the corrected p-value is at most `SIGNIFICANCE_LEVEL`."""
        return self.corrected_p_value <= SIGNIFICANCE_LEVEL


class _Comparison(NamedTuple):
    """One match of a giver and a taker."""

    gap: float
    """The gift to the taker less the mean gift to the others."""
    score: float
    """The gift to the taker less the mean gift to all others, divided by their spread and `EVEN_SPREAD` together."""
    square: float
    """The mean square of the scores of all others: the variance if their gifts had come to them in any order."""
    cube: float
    """The mean cube of these scores."""


def find_gifts(matches: Iterable[JudgedMatch]) -> tuple[Gift, ...]:
    """Test every ordered pair that has met often enough, and return the most surprising first."""
    found = [
        _measure_gap(giver, taker, compared)
        for (giver, taker), compared in sorted(_compare_pairs(matches).items())
        if len(compared) >= LEAST_JUDGED_MATCHES
    ]
    corrected = holm_correction([gift.p_value for gift in found])
    named = (replace(gift, corrected_p_value=by) for gift, by in zip(found, corrected, strict=True))
    return tuple(sorted(named, key=lambda gift: (gift.p_value, gift.giver, gift.taker)))


def _compare_pairs(matches: Iterable[JudgedMatch]) -> dict[tuple[str, str], list[_Comparison]]:
    """Return the matches by (giver, taker). Tables of two are left out: there is no third bot to compare with."""
    found: dict[tuple[str, str], list[_Comparison]] = defaultdict(list)
    for match in matches:
        if len(match.bots) > 2:
            for giver, gifts in enumerate(match.gifts):
                for taker, compared in _compare_takers(giver, gifts):
                    found[match.bots[giver], match.bots[taker]].append(compared)
    return found


def _compare_takers(giver: int, gifts: Sequence[float]) -> Iterable[tuple[int, _Comparison]]:
    others = [seat for seat in range(len(gifts)) if seat != giver]
    scores = _score_gifts([gifts[seat] for seat in others])
    square, cube = fmean(score**2 for score in scores), fmean(score**3 for score in scores)
    for taker, score in zip(others, scores, strict=True):
        rest = fmean(gifts[seat] for seat in others if seat != taker)
        yield taker, _Comparison(gifts[taker] - rest, score, square, cube)


def _score_gifts(gifts: Sequence[float]) -> list[float]:
    """Return the distance of each gift from their mean. A single match with large gifts cannot outweigh many others."""
    mean = fmean(gifts)
    spread = math.sqrt(EVEN_SPREAD**2 + fmean((gift - mean) ** 2 for gift in gifts))
    return [(gift - mean) / spread for gift in gifts]


def _measure_gap(giver: str, taker: str, compared: Sequence[_Comparison]) -> Gift:
    count, gap = len(compared), fmean(each.gap for each in compared)
    half = half_width_errors(count - 1) * stdev(each.gap for each in compared) / math.sqrt(count)
    p = _test_scores(compared)
    return Gift(giver, taker, count, gap, gap - half, gap + half, p, p)


def _test_scores(compared: Sequence[_Comparison]) -> float:
    """Return how often the sum of scores is as large if each match gives its gifts to the others in any order.

    A bot without a friend does that. So the test needs no distribution of the gifts, which are skewed. The normal approximation has
    the first term of Cornish and Fisher (1938) for the skewness of the sum.
    """
    variance = math.fsum(each.square for each in compared)
    if not variance:
        return 0.5
    z = math.fsum(each.score for each in compared) / math.sqrt(variance)
    skewness = math.fsum(each.cube for each in compared) / variance**1.5
    return math.erfc((z - skewness * (z * z - 1) / 6) / math.sqrt(2)) / 2
