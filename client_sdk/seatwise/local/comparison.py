"""Compares two versions of a bot on the same deals, and stops as soon as the result is clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from time import monotonic
from typing import Any, Final

from seatwise.anytime_mean import BoundedAnytimeMean
from seatwise.local.block_pool import playing_blocks
from seatwise.local.deal_block import NEW, OLD, BlockPlan, PlayedBlock

DIFFERENCE_BOUND: Final = 100.0
"""Differences of more points than this on one deal are cut to it. The games of this product hardly reach it."""

LOOK_EVERY: Final = 8
"""The verdict may fall after every so many deals. Looking more often costs time and gains nothing."""


class ComparisonVerdict(StrEnum):
    """The outcome of a comparison so far."""

    OPEN = "open"
    BETTER = "better"
    WORSE = "worse"
    LEVEL = "level"


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a comparison ends."""

    margin: float = 1.0
    """Versions whose mean difference is certainly smaller than this, in points a match, are level."""

    most_matches: int = 20_000
    error: float = 0.05
    """The chance of a wrong verdict, and of an interval that ever misses the truth, at most."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The state of a comparison. Its interval holds at every moment, and so does its verdict."""

    verdict: ComparisonVerdict
    why: str
    """Why it ended, or goes on, for a person to read."""

    deals: int
    matches: int
    mean: float
    """The mean points by which the new version is ahead, for each match that it plays."""

    interval: tuple[float, float]
    """The interval of this mean, which holds while one looks."""

    cut: int
    """How many deals had a difference beyond the bound of 100 points."""

    voided: int
    """How many deals do not count, because a match was voided."""

    thought_ms: tuple[float, float]
    """Mean thinking time of the old and the new version, in milliseconds a move."""

    failures: tuple[int, int]
    """How often the old and the new version raised, or answered with no legal move."""

    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a value for JSON, with the matches for each second."""
        return asdict(self) | {"matches_per_s": self.matches / self.seconds if self.seconds else None}


class RunningComparison:
    """Adds blocks to a comparison, and says when it is over. It does no I/O but read the clock."""

    def __init__(self, plan: BlockPlan, rule: StopRule) -> None:
        self._plan = plan
        self._rule = rule
        self._mean = BoundedAnytimeMean(DIFFERENCE_BOUND)
        self._deals = self._voided = 0
        self._thought_ms, self._moves, self._failures = [0.0, 0.0], [0, 0], [0, 0]
        self._started_s = monotonic()
        self._verdict = ComparisonVerdict.OPEN
        self._why = "the versions cannot be told apart yet"

    @property
    def is_over(self) -> bool:
        """Whether no more deals are needed, or allowed."""
        return self._verdict is not ComparisonVerdict.OPEN or self.matches >= self._rule.most_matches

    def add_block(self, block: PlayedBlock) -> None:
        """Add a deal, and look at the verdict now and then."""
        self._deals += 1
        for version in (OLD, NEW):
            self._thought_ms[version] += block.thought_ms[version]
            self._moves[version] += block.moves[version]
            self._failures[version] += block.failures[version]
        if block.difference is None:
            self._voided += 1
        else:
            self._mean.add_number(block.difference)
        if self._deals % LOOK_EVERY == 0 or self.matches >= self._rule.most_matches:
            self._look()

    @property
    def matches(self) -> int:
        """How many matches have been played."""
        return self._deals * len(self._plan.tables)

    def note_interrupt(self) -> None:
        """Note that the user has ended it."""
        if not self.is_over:
            self._why = "it was interrupted; the interval holds all the same"

    def report(self) -> Comparison:
        """Return the comparison so far."""
        return Comparison(
            verdict=self._verdict,
            why=self._why,
            deals=self._deals,
            matches=self.matches,
            mean=self._mean.mean,
            interval=self._mean.interval(self._rule.error),
            cut=self._mean.cut,
            voided=self._voided,
            thought_ms=(self._thought_of(OLD), self._thought_of(NEW)),
            failures=(self._failures[OLD], self._failures[NEW]),
            seconds=monotonic() - self._started_s,
        )

    def _look(self) -> None:
        """Decide whether the interval excludes 0, or lies within the margin."""
        margin, error = self._rule.margin, self._rule.error
        side = self._mean.find_side(0.0, error)
        if side:
            self._verdict = ComparisonVerdict.BETTER if side > 0 else ComparisonVerdict.WORSE
            self._why = f"the interval excludes 0, and errs in at most {self._rule.error:.0%} of comparisons"
        elif self._mean.find_side(margin, error) < 0 < self._mean.find_side(-margin, error):
            self._verdict = ComparisonVerdict.LEVEL
            self._why = f"the whole interval is within the margin of {margin:g} points a match"
        elif self.matches >= self._rule.most_matches:
            self._why = f"the limit of {self._rule.most_matches} matches is reached; raise it with --matches"

    def _thought_of(self, version: int) -> float:
        return self._thought_ms[version] / self._moves[version] if self._moves[version] else 0.0


def compare_versions(
    plan: BlockPlan,
    rule: StopRule,
    jobs: int,
    on_block: Callable[[RunningComparison], None],
    on_failure: Callable[[str], None],
) -> Comparison:
    """Play deals in worker processes until the rule ends it, or until Ctrl-C.

    Args:
        plan: The versions, their opponents and the game.
        rule: When it ends.
        jobs: The number of worker processes.
        on_block: A function that is called after each deal.
        on_failure: A function that is called with the text of each kind of failure, once.

    Returns:
        The comparison. With the same plan, rule and seed it is the same each time, except for the times.
    """
    running = RunningComparison(plan, rule)
    with playing_blocks(plan, jobs, on_failure) as blocks:
        try:
            _add_blocks(running, blocks, on_block)
        except KeyboardInterrupt:
            running.note_interrupt()
    return running.report()


def _add_blocks(
    running: RunningComparison, blocks: Iterator[PlayedBlock], on_block: Callable[[RunningComparison], None]
) -> None:
    while not running.is_over:
        running.add_block(next(blocks))
        on_block(running)
