"""Swiss: in each round bots meet that have done equally well, and no two meet again if that can be avoided.

`swiss_rules` says what makes a draw good, and `_RoundDraw` searches for one. A runner stores each draw with the season before it plays
the round (`Swiss.current_draw`, `SoFar.draws`). So a season never depends on the search again: all rounds that are over follow from
their results, and the open one from its stored draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from random import Random
from typing import Final

from seatwise_server.competition.designs.lightest_tables import (
    SearchBounds,
    TablesOfNumbers,
    find_lightest_tables,
    tables_weight,
)
from seatwise_server.competition.designs.seat_balance import SeatAssigner
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    RoundDraw,
    Schedule,
    ScheduledMatch,
    SoFar,
    check_entrants,
    follow_attempts,
    matches_at_tables,
    unsettled_matches,
)
from seatwise_server.competition.schedules.swiss_rules import (
    SCORE_UNITS,
    SwissState,
    count_pairs,
    find_draw_fault,
    sort_tables,
    weigh_pairs,
    weigh_repeats,
)
from seatwise_server.competition.standings.scoring import BYE_SCORE, TableScore, table_scores


@dataclass(frozen=True, slots=True)
class Swiss(Schedule):
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
        draw = self.current_draw(so_far)
        return unsettled_matches(self.matches_of(draw), so_far) if draw else ()

    def current_draw(self, so_far: SoFar) -> RoundDraw | None:
        """Return the draw of the current round: the stored one, or else a new one. `None` after the last round."""
        *_, last = self._played_rounds(so_far)
        number, is_last = last.number, last.number == self.rounds
        if number > self.rounds:
            return None
        return so_far.draws.get(number) or draw_swiss_round(
            last.state, number, self.table_size, self.seed, is_last=is_last
        )

    def find_draw_fault(self, so_far: SoFar) -> str:
        """Return what breaks the rules in the stored draws of the rounds that are over; "" if nothing does."""
        *over, _ = self._played_rounds(so_far)
        for played in over:
            number = played.number
            if (draw := so_far.draws.get(number)) is None:
                return f"the draw of round {number} is missing"
            is_last = number == self.rounds
            if fault := find_draw_fault(draw, played.state, self.table_size, is_last=is_last):
                return f"round {number}: {fault}"
        return "" if len(so_far.draws) == len(over) else "there is a draw of a round that was not played"

    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the matches of all rounds whose draws are stored."""
        return tuple(match for draw in so_far.draws.values() for match in self.matches_of(draw))

    def expected_matches(self, so_far: SoFar) -> int:  # noqa: ARG002 - it is a `Schedule`
        return self.rounds * len(self._match_ids(1))

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        """Return the byes of the rounds that are over or under way, as (round, bot)."""
        return tuple(
            (played.number, self.entrants[entrant])
            for played in self._played_rounds(so_far)
            if played.number <= self.rounds
            for entrant in played.state.choose_byes(self.table_size)
        )

    def current_scores(self, so_far: SoFar) -> dict[str, float]:
        """Return each bot's score after the last round that is over."""
        *_, last = self._played_rounds(so_far)
        return dict(zip(self.entrants, last.scores, strict=True))

    def first_attempts(self) -> Iterator[tuple[int, str]]:
        """Yield the round and the id of the first attempt of all matches that there can be. They depend on no draw."""
        for number in range(1, self.rounds + 1):
            for match in self._match_ids(number):
                yield number, match

    def matches_of(self, draw: RoundDraw) -> tuple[ScheduledMatch, ...]:
        """Return the matches of a round."""
        seated = (tuple(map(self.entrants.__getitem__, table)) for table in draw.tables)
        tables = [
            ScheduledMatch(f"r{draw.round}-t{place}", draw.round, bots)
            for place, bots in enumerate(seated, 1)
        ]
        return matches_at_tables(tables, self.duplicate)

    def _match_ids(self, number: int) -> list[str]:
        return [match for table in self._table_matches(number) for match in table]

    def _table_matches(self, number: int) -> list[tuple[str, ...]]:
        """Return the ids of the matches of each table of a round."""
        tables = [f"r{number}-t{place}" for place in range(1, len(self.entrants) // self.table_size + 1)]
        if self.duplicate is not Duplicate.ROTATION:
            return [(table,) for table in tables]
        return [tuple(f"{table}-s{turn}" for turn in range(1, self.table_size + 1)) for table in tables]

    def _played_rounds(self, so_far: SoFar) -> Iterator[_SwissRound]:
        """Yield each round that is over, as it was before it was played, and at the end the open one."""
        entrants = len(self.entrants)
        played = _SwissRound(1, (0.0,) * entrants, SwissState((0,) * entrants))
        while True:
            yield played
            matches = self._match_ids(played.number) if played.number <= self.rounds else []
            if not matches or any(follow_attempts(match, so_far).attempt for match in matches):
                return
            played = self._next_round(played, so_far)

    def _next_round(self, played: _SwissRound, so_far: SoFar) -> _SwissRound:
        number = {bot: entrant for entrant, bot in enumerate(self.entrants)}
        state, byes = played.state, played.state.choose_byes(self.table_size)
        at_table: dict[str, TableScore] = {}
        tables: list[tuple[int, ...]] = []
        for matches in self._table_matches(played.number):
            found = [follow_attempts(match, so_far) for match in matches]
            results = [each.result for each in found if each.result]
            at_table |= table_scores(results)
            for bot in {bot for each in found for bot in each.absent}:
                lost = sum(bot in each.absent for each in found)
                before = at_table[bot].score if bot in at_table else 0.0
                at_table[bot] = TableScore(0.0, before * len(results) / (len(results) + lost))
            tables.extend(tuple(map(number.__getitem__, result.bots)) for result in results[:1])
        scores = list(played.scores)
        for entrant, bot in enumerate(self.entrants):
            mean = scores[entrant] / (played.number - 1) if played.number > 1 else 0.5
            scores[entrant] += (
                BYE_SCORE if entrant in byes else at_table[bot].score if bot in at_table else mean
            )
        next_state = SwissState(
            tuple(round(score * SCORE_UNITS) for score in scores),
            (*state.tables, *tables),
            state.byes.union(byes),
            state.find_floaters(tables),
        )
        return _SwissRound(played.number + 1, tuple(scores), next_state)


@dataclass(frozen=True, slots=True)
class _SwissRound:
    """A round before it is played."""

    number: int
    scores: tuple[float, ...]
    state: SwissState


# Draw one round of a Swiss tournament: search for the tables that `swiss_rules` calls best.

LOOK_AHEAD_ATTEMPTS: Final = 32
"""So many other tables are tried if the next round would have repeated pairs."""
LOOK_AHEAD_KICK_WORK: Final = 20_000
"""Bounds the kicks in each of these attempts. See `SearchBounds`."""
LOOK_AHEAD_NODES: Final = 10_000
"""Bounds the branch and bound in each of them."""
LOOK_AHEAD_BOUNDS: Final = SearchBounds(LOOK_AHEAD_KICK_WORK, LOOK_AHEAD_NODES)


@lru_cache(maxsize=64)
def draw_swiss_round(state: SwissState, number: int, size: int, seed: str, *, is_last: bool) -> RoundDraw:
    """Draw the round with this number after this state. The same arguments give the same draw on every machine."""
    byes = state.choose_byes(size)
    search = _RoundDraw(state, size, f"swiss/{seed}/{number}")
    tables, ahead = search.draw_tables(is_last=is_last)
    seating, chance = SeatAssigner(state.tables), Random(f"swiss/{seed}/{number}")
    seated = [
        seating.assign_best_seats(sorted(table), chance) for table in sort_tables(map(tuple, tables), state)
    ]
    return RoundDraw(number, tuple(seated), byes, tuple(map(tuple, ahead)))


class _RoundDraw:
    def __init__(self, state: SwissState, size: int, seed: str) -> None:
        self._state, self._size, self._seed = state, size, seed
        self._seated = state.list_seated(size)
        self._repeats = weigh_repeats(state.count_meetings(), len(state.scores), size)

    def draw_tables(self, *, is_last: bool) -> tuple[TablesOfNumbers, TablesOfNumbers]:
        """Return the tables, and those of the next round that they were chosen to allow, if that was needed."""
        tables = find_lightest_tables(weigh_pairs(self._state, self._size), self._fold_tables(), self._seed)
        if is_last or len(self._seated) <= self._size:
            return tables, []
        _, needed = self._next_tables(tables, SearchBounds())
        if needed <= self._unavoidable_repeats():
            return tables, []
        return self._look_ahead(tables, needed)

    def _look_ahead(self, tables: TablesOfNumbers, needed: int) -> tuple[TablesOfNumbers, TablesOfNumbers]:
        """Return tables with as few repeated pairs, after which the next round has fewer; the same if none are found."""
        least, found = tables_weight(self._repeats, tables), None
        for attempt in range(LOOK_AHEAD_ATTEMPTS):
            seed = f"{self._seed}/{attempt}"
            tried = find_lightest_tables(self._repeats, self._shuffle_tables(seed), seed, LOOK_AHEAD_BOUNDS)
            if tables_weight(self._repeats, tried) > least:
                continue
            ahead, repeats = self._next_tables(tried, LOOK_AHEAD_BOUNDS)
            if repeats < needed:
                needed, found = repeats, (tried, ahead)
            if needed <= self._unavoidable_repeats():
                break
        if found is None:
            return tables, []
        tables, ahead = found
        weights = weigh_pairs(self._state, self._size, ahead)
        return find_lightest_tables(weights, tables, self._seed), ahead

    def _next_tables(self, tables: TablesOfNumbers, bounds: SearchBounds) -> tuple[TablesOfNumbers, int]:
        """Return the tables of the next round with the fewest repeated pairs after these tables, and how many these are.

        The next byes depend on results. The standings so far stand in for them.
        """
        state = SwissState(
            self._state.scores,
            (*self._state.tables, *map(tuple, tables)),
            self._state.byes.union(self._state.choose_byes(self._size)),
        )
        seated, met = state.list_seated(self._size), state.count_meetings()
        weights, count = weigh_repeats(met, len(state.scores), self._size), len(seated) // self._size
        start = [seated[at::count] for at in range(count)]
        found = find_lightest_tables(weights, start, self._seed, bounds)
        return found, sum(met[pair] > 0 for pair in count_pairs(found))

    def _unavoidable_repeats(self) -> int:
        """Return how many repeated pairs the next round has at least.

        A table of the next round takes its bots from the tables and byes of this one. If these are fewer than its seats, some
        of its bots meet a second time.
        """
        tables, byes = divmod(len(self._state.scores), self._size)
        each, more = divmod(self._size, tables + byes)
        return tables * ((tables + byes - more) * comb(each, 2) + more * comb(each + 1, 2))

    def _fold_tables(self) -> TablesOfNumbers:
        """Return tables in which each group of equals is folded, and the rests of groups sit together from the top."""
        groups: dict[int, list[int]] = {}
        for entrant in self._seated:
            groups.setdefault(self._state.scores[entrant], []).append(entrant)
        tables: TablesOfNumbers = []
        rest: list[int] = []
        for group in groups.values():
            count = len(group) // self._size
            tables.extend(group[at : self._size * count : count] for at in range(count))
            rest.extend(group[self._size * count :])
        return tables + _cut_tables(rest, self._size)

    def _shuffle_tables(self, seed: str) -> TablesOfNumbers:
        chance = Random(seed)
        return _cut_tables(sorted(self._seated, key=lambda _: chance.random()), self._size)


def _cut_tables(entrants: Sequence[int], size: int) -> TablesOfNumbers:
    return [list(entrants[at : at + size]) for at in range(0, len(entrants), size)]
