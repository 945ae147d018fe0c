"""Tests whether a bot does better where a certain other bot sits than both strengths explain, at any number of seats.

One test for all that a friend can do, by points and by places. `find_gifts` asks the same of points that the moves of a bot gave. A gift
may come in every match, or only in some. So each question is asked of all matches of the pair, of each quarter of them, and for gifts
of the matches with the largest. Holm's method holds the error over all of that together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import sub
from statistics import fmean, stdev
from typing import NamedTuple, TypeVar

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.linalg import add_up, center_values, solve_field, solve_strengths
from seatwise_server.competition.numeric.student_t import (
    SIGNIFICANCE_LEVEL,
    half_width_errors,
    holm_correction,
    student_cdf,
)
from seatwise_server.competition.standings.scoring import counted_points

LEAST_SHARED_MATCHES = 8
"""The fewest matches of a pair, or of a part of its matches, that are tested."""
LEAST_JUDGED_MATCHES = 16
"""The fewest matches of a pair whose moves are tested."""
EVEN_SPREAD = 6.0
"""In points, beside the spread of a match's gifts: it keeps a match with small gifts from counting as much as one with large gifts."""
QUARTER_WEIGHT = 0.05
"""The part of the error that each quarter of a pair's matches gets, and four times as much the quarter with the largest gifts.

The rest is for all matches."""
LEAST_INFORMATION = 1e-6
"""A pair that always sits together has no information, and is not tested."""
PRIOR_WINS = 0.5
"""Comparisons that each bot won and lost against a bot of strength 0, when places are fitted."""
MOST_FIT_STEPS = 60
QUARTERS = ("first", "second", "third", "last")

Item = TypeVar("Item")


class Meeting(NamedTuple):
    """Bots at one table, with what counts for each of them. A walk-over is one, too."""

    bots: tuple[str, ...]
    points: tuple[float, ...]
    ranks: tuple[int, ...]
    deal: str
    """The name of the deal. A match whose deal is not shared has its own."""
    is_completed: bool = True
    """Whether every seat played to the end."""


@dataclass(frozen=True, slots=True)
class Favour:
    """How much better one bot does where another sits, corrected for the strengths of all."""

    taker: str
    giver: str
    matches: int
    """The number of matches with both."""
    gain: float
    """The gain of the taker in points a match, above the mean of its table; by moves, the gift less the mean gift to others."""
    low: float
    high: float
    """The upper end of the 95 % interval of this gain alone. `low` is the lower one."""
    p_value: float
    """How often chance gives this pair as much, by its most surprising test."""
    corrected_p_value: float
    """How often chance gives as much to any pair of the season, by any test."""
    found_by: str
    """The most surprising test, in words."""

    @property
    def is_remarkable(self) -> bool:
        """Whether the corrected p-value is at most `SIGNIFICANCE_LEVEL`."""
        return self.corrected_p_value <= SIGNIFICANCE_LEVEL


def list_meetings(results: Iterable[LoggedResult]) -> list[Meeting]:
    """Return the meetings of all matches that compare bots, however their seats ended.

    A giver that resigns in the last trick would be in no test if only completed matches counted.
    """
    return [
        Meeting(
            result.bots,
            tuple(map(sub, counted_points(result), result.par or [0.0] * len(result.bots))),
            result.ranks,
            result.deal or result.match,
            set(result.endings) == {"COMPLETED"},
        )
        for result in results
        if result.compares_bots
    ]


def find_favours(meetings: Sequence[Meeting]) -> tuple[Favour, ...]:
    """Test every ordered pair that has met often enough, by points and by places, and return the most surprising first."""
    by_points = _Field(meetings, fit_points(meetings))
    by_places = _Field(meetings, _fit_places(meetings))
    found = []
    for (taker, giver), shared in by_points.shared.items():
        if len(shared) < LEAST_SHARED_MATCHES or not (gain := by_points.measure_gain(taker, giver, shared)):
            continue
        tests = [
            _Test(f"{words} {part}".strip(), field.test_part(taker, giver, some), weight / 2)
            for field, words in ((by_points, "by points"), (by_places, "by places"))
            for part, some, weight in _split_matches(field.shared[taker, giver], LEAST_SHARED_MATCHES)
        ]
        found.append((Favour(taker, giver, len(shared), *gain, 1.0, 1.0, ""), tests))
    return _correct_for_number(found)


class _Test(NamedTuple):
    words: str
    p_value: float
    weight: float


