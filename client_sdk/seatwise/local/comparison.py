"""Compares two versions of a bot on the same deals, and stops as soon as the result is clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import count
from time import monotonic
from typing import Any, Final

from seatwise.anytime_mean import PLANNED_LOOKS, BoundedAnytimeMean, PlannedMean
from seatwise.local.deal_block import NEW, OLD, BlockPlan, PlayedBlock
from seatwise.units import (
    PartFiles,
    UnitAnswer,
    UnitEndsWorkers,
    UnitFile,
    UnitRun,
    UnitWorkers,
    reading_units,
)
from seatwise.units.plan import encode_result

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
    is_planned: bool = False
    """Whether it is looked at only ten times on the way to `most_matches`, instead of after every eighth deal."""

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
    """The interval of this mean, which holds while one looks; of a planned comparison that of the last look."""

    cut: int
    """How many deals had a difference beyond the bound of 100 points."""

    voided: int
    """How many deals do not count, because a match was voided."""

    thought_ms: tuple[float, float]
    """Mean thinking time of the old and the new version, in milliseconds a move."""

    failures: tuple[int, int]
    """How often the old and the new version raised, or answered with no legal move."""

    seconds: float
    results: str
    """The SHA-256 of the results of all deals in their order: the same again for the same bots and seed."""

    is_repeatable: bool
    """Whether no deal that was played again had another result."""

    broken_deal: int | None
    """The deal that has ended three workers, and so the comparison."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a value for JSON, with the matches for each second."""
        return asdict(self) | {"matches_per_s": self.matches / self.seconds if self.seconds else None}


class RunningComparison:
    """Adds blocks to a comparison, and says when it is over. It does no I/O but read the clock."""

    def __init__(self, plan: BlockPlan, rule: StopRule) -> None:
        self._plan = plan
        self._rule = rule
        self._most = max(PLANNED_LOOKS, -(-rule.most_matches // len(plan.tables)))
        bound, is_planned = DIFFERENCE_BOUND, rule.is_planned
        self._mean = PlannedMean(bound, most=self._most) if is_planned else BoundedAnytimeMean(bound)
        self._interval = self._mean.interval(rule.error) if rule.is_planned else None
        self._deals = self._voided = 0
        self._thought_ms, self._moves, self._failures = [0.0, 0.0], [0, 0], [0, 0]
        self._started_s = monotonic()
        self._verdict = ComparisonVerdict.OPEN
        self._why = "the versions cannot be told apart yet"
        self._digest = sha256()
        self.is_repeatable = True
        self.broken_deal: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether no more deals are needed, or allowed."""
        return self._verdict is not ComparisonVerdict.OPEN or self.matches >= self._rule.most_matches

    def add_answer(self, answer: UnitAnswer) -> None:
        """Add a deal as a worker tells it, and look at the verdict now and then."""
        self._digest.update(encode_result(answer.result) + b"\n")
        self.add_block(PlayedBlock.from_answer(answer))

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
        if self._is_look_due() or self.matches >= self._rule.most_matches:
            self._look()

    def _is_look_due(self) -> bool:
        if self._rule.is_planned:
            return self._deals * PLANNED_LOOKS % self._most < PLANNED_LOOKS
        return self._deals % LOOK_EVERY == 0

    @property
    def matches(self) -> int:
        """How many matches have been played."""
        return self._deals * len(self._plan.tables)

    def note_end(self, why: str) -> None:
        """Note why it ended, if no verdict has ended it."""
        if not self.is_over:
            self._why = f"{why}; the interval holds all the same"

    def report(self) -> Comparison:
        """Return the comparison so far."""
        return Comparison(
            verdict=self._verdict,
            why=self._why,
            deals=self._deals,
            matches=self.matches,
            mean=self._mean.mean,
            interval=self._interval or self._mean.interval(self._rule.error),
            cut=self._mean.cut,
            voided=self._voided,
            thought_ms=(self._thought_of(OLD), self._thought_of(NEW)),
            failures=(self._failures[OLD], self._failures[NEW]),
            seconds=monotonic() - self._started_s,
            results=self._digest.hexdigest(),
            is_repeatable=self.is_repeatable,
            broken_deal=self.broken_deal,
        )

    def _look(self) -> None:
        """Decide whether the interval excludes 0, or lies within the margin."""
        margin, error = self._rule.margin, self._rule.error
        if self._rule.is_planned:
            self._interval = self._mean.interval(error)
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
    workers: UnitWorkers,
    on_block: Callable[[RunningComparison], None],
    on_failure: Callable[[str], None],
    file: UnitFile | None = None,
    units: range | None = None,
) -> Comparison:
    """Play deals at workers until the rule ends it, a deal has ended three workers, or until Ctrl-C.

    Args:
        plan: The versions, their opponents and the game.
        rule: When it ends.
        workers: The make of the workers that play the deals.
        on_block: A function that is called after each deal.
        on_failure: A function that is called with the text of each kind of failure, once.
        file: The deals that were played before, to go on from.
        units: The deals of a part of a comparison, all of which are played, whatever the verdict.

    Returns:
        The comparison. With the same plan, rule and seed it is the same each time, except for the times.

    Raises:
        UsageError: A worker cannot be started, or has answered wrongly.
        OSError: A worker cannot write what its bots print.
    """
    running = RunningComparison(plan, rule)
    run = UnitRun(plan.to_unit_plan(), workers, file=file)
    numbers = units or (range(workers.units) if isinstance(workers, PartFiles) else count())
    seen: set[tuple[str, str]] = set()
    try:
        with reading_units(run, ((number, None) for number in numbers)) as answers:
            for answer in answers:
                for failure in answer.note["failures"]:
                    if (kind := (failure["bot"], failure["place"])) not in seen:
                        seen.add(kind)
                        on_failure(failure["text"])
                running.add_answer(answer)
                running.is_repeatable = run.is_repeatable
                on_block(running)
                if running.is_over and not units:
                    break
    except KeyboardInterrupt:
        running.note_end("it was interrupted")
    except UnitEndsWorkers as ends:
        running.broken_deal = ends.number
        running.note_end(f"deal {ends.number} has ended three workers: {ends.why}")
    running.is_repeatable = run.is_repeatable
    return running.report()
