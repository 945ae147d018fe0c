"""One table of a knockout: the matches that it plays, and the bots that advance from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from seatwise_server.competition.schedules.duplicate_deals import matches_at_tables
from seatwise_server.competition.schedules.schedule import (
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    SoFar,
    follow_attempts,
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
        return self._open_matches(self.matches) or (
            self._open_matches(self.decider) if self.is_level() else ()
        )

    def known_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return all matches of the table, those of the decider only if it is needed."""
        return self.matches + (self.decider if self._needs_decider() else ())

    def expected_matches(self) -> int:
        """Return how many matches the table takes, as far as is known."""
        return len(self.known_matches())

    def _needs_decider(self) -> bool:
        return not self._open_matches(self.matches) and self.is_level()

    def _open_matches(self, matches: Sequence[ScheduledMatch]) -> tuple[ScheduledMatch, ...]:
        """Return those of the matches that are to be played, each as its next attempt and without the bots that have lost it."""
        found = ((match, follow_attempts(match.id, self.so_far, goes_on=True)) for match in matches)
        return tuple(
            _without_bots(match, each.attempt, each.absent)
            for match, each in found
            if each.attempt
            and len(match.bots) - len(each.absent) > (self.table.advancing if each.absent else 0)
        )

    def _walk_overs(self) -> Counter[str]:
        """Return how many matches each bot lost by walk-over."""
        return Counter(
            bot
            for match in (*self.matches, *self.decider)
            for bot in follow_attempts(match.id, self.so_far, goes_on=True).absent
        )

    def is_level(self) -> bool:
        """Return whether a bot that would advance is level with one that would not.

        If nothing could be played, the seeds decide at once.
        """
        played = self._tally_matches(self.matches)
        if not played or self.table.is_bye:
            return False
        ranked = self._rank_before_decider(played)
        last, first_out = (
            self._key_before_decider(bot, played) for bot in ranked[self.table.advancing - 1 :][:2]
        )
        return last == first_out

    def rank_bots(self) -> list[str]:
        """Return the bots, the best first. Bots that are level come in the order of seeds."""
        played = self._tally_matches(self.matches)
        last = self._tally_matches(self.decider)
        return sorted(
            self._rank_before_decider(played),
            key=lambda bot: (*self._key_before_decider(bot, played), *_sort_key(last.get(bot, UNPLAYED))),
        )

    def _rank_before_decider(self, played: dict[str, TableScore]) -> list[str]:
        return sorted(self.table.bots, key=lambda bot: self._key_before_decider(bot, played))

    def _key_before_decider(self, bot: str, played: dict[str, TableScore]) -> tuple[float, ...]:
        """Put bots behind that lost by walk-over. The decider comes after this, so that it decides only between level bots."""
        return (self._walk_overs()[bot] > 0, *_sort_key(played.get(bot, UNPLAYED)))

    def _tally_matches(self, matches: Sequence[ScheduledMatch]) -> dict[str, TableScore]:
        found = (follow_attempts(match.id, self.so_far, goes_on=True).result for match in matches)
        return table_scores([result for result in found if result])


def _without_bots(match: ScheduledMatch, attempt: str, absent: Collection[str]) -> ScheduledMatch:
    """Return the attempt. Without all its bots it has a deal of its own: the shared one is for more seats."""
    if not absent:
        return replace(match, id=attempt)
    bots = tuple(bot for bot in match.bots if bot not in absent)
    return replace(match, id=attempt, bots=bots, deal=None)


def _sort_key(tally: TableScore) -> tuple[float, float]:
    """Return a key for which less is better, so that a sort leaves level bots in the order of seeds."""
    return (-tally.points, -tally.score)