def _split_matches(matches: Sequence[Item], least: int) -> Iterator[tuple[str, Sequence[Item], float]]:
    """Yield all matches of a pair, and each quarter of them, with the part of the error that each gets."""
    yield "", matches, 1 - len(QUARTERS) * QUARTER_WEIGHT
    for number, name in enumerate(QUARTERS):
        part = matches[len(matches) * number // 4 : len(matches) * (number + 1) // 4]
        if len(part) >= least:
            yield f"in the {name} quarter of their matches", part, QUARTER_WEIGHT


def _correct_for_number(found: Sequence[tuple[Favour, Sequence[_Test]]]) -> tuple[Favour, ...]:
    every = [test for _, tests in found for test in tests]
    corrected = iter(holm_correction([test.p_value for test in every], [test.weight for test in every]))
    named = []
    for favour, tests in found:
        own = zip(
            tests, corrected, strict=False
        )  # the shorter one first, so that no value of the other is lost
        test, by = min(own, key=lambda each: (each[1], each[0].p_value / each[0].weight))
        named.append(replace(favour, p_value=test.p_value, corrected_p_value=by, found_by=test.words))
    return tuple(
        sorted(named, key=lambda each: (each.corrected_p_value, each.p_value, each.taker, each.giver))
    )


# --- Meetings: the part that the strengths do not explain -------------------------------------------------------------


class Sheet(NamedTuple):
    """The part of one meeting that the strengths do not explain."""

    bots: tuple[str, ...]
    residuals: tuple[float, ...]
    """By seat. They add up to 0."""
    weights: tuple[tuple[float, ...], ...]
    """By two seats, how much their comparison weighs in the fit."""
    ahead: tuple[tuple[tuple[float, float], ...], ...] = ()
    """Of places, by seat: whether it finished ahead of each other (half if they tied), and the probability of that."""
    deal: str = ""


def fit_points(meetings: Sequence[Meeting]) -> list[Sheet]:
    """Return the points of each seat, less the mean of the table and the strengths, which are fitted by least squares.

    So neither the cards of a match nor a bot that is generous to all has an effect.
    """
    scores = [center_values(meeting.points) for meeting in meetings]
    strength = solve_strengths([meeting.bots for meeting in meetings], scores)
    sheets = []
    for meeting, score in zip(meetings, scores, strict=True):
        expected, size = center_values([strength[bot] for bot in meeting.bots]), len(meeting.bots)
        weights = ((1 / size,) * size,) * size
        sheets.append(Sheet(meeting.bots, tuple(map(sub, score, expected)), weights, deal=meeting.deal))
    return sheets


def _fit_places(meetings: Sequence[Meeting]) -> list[Sheet]:
    """Return how many opponents each seat finished ahead of, less the number that fitted strengths expect (Bradley-Terry)."""
    names = sorted({bot for meeting in meetings for bot in meeting.bots})
    wins, pairs = dict.fromkeys(names, 0.0), Counter[tuple[str, str]]()
    for meeting in meetings:
        pairs.update(combinations(sorted(meeting.bots), 2))
        for bot, rank in zip(meeting.bots, meeting.ranks, strict=True):
            wins[bot] += add_up((rank < other) + (rank == other) / 2 for other in meeting.ranks) - 0.5
    strength = dict.fromkeys(names, 0.0)
    for _ in range(MOST_FIT_STEPS):
        left = {bot: wins[bot] + PRIOR_WINS * (1 - 2 * _chance(strength[bot])) for bot in names}
        weights = {}
        for (one, other), count in pairs.items():
            chance = _chance(strength[one] - strength[other])
            left[one] -= count * chance
            left[other] -= count * (1 - chance)
            weights[one, other] = count * chance * (1 - chance)
        step = solve_field(weights, left, prior=PRIOR_WINS / 2)
        strength = {bot: own + max(-2.0, min(2.0, step[bot])) for bot, own in strength.items()}
        if max(map(abs, step.values()), default=0.0) < 1e-9:
            break
    return [_place_sheet(meeting, [strength[bot] for bot in meeting.bots]) for meeting in meetings]


def _place_sheet(meeting: Meeting, strengths: Sequence[float]) -> Sheet:
    seats, ranks = range(len(strengths)), meeting.ranks
    chances = [[_chance(own - other) for other in strengths] for own in strengths]
    ahead = tuple(
        tuple(
            ((ranks[seat] < ranks[other]) + (ranks[seat] == ranks[other]) / 2, chances[seat][other])
            for other in seats
            if other != seat
        )
        for seat in seats
    )
    return Sheet(
        meeting.bots,
        tuple(add_up(is_ahead - chance for is_ahead, chance in own) for own in ahead),
        tuple(tuple(chance * (1 - chance) for chance in own) for own in chances),
        ahead,
    )


def _chance(difference: float) -> float:
    """Return the probability of finishing ahead at this difference of strengths in log-odds."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, difference))))


# --- Meetings: the test of one pair ---------------------------------------------------------------------------


class _Place(NamedTuple):
    """A meeting of a pair: the sheet, and the seats of the taker and of the giver."""

    sheet: Sheet
    taker: int
    giver: int

    @property
    def weight(self) -> float:
        """The weight of all comparisons of the taker."""
        own = self.sheet.weights[self.taker]
        return add_up(weight for seat, weight in enumerate(own) if seat != self.taker)

    @property
    def weight_between(self) -> float:
        return self.sheet.weights[self.taker][self.giver]


class _Sums(NamedTuple):
    """The sums over the matches of a pair, or over a part of them."""

    score: float
    """The sum of the taker's residuals."""
    weight: float
    information: float
    """The weight, less what the fitted strengths of the two have absorbed of a gain."""
    variance: float
    """The variance of the score for each unit of information."""
    freedom: float


class _Field:
    """All meetings of a season, by one measure."""

    def __init__(self, meetings: Sequence[Meeting], sheets: Sequence[Sheet]) -> None:
        self.shared: dict[tuple[str, str], list[_Place]] = defaultdict(list)
        """By taker and giver, in the order of the log."""
        self._weights: dict[str, float] = defaultdict(float)
        self._squares: dict[str, float] = defaultdict(float)
        self._matches: Counter[str] = Counter()
        for sheet in sheets:
            for taker, bot in enumerate(sheet.bots):
                for giver, other in enumerate(sheet.bots):
                    if other != bot:
                        self.shared[bot, other].append(place := _Place(sheet, taker, giver))
                self._weights[bot] += place.weight
                self._squares[bot] += sheet.residuals[taker] ** 2
                self._matches[bot] += 1
        compared = add_up(len(meeting.bots) - 1 for meeting in meetings)
        self._fitted = compared / max(1, compared - len(self._matches) + 1)
        """The part of the chance that the fit has removed, as a factor."""

    def measure_gain(
        self, taker: str, giver: str, some: Sequence[_Place]
    ) -> tuple[float, float, float] | None:
        """Return the gain in points a match and the ends of its interval; `None` if the pair cannot be told apart."""
        if (sums := self._add_up(taker, giver, some)) is None:
            return None
        unit = sums.weight / len(some) / sums.information
        half = half_width_errors(sums.freedom) * math.sqrt(sums.variance * sums.information)
        return unit * sums.score, unit * (sums.score - half), unit * (sums.score + half)

    def test_part(self, taker: str, giver: str, some: Sequence[_Place]) -> float:
        """Return how often chance gives the taker as much in these of its matches with the giver."""
        sums = self._add_up(taker, giver, some)
        if sums is None or not sums.variance:
            return 1.0
        if not some[0].sheet.ahead:
            return 1 - student_cdf(sums.score / math.sqrt(sums.variance * sums.information), sums.freedom)
        if sums.score <= 0:
            return 1.0
        ratio = _likelihood_ratio([each for place in some for each in place.sheet.ahead[place.taker]])
        return math.erfc(math.sqrt(ratio * sums.information / sums.weight / max(1.0, sums.variance))) / 2

    def _add_up(self, taker: str, giver: str, some: Sequence[_Place]) -> _Sums | None:
        score = add_up(place.sheet.residuals[place.taker] for place in some)
        weight = add_up(place.weight for place in some)
        between = add_up(place.weight_between for place in some)
        own, its = self._weights[taker], self._weights[giver]
        both = add_up(place.weight_between for place in self.shared[taker, giver])
        rest = own * its - both * both
        if rest <= LEAST_INFORMATION * own * its:
            return None
        absorbed = (weight * weight * its - 2 * weight * between * both + between * between * own) / rest
        information = weight - absorbed
        if information <= LEAST_INFORMATION * weight:
            return None
        explained = score * score / information
        taken, given = weight / (weight + between), between / (weight + between)
        variance = max(0.0, self._squares[taker] - taken * explained) / own
        other = max(0.0, self._squares[giver] - given * explained) / its
        variance = max(variance, (variance + other) / 2)
        freedom = max(1, self._matches[taker] - 2)
        return _Sums(score, weight, information, self._fitted * variance, freedom)


def _likelihood_ratio(compared: Sequence[tuple[float, float]]) -> float:
    """Return the log of the likelihood ratio of the best common shift of these comparisons, against none.

    Few matches that are almost certain to be lost are skewed, and the ratio knows that.
    """
    low, high = 0.0, 30.0
    odds = [math.log(chance / (1 - chance)) for _, chance in compared]
    for _ in range(50):
        shift = (low + high) / 2
        if add_up(ahead - _chance(own + shift) for (ahead, _), own in zip(compared, odds, strict=True)) > 0:
            low = shift
        else:
            high = shift
    return add_up(
        ahead * math.log(_chance(own + low) / chance)
        + (1 - ahead) * math.log(_chance(-own - low) / (1 - chance))
        for (ahead, chance), own in zip(compared, odds, strict=True)
    )


# --- Gifts by moves -------------------------------------------------------------------------------------------


class JudgedMatch(NamedTuple):
    """The points that the moves of each seat of a match gave to each seat."""

    bots: tuple[str, ...]
    gifts: tuple[tuple[float, ...], ...]
    """In points, by giving seat, then by receiving seat."""


class _Gift(NamedTuple):
    """One match of a giver and a taker."""

    gap: float
    """The gift to the taker less the mean gift to the others."""
    score: float
    """The gift to the taker less the mean gift to all others, divided by their spread and `EVEN_SPREAD` together."""
    square: float
    """The mean square of the scores of all others: the variance if their gifts had come to them in any order."""
    cube: float
    """The mean cube of these scores."""


def find_gifts(matches: Iterable[JudgedMatch]) -> tuple[Favour, ...]:
    """Test every ordered pair that met often enough; the most surprising comes first. Tables of two have no third bot to compare with."""
    given: dict[tuple[str, str], list[_Gift]] = defaultdict(list)
    for match in matches:
        if len(match.bots) > 2:
            for giver, gifts in enumerate(match.gifts):
                for taker, gift in _compare_takers(giver, gifts):
                    given[match.bots[giver], match.bots[taker]].append(gift)
    found = []
    for (giver_bot, taker_bot), pair in sorted(given.items()):
        if (count := len(pair)) >= LEAST_JUDGED_MATCHES:
            gap = fmean(each.gap for each in pair)
            half = half_width_errors(count - 1) * stdev(each.gap for each in pair) / math.sqrt(count)
            favour = Favour(taker_bot, giver_bot, count, gap, gap - half, gap + half, 1.0, 1.0, "")
            found.append((favour, list(_test_gifts(pair))))
    return _correct_for_number(found)


def _compare_takers(giver: int, gifts: Sequence[float]) -> Iterable[tuple[int, _Gift]]:
    others = [seat for seat in range(len(gifts)) if seat != giver]
    scores = _score_gifts([gifts[seat] for seat in others])
    square, cube = fmean(score**2 for score in scores), fmean(score**3 for score in scores)
    for taker, score in zip(others, scores, strict=True):
        rest = fmean(gifts[seat] for seat in others if seat != taker)
        yield taker, _Gift(gifts[taker] - rest, score, square, cube)


def _score_gifts(gifts: Sequence[float]) -> list[float]:
    """Return the distance of each gift from their mean. A single match with large gifts cannot outweigh many others."""
    mean = fmean(gifts)
    spread = math.sqrt(EVEN_SPREAD**2 + fmean((gift - mean) ** 2 for gift in gifts))
    return [(gift - mean) / spread for gift in gifts]


def _test_gifts(pair: Sequence[_Gift]) -> Iterator[_Test]:
    """Test all matches of a pair, each quarter of them, and the quarter in which the gifts to all others differ most.

    A bot without a friend gives in any order, however much its gifts differ. So matches may be chosen by that.
    """
    for part, some, weight in _split_matches(pair, LEAST_SHARED_MATCHES):
        yield _Test(part, _test_scores(some), weight if part else weight - 4 * QUARTER_WEIGHT)
    largest = sorted(pair, key=lambda each: -each.square)[: max(LEAST_SHARED_MATCHES, len(pair) // 4)]
    yield _Test("in the matches with the largest gifts", _test_scores(largest), 4 * QUARTER_WEIGHT)


def _test_scores(compared: Sequence[_Gift]) -> float:
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
