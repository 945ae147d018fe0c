"""The ratings that order a ladder and pair its bots: openskill's Plackett-Luce model, updated result by result.

docs/statistics.md has the rules. The spread that openskill keeps with each rating depends on the order of the matches, so it is not
shown. `strengths` has the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from seatwise_server.competition.logged_result import LoggedResult

if TYPE_CHECKING:
    from openskill.models import PlackettLuce, PlackettLuceRating

INITIAL_MU = 25.0
"""The rating of a new version. Openskill's default, like `INITIAL_SIGMA`."""
INITIAL_SIGMA = 25.0 / 3.0


@dataclass(frozen=True, slots=True)
class Rating:
    """An estimate of how strong a version is, from its matches so far."""

    mu: float = INITIAL_MU
    sigma: float = INITIAL_SIGMA
    matches: int = 0

    @property
    def ordinal(self) -> float:
        """The value that orders a table: the version is almost certainly better than that."""
        return self.mu - 3 * self.sigma


class ResultOutOfOrder(ValueError):
    """A result does not directly follow the last one. With a gap the ratings would depend on the reader of the log."""


class OpenskillRatings:
    """The ratings after a number of results: a pure function of the ordered log, no matter in how many pieces it is read."""

    def __init__(self) -> None:
        self._rated: dict[str, Rating] = {}
        self._players: dict[str, PlackettLuceRating] = {}
        """The same as objects of openskill: to make one for each match would take a fifth of the time of all ratings."""
        self.seq = 0
        """The number of the last result that was added."""

    def rating_of(self, bot: str) -> Rating:
        """Return the rating of a version, which is the initial one until its first match."""
        return self._rated.get(bot, Rating())

    def apply_result(self, result: LoggedResult, *, is_rated: bool = True) -> None:
        """Add one more result. A result that was added before changes nothing, nor does one that is not rated.

        Raises `ResultOutOfOrder` if a result before it is missing.
        """
        if result.seq <= self.seq:
            return
        if result.seq != self.seq + 1:
            raise ResultOutOfOrder(f"result {result.seq} does not directly follow {self.seq}")
        self.seq = result.seq
        if is_rated and result.compares_bots:
            self._rate_match(result)

    def _rate_match(self, result: LoggedResult) -> None:
        model = _openskill_model()
        players = [[self._players.get(bot) or model.rating()] for bot in result.bots]
        after = model.rate(players, ranks=list(map(float, result.ranks)))
        for bot, [new] in zip(result.bots, after, strict=True):
            self._players[bot] = new
            self._rated[bot] = Rating(new.mu, new.sigma, self.rating_of(bot).matches + 1)

    def ranked_bots(self) -> list[tuple[str, Rating]]:
        """Return all versions that have played with their ratings, the best first. Equal ones come in alphabetical order."""
        return sorted(self._rated.items(), key=lambda line: (-line[1].ordinal, line[0]))


@cache
def _openskill_model() -> PlackettLuce:
    """Load openskill when it is first needed, so that a process that only reads results does not wait for it."""
    from openskill.models import PlackettLuce

    return PlackettLuce(mu=INITIAL_MU, sigma=INITIAL_SIGMA, tau=0.0)
