"""Swiss by version 1 of the schedule, which seasons keep that began under it. It is not changed any more.

In each round bots meet that have done equally well, and no two meet again if that can be avoided.

- The score at a table is the share of the others that a bot finished ahead of, over all matches of the table: 1 for all of
  them, 0 for none, half for a tie. A bye scores 1. A table that was given up brings its bots their own mean so far.
- The seeds draw the first round: the order of the entrants counts. In every group of equals the upper part meets the lower.
- The last bots of the table that have had no bye get the byes. No bot has two, and `SwissVersion1` refuses more rounds than that
  allows.
- As few pairs as can be found meet again. This comes before everything else.
- A bot that was moved down to a lower group in one round is not moved down in the next, if there is a choice.
- Seats: each table sits in the order that has been the rarest so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from random import Random

from seatwise_server.competition.schedules.duplicate_deals import matches_at_tables
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    SoFar,
    check_entrants,
    find_results,
    unsettled_matches,
)
from seatwise_server.competition.schedules.seat_balance import SeatAssigner
from seatwise_server.competition.schedules.swiss_draw_version_1 import SwissPlayer, SwissRound, draw_round
from seatwise_server.competition.standings.scoring import BYE_SCORE, table_scores


@dataclass(frozen=True, slots=True)
class SwissVersion1:
    """The settings of a Swiss tournament. A round is drawn when the one before it is over."""

    entrants: tuple[str, ...]
    """The strongest first, as far as that is known."""
    rounds: int
    table_size: int = 2
    duplicate: Duplicate = Duplicate.TRAVELLING
    seed: str = ""

    def __post_init__(self) -> None:
        check_entrants(self.entrants, self.table_size)
        if self.rounds < 1:
            raise BadSchedule(f"rounds: must be 1 or more, not {self.rounds}")
        byes = len(self.entrants) % self.table_size
        if byes * self.rounds > len(self.entrants):
            most = len(self.entrants) // byes
            raise BadSchedule(f"rounds: at most {most}, or a bot would have a second bye, not {self.rounds}")

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the open matches of the current round. See `Schedule`."""
        return _SwissRoundsVersion1(self, so_far).due

    def expected_matches(self, so_far: SoFar) -> int:  # noqa: ARG002 - it is a `Schedule`
        """Return the number of matches of all rounds. See `Schedule`."""
        matches = self.table_size if self.duplicate is Duplicate.ROTATION else 1
        return self.rounds * (len(self.entrants) // self.table_size) * matches

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        """Return the byes of the rounds that are drawn, as (round, bot)."""
        return tuple(_SwissRoundsVersion1(self, so_far).byes)

    def current_scores(self, so_far: SoFar) -> dict[str, float]:
        """Return each bot's score after the last round that is over."""
        return dict(_SwissRoundsVersion1(self, so_far).scores)


@dataclass
class _SwissRoundsVersion1:
    """The rounds so far, drawn again one after the other."""

    plan: SwissVersion1
    so_far: SoFar
    due: tuple[ScheduledMatch, ...] = ()
    byes: list[tuple[int, str]] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._last_floats: dict[str, int] = {}
        self._tables: list[tuple[str, ...]] = []
        self.scores.update(dict.fromkeys(self.plan.entrants, 0.0))
        for number in range(1, self.plan.rounds + 1):
            matches = self._draw_matches(number)
            self.due = unsettled_matches(matches, self.so_far)
            if self.due:
                return
            self._add_scores(matches, number)

    def _draw_matches(self, number: int) -> tuple[ScheduledMatch, ...]:
        players = tuple(
            SwissPlayer(bot, round(self.scores[bot], 9), self._last_floats.get(bot, 0) == number - 1 > 0)
            for bot in sorted(self.plan.entrants, key=lambda bot: (-self.scores[bot], self._seed_number(bot)))
        )
        had = frozenset(bot for _, bot in self.byes)
        drawn = _draw_cached(players, had, tuple(self._tables), self.plan.table_size)
        self.byes.extend((number, bot) for bot in drawn.byes)
        self._last_floats.update(dict.fromkeys(drawn.floaters, number))
        seating, chance = SeatAssigner(self._tables), Random(f"swiss/{self.plan.seed}/{number}")
        tables = [
            ScheduledTable(f"r{number}-t{place}", number, seating.assign_seats(bots, chance))
            for place, bots in enumerate(drawn.tables, 1)
        ]
        self._tables.extend(table.bots for table in tables)
        return matches_at_tables(tables, self.plan.duplicate)

    def _seed_number(self, bot: str) -> int:
        return self.plan.entrants.index(bot)

    def _add_scores(self, matches: Iterable[ScheduledMatch], number: int) -> None:
        """Add the scores of a round that is over."""
        tables: dict[tuple[str, ...], list[ScheduledMatch]] = {}
        for match in matches:
            tables.setdefault(tuple(sorted(match.bots)), []).append(match)
        for bots, played in tables.items():
            at_table = table_scores(find_results(played, self.so_far))
            for bot in bots:
                mean = self.scores[bot] / (number - 1) if number > 1 else 0.5
                self.scores[bot] += at_table[bot].score if bot in at_table else mean
        for rounds, bot in self.byes:
            self.scores[bot] += BYE_SCORE * (rounds == number)


@lru_cache(maxsize=256)
def _draw_cached(
    players: tuple[SwissPlayer, ...], had_bye: frozenset[str], tables: Sequence[tuple[str, ...]], size: int
) -> SwissRound:
    """Draw a round. Draws are cached, because every question about a season begins at its first round."""
    met = Counter(frozenset(pair) for bots in tables for pair in combinations(bots, 2))
    return draw_round(players, had_bye, met, size)
