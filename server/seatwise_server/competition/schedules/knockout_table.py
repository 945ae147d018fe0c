"""One table of a knockout: the matches that it plays, and the bots that advance from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatwise_server.competition.schedules.duplicate_deals import matches_at_tables
from seatwise_server.competition.schedules.schedule import (
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    SoFar,
    find_results,
    unsettled_matches,
)
from seatwise_server.competition.standings.scoring import TableScore, table_scores

UNPLAYED = TableScore(points=0.0, score=0.5)
"""The score of every bot at a table at which nothing was played."""


@dataclass(frozen=True, slots=True)
class KnockoutTable:
    """The bots of one table, some of which advance."""

    id: str
    round: int
    bots: tuple[str, ...]
    """The bots by seed."""
    seats: tuple[str, ...]
    """The bots by seat for the first deal. They move by one seat with each further deal."""
    advancing: int
    """How many of them advance."""
    deals: int
    """How many deals the table plays."""

    @property
    def is_bye(self) -> bool:
        """Whether all bots advance, so that nothing is played."""
        return len(self.bots) <= self.advancing

    def deal_tables(self) -> tuple[ScheduledTable, ...]:
        """Return the table once for each deal."""
        return tuple(
            self._table_of_deal(f"g{deal + 1}", deal) for deal in range(0 if self.is_bye else self.deals)
        )

    def _table_of_deal(self, name: str, deal: int) -> ScheduledTable:
        by = deal % len(self.seats)
        return ScheduledTable(f"{self.id}-{name}", self.round, self.seats[by:] + self.seats[:by])

    def deciding_matches(self, duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
        """Return the matches of one more deal, which is shared with no other table."""
        is_rotation = duplicate is Duplicate.ROTATION
        return matches_at_tables(
            [self._table_of_deal("last", self.deals)], Duplicate.ROTATION if is_rotation else Duplicate.NONE
        )


@dataclass(frozen=True, slots=True)
class KnockoutOutcome:
    """A table with the matches that it is to play, and their results so far."""

    table: KnockoutTable
    matches: tuple[ScheduledMatch, ...]
    decider: tuple[ScheduledMatch, ...]
    so_far: SoFar

    def due_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return the open matches: those of the decider only if all others are played and leave the table level."""
        return unsettled_matches(self.matches, self.so_far) or (
            unsettled_matches(self.decider, self.so_far) if self.is_level() else ()
        )

    def expected_matches(self) -> int:
        """Return how many matches the table takes, as far as is known."""
        needs_decider = not unsettled_matches(self.matches, self.so_far) and self.is_level()
        return len(self.matches) + len(self.decider) * needs_decider

    def is_level(self) -> bool:
        """Return whether a bot that would advance is level with one that would not.

        If nothing could be played, the seeds decide at once.
        """
        played = self._tally_matches(self.matches)
        if not played or self.table.is_bye:
            return False
        last, first_out = self._rank_before_decider(played)[
            self.table.advancing - 1 : self.table.advancing + 1
        ]
        return played[last] == played[first_out]

    def rank_bots(self) -> list[str]:
        """Return the bots, the best first. Bots that are level come in the order of seeds."""
        played = self._tally_matches(self.matches)
        last = self._tally_matches(self.decider)
        return sorted(
            self._rank_before_decider(played), key=lambda bot: self._final_sort_key(bot, played, last)
        )

    def _final_sort_key(
        self, bot: str, played: dict[str, TableScore], last: dict[str, TableScore]
    ) -> tuple[tuple[float, float], ...]:
        """Put the decider second, so that it decides only between bots that were level."""
        return (_sort_key(played.get(bot, UNPLAYED)), _sort_key(last.get(bot, UNPLAYED)))

    def _rank_before_decider(self, played: dict[str, TableScore]) -> list[str]:
        return sorted(self.table.bots, key=lambda bot: _sort_key(played.get(bot, UNPLAYED)))

    def _tally_matches(self, matches: Sequence[ScheduledMatch]) -> dict[str, TableScore]:
        return table_scores(find_results(matches, self.so_far))


def _sort_key(tally: TableScore) -> tuple[float, float]:
    """Return a key for which less is better, so that a sort leaves level bots in the order of seeds."""
    return (-tally.points, -tally.score)
