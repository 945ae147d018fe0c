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
    """1 if the taker was given most, -1 if least, and between them by its place."""
    variance: float
    """The variance of the score if the gifts to the others had come to them in any order."""


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
    scores = {
        taker: sum((gifts[taker] > gifts[seat]) - (gifts[taker] < gifts[seat]) for seat in others)
        / (len(others) - 1)
        for taker in others
    }
    variance = fmean(score**2 for score in scores.values())
    for taker in others:
        rest = fmean(gifts[seat] for seat in others if seat != taker)
        yield taker, _Comparison(gifts[taker] - rest, scores[taker], variance)


def _measure_gap(giver: str, taker: str, compared: Sequence[_Comparison]) -> Gift:
    """Test the places of the taker among the others.

    A bot without a friend gives to the others in any order. So the test needs no distribution of the gifts, which are skewed.
    """
    count, gap = len(compared), fmean(each.gap for each in compared)
    half = half_width_errors(count - 1) * stdev(each.gap for each in compared) / math.sqrt(count)
    variance = sum(each.variance for each in compared)
    z = sum(each.score for each in compared) / math.sqrt(variance) if variance else 0.0
    p = math.erfc(z / math.sqrt(2)) / 2
    return Gift(giver, taker, count, gap, gap - half, gap + half, p, p)
