"""Swiss: in each round those meet who have done equally well, and nobody meets the same bot again if it can be helped.

The rules, all of them:

- Score of a table: the share of the others that a bot finished ahead of (1 for all of them, 0 for none, half for a tie), over
  all matches of the table. A bye scores 1. A table that was given up scores what its bots have had on average.
- The first round is drawn by seed: the order of the entrants counts. In every group of equals the upper part meets the lower.
- Byes go to the last of the table that have had none; nobody has two. More rounds than that allows are refused.
- As few pairs as can be found meet again. Before that, nothing else counts.
- Who was moved down to a lower group in one round is not in the next, if there is a choice.
- Seats: each table sits as has been the rarest so far.
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
from seatwise_server.competition.schedules.swiss_draw import SwissPlayer, SwissRound, draw_round
from seatwise_server.competition.standings.scoring import BYE_SCORE, table_scores


@dataclass(frozen=True, slots=True)
class Swiss:
    """A round is drawn when the one before it is over."""

    entrants: tuple[str, ...]
    """The strongest first, as far as one knows."""
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
            raise BadSchedule(
                f"rounds: at most {most}, or somebody would have a second bye, not {self.rounds}"
            )

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        return _SwissRounds(self, so_far).due

    def expected_matches(self, so_far: SoFar) -> int:  # noqa: ARG002 - it is a `Schedule`
        matches = self.table_size if self.duplicate is Duplicate.ROTATION else 1
        return self.rounds * (len(self.entrants) // self.table_size) * matches

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        return tuple(_SwissRounds(self, so_far).byes)

    def current_scores(self, so_far: SoFar) -> dict[str, float]:
        """After the last round that is over."""
        return dict(_SwissRounds(self, so_far).scores)


@dataclass
class _SwissRounds:
    """The rounds so far, drawn again one after the other."""

    plan: Swiss
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
        """Adds what the round brought."""
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
    """Kept, because every question about a season begins at its first round."""
    met = Counter(frozenset(pair) for bots in tables for pair in combinations(bots, 2))
    return draw_round(players, had_bye, met, size)
