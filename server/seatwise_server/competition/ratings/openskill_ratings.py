"""Ratings that order a ladder and choose who meets whom: openskill's Plackett-Luce, folded over the result log.

What is stated here is the whole rule:

- A version is a player of its own, and does not change: nothing drifts (`tau` is 0).
- Ranks are `result.ranks`. Who forfeits or resigns stands behind all who stayed, so it loses to each of them; who shares a
  rank has drawn.
- A match in which a version sits twice, or alone, says nothing of it against others: it counts in no rating.
- Void matches are not in the log.

The spread that openskill keeps beside a rating depends on the order of the matches, and is not shown: `strengths` has the intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from seatwise_server.competition.logged_result import LoggedResult

if TYPE_CHECKING:
    from openskill.models import PlackettLuce

INITIAL_MU = 25.0
INITIAL_SIGMA = 25.0 / 3.0


@dataclass(frozen=True, slots=True)
class Rating:
    """How strong a version seems, after the matches it has had."""

    mu: float = INITIAL_MU
    sigma: float = INITIAL_SIGMA
    matches: int = 0

    @property
    def ordinal(self) -> float:
        """What a table is ordered by: it is better than this, almost for sure."""
        return self.mu - 3 * self.sigma


class ResultOutOfOrder(ValueError):
    """A result that does not follow upon the last one: the ratings would depend on who reads the log."""


class OpenskillRatings:
    """The ratings after so many results: a pure function of the ordered log, however it was read."""

    def __init__(self, rated: Mapping[str, Rating] | None = None, seq: int = 0) -> None:
        self._rated = dict(rated or {})
        self.seq = seq
        """The last result that is in them."""

    def rating_of(self, bot: str) -> Rating:
        """A version that nobody has met yet is rated like any other new one."""
        return self._rated.get(bot, Rating())

    def apply_result(self, result: LoggedResult) -> None:
        """Takes one more result in. One that is in already changes nothing; raises `OutOfOrder` where one is left out."""
        if result.seq <= self.seq:
            return
        if result.seq != self.seq + 1:
            raise ResultOutOfOrder(f"result {result.seq} does not follow upon {self.seq}")
        self.seq = result.seq
        if result.compares_bots:
            self._rate_match(result)

    def _rate_match(self, result: LoggedResult) -> None:
        before = [self.rating_of(bot) for bot in result.bots]
        after = _openskill_model().rate(
            [[_openskill_model().rating(rating.mu, rating.sigma)] for rating in before],
            ranks=list(map(float, result.ranks)),
        )
        for bot, old, [new] in zip(result.bots, before, after, strict=True):
            self._rated[bot] = Rating(new.mu, new.sigma, old.matches + 1)

    def ranked_bots(self) -> list[tuple[str, Rating]]:
        """All that have played, the best first; who is rated alike stands in the order of names."""
        return sorted(self._rated.items(), key=lambda line: (-line[1].ordinal, line[0]))

    def to_json(self) -> dict[str, Any]:
        """A snapshot to go on from; going on from it is the same, to the last digit, as never having stopped."""
        rated = {
            bot: [rating.mu, rating.sigma, rating.matches] for bot, rating in sorted(self._rated.items())
        }
        return {"seq": self.seq, "rated": rated}

    @classmethod
    def from_json(cls, snapshot: Mapping[str, Any]) -> OpenskillRatings:
        return cls({bot: Rating(*values) for bot, values in snapshot["rated"].items()}, snapshot["seq"])


def recompute_ratings(results: Iterable[LoggedResult]) -> OpenskillRatings:
    """The ratings from the whole log, to the last digit those that were kept while it grew."""
    ratings = OpenskillRatings()
    for result in results:
        ratings.apply_result(result)
    return ratings


@cache
def _openskill_model() -> PlackettLuce:
    """Loaded when first needed: whoever only wants to know what a result is does not wait for it."""
    from openskill.models import PlackettLuce

    return PlackettLuce(mu=INITIAL_MU, sigma=INITIAL_SIGMA, tau=0.0)
