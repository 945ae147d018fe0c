"""Count results as comparisons of pairs, for the fit of strengths. Needs no numpy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations

from seatwise_server.competition.logged_result import LoggedResult

# The probability that one bot finishes ahead of another, from the difference of their strengths.

LEAST_DIFFERENCE = -700.0
"""At this difference of two strengths and below, the probability is 0. `math.exp` of its opposite is still a float."""


def probability_ahead(difference: float) -> float:
    """Return the probability that belongs to these log-odds: the logistic function."""
    return 1 / (1 + math.exp(-difference)) if difference > LEAST_DIFFERENCE else 0.0


# Counts results as comparisons of pairs. The order in which the matches were played makes no difference.

RankedMatch = tuple[tuple[int, int], ...]
"""The bots at a table, by number, with their ranks."""
Cluster = tuple[RankedMatch, ...]
"""Matches that depend on each other and on no others: one match, or all matches of one duplicate deal."""
Pair = tuple[int, int]
"""The numbers of two bots."""


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All that a fit uses of a log: counts in a fixed order."""

    bots: tuple[str, ...]
    """The names of the bots. A bot's number is its index."""
    clusters: tuple[tuple[Cluster, int], ...]
    """Each different cluster, and how often it occurred."""
    pairs: tuple[tuple[Pair, int, float], ...]
    """Each pair that met, how often, and how often the first was ahead. A shared rank counts half."""
    matches: tuple[int, ...]
    """The number of matches of each bot."""

    @property
    def cluster_count(self) -> int:
        """The number of independent clusters."""
        return sum(count for _, count in self.clusters)


def count_comparisons(results: Iterable[LoggedResult]) -> Comparisons:
    """Count the results. Each match compares every two of its bots once."""
    rated = [result for result in results if result.compares_bots]
    matches = Counter(chain.from_iterable([result.bots for result in rated]))
    bots = tuple(sorted(matches))
    number = {bot: n for n, bot in enumerate(bots)}
    pieces = Counter(_group_clusters(rated, number))
    clusters = tuple(sorted(pieces.items()))
    return Comparisons(bots, clusters, tuple(_count_pairs(pieces)), tuple([matches[bot] for bot in bots]))


def _group_clusters(results: Iterable[LoggedResult], number: dict[str, int]) -> Iterator[Cluster]:
    by_deal: dict[str, list[RankedMatch]] = defaultdict(list)
    for result in results:
        numbers = map(number.__getitem__, result.bots)
        match = tuple(sorted(zip(numbers, result.ranks, strict=True)))
        if result.deal:
            by_deal[result.deal].append(match)
        else:
            yield (match,)
    for matches in by_deal.values():
        yield tuple(sorted(matches))


def _count_pairs(pieces: Counter[Cluster]) -> Iterator[tuple[Pair, int, float]]:
    met: Counter[Pair] = Counter()
    halves: Counter[Pair] = Counter()
    for piece, count in pieces.items():
        for match in piece:
            for (one, its), (other, others) in combinations(match, 2):
                pair = one, other
                met[pair] += count
                halves[pair] += count if its == others else 2 * count * (its < others)
    for pair in sorted(met):
        yield pair, met[pair], halves[pair] / 2
