"""Knockout over tables of two, three or four, with seeds, byes, and a rule for every match that fails.

docs/statistics.md has the rules. The bracket has `table_size` x (`table_size` / `advance`)^n places, of which the last seeds' stay
empty. A table at which no more bots sit than advance plays nothing (a bye), and `_fill_tables` keeps the best bots apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    Schedule,
    ScheduledMatch,
    SoFar,
    check_entrants,
    find_results,
    follow_attempts,
    matches_at_tables,
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

    @property
    def is_bye(self) -> bool:
        """Whether all bots advance, so that nothing is played."""
        return len(self.bots) <= self.advancing

    def deal_tables(self) -> list[ScheduledMatch]:
        """Return the table once for each deal."""
        deals = 0 if self.is_bye else self.deals
        return [self._table_of_deal(f"g{deal + 1}", deal) for deal in range(deals)]

    def _table_of_deal(self, name: str, deal: int) -> ScheduledMatch:
        by = deal % len(self.seats)
        return ScheduledMatch(f"{self.id}-{name}", self.round, self.seats[by:] + self.seats[:by])

    def deciding_matches(self, duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
        """Return the matches of one more deal, which is shared with no other table."""
        kind = duplicate if duplicate is Duplicate.ROTATION else Duplicate.NONE
        return matches_at_tables([self._table_of_deal("last", self.deals)], kind)


@dataclass(frozen=True, slots=True)
class KnockoutOutcome:
    """A table with the matches that it is to play, and their results so far."""

    table: KnockoutTable
    matches: tuple[ScheduledMatch, ...]
    decider: tuple[ScheduledMatch, ...]
    so_far: SoFar

    def due_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return the open matches: those of the decider only if it is needed."""
        return self._open_matches(self.known_matches())

    def known_matches(self) -> tuple[ScheduledMatch, ...]:
        """Return all matches of the table: those of the decider only if all others are played and leave the table level."""
        needs_decider = not self._open_matches(self.matches) and self.is_level()
        return self.matches + (self.decider if needs_decider else ())

    def _open_matches(self, matches: Sequence[ScheduledMatch]) -> tuple[ScheduledMatch, ...]:
        """Return those of the matches that are to be played, each as its next attempt and without the bots that have lost it."""
        found = ((match, follow_attempts(match.id, self.so_far, goes_on=True)) for match in matches)
        return tuple(
            _without_bots(match, each.attempt, each.absent)
            for match, each in found
            if each.attempt
            and len(match.bots) - len(each.absent) > (self.table.advancing if each.absent else 0)
        )

    def is_level(self) -> bool:
        """Return whether a bot that would advance is level with one that would not. If nothing could be played, the seeds decide."""
        if self.table.is_bye or not find_results(self.matches, self.so_far, goes_on=True):
            return False
        keys = sorted(self._keys_before_decider().values())
        return keys[self.table.advancing - 1] == keys[self.table.advancing]

    def rank_bots(self) -> list[str]:
        """Return the bots, the best first. Bots that are level come in the order of seeds."""
        keys, last = self._keys_before_decider(), self._tally_matches(self.decider)
        return sorted(self.table.bots, key=lambda bot: (*keys[bot], *_sort_key(last.get(bot, UNPLAYED))))

    def _keys_before_decider(self) -> dict[str, tuple[float, ...]]:
        """Put bots behind that lost by walk-over. The decider comes after this, so that it decides only between level bots."""
        matches = (*self.matches, *self.decider)
        found = (follow_attempts(match.id, self.so_far, goes_on=True).absent for match in matches)
        absent, played = {bot for bots in found for bot in bots}, self._tally_matches(self.matches)
        return {bot: (bot in absent, *_sort_key(played.get(bot, UNPLAYED))) for bot in self.table.bots}

    def _tally_matches(self, matches: Sequence[ScheduledMatch]) -> dict[str, TableScore]:
        return table_scores(find_results(matches, self.so_far, goes_on=True))


def _without_bots(match: ScheduledMatch, attempt: str, absent: Collection[str]) -> ScheduledMatch:
    """Return the attempt. Without all its bots it has a deal of its own: the shared one is for more seats."""
    if not absent:
        return replace(match, id=attempt)
    bots = tuple(bot for bot in match.bots if bot not in absent)
    return replace(match, id=attempt, bots=bots, deal=None)


def _sort_key(tally: TableScore) -> tuple[float, float]:
    """Return a key for which less is better, so that a sort leaves level bots in the order of seeds."""
    return (-tally.points, -tally.score)


BracketPlaces = list[str | None]
"""The entrants by place in the bracket, the best first. `None` is an empty place."""


@dataclass(frozen=True, slots=True)
class Knockout(Schedule):
    """The settings of a knockout. The tables of a round are known once those of the round before it are decided."""

    entrants: tuple[str, ...]
    """The best seed first."""
    table_size: int = 2
    advance: int = 1
    """How many bots of a table advance. The table size is a multiple of it."""
    deals: int = 1
    """How many deals a table plays."""
    duplicate: Duplicate = Duplicate.NONE
    seed: str = ""
    """Seeds the draw of seats."""

    def __post_init__(self) -> None:
        check_entrants(self.entrants, self.table_size, least=2)
        if not 0 < self.advance < self.table_size or self.table_size % self.advance:
            raise BadSchedule(f"advance: {self.table_size} must be a multiple of it, not {self.advance}")
        if self.deals < 1:
            raise BadSchedule(f"deals: must be 1 or more, not {self.deals}")

    def due_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        return _Bracket(self, so_far).due

    def known_matches(self, so_far: SoFar) -> tuple[ScheduledMatch, ...]:
        """Return the matches of all rounds so far."""
        return tuple(_Bracket(self, so_far).matches)

    def expected_matches(self, so_far: SoFar) -> int:
        """Return how many matches the season has if no later table needs one more deal."""
        bracket = _Bracket(self, so_far)
        return len(bracket.matches) + bracket.later_matches

    def list_byes(self, so_far: SoFar) -> tuple[tuple[int, str], ...]:
        """Return the byes as (round, bot). All are in round 1."""
        return tuple((1, bot) for bot in _Bracket(self, so_far).byes)

    def final_order(self, so_far: SoFar) -> tuple[tuple[str, ...], ...]:
        """Return the final order as far as it is decided, the best first. Bots that went out in the same round share a rank."""
        return _Bracket(self, so_far).order

    def bracket_size(self) -> int:
        """Return how many places the bracket has."""
        places = self.table_size
        while places < len(self.entrants):
            places = places * self.table_size // self.advance
        return places


@dataclass
class _Bracket:
    """The rounds so far, computed one after the other from the results."""

    plan: Knockout
    so_far: SoFar
    due: tuple[ScheduledMatch, ...] = ()
    byes: list[str] = field(default_factory=list)
    order: tuple[tuple[str, ...], ...] = ()
    matches: list[ScheduledMatch] = field(default_factory=list)
    later_matches: int = 0
    """Of rounds that are not drawn yet, if no table ends level."""

    def __post_init__(self) -> None:
        empty = self.plan.bracket_size() - len(self.plan.entrants)
        places: BracketPlaces = [*self.plan.entrants, *[None] * empty]
        number = 1
        while places and not self.due:
            verdicts = self._play_round(number, places)
            self.byes.extend(bot for each in verdicts if each.table.is_bye for bot in each.table.bots)
            self.due = tuple(match for each in verdicts for match in each.due_matches())
            self.matches += (match for each in verdicts for match in each.known_matches())
            places, number = self._next_places(verdicts), number + 1
        self.later_matches = self._matches_in_later_rounds(len(places))

    def _play_round(self, number: int, places: BracketPlaces) -> list[KnockoutOutcome]:
        left, count = [bot for bot in places if bot is not None], len(places) // self.plan.table_size
        drawn = _lay_out_tables(left, count, self.plan.advance)
        tables = [self._draw_table(number, at, bots, count == 1) for at, bots in enumerate(drawn, 1)]
        deals = [deal for table in tables for deal in table.deal_tables()]
        matches = matches_at_tables(deals, self.plan.duplicate)
        return [
            KnockoutOutcome(
                table,
                tuple(match for match in matches if match.id.startswith(f"{table.id}-")),
                table.deciding_matches(self.plan.duplicate),
                self.so_far,
            )
            for table in tables
        ]

    def _draw_table(self, number: int, at: int, bots: list[str], is_last: bool) -> KnockoutTable:
        name = f"r{number}-t{at}"
        by_seed = tuple(sorted(bots, key=self.plan.entrants.index))
        seats = tuple(Random(f"knockout/{self.plan.seed}/{name}").sample(by_seed, len(by_seed)))
        goes_on = 1 if is_last else self.plan.advance
        return KnockoutTable(name, number, by_seed, seats, goes_on, self.plan.deals)

    def _next_places(self, verdicts: list[KnockoutOutcome]) -> BracketPlaces:
        """Return the places of the next round: none after the last round, all empty while this one is open."""
        count, advance = len(verdicts), self.plan.advance
        places: BracketPlaces = [None] * (advance * count) if count > 1 else []
        byes = sum(each.table.is_bye for each in verdicts)
        if self.due:
            return places
        if count == 1:
            self.order = (*((bot,) for bot in verdicts[0].rank_bots()), *self.order)
            return places
        out: list[str] = []
        for at, verdict in enumerate(verdicts):
            ranking = verdict.rank_bots()
            out += ranking[advance:]
            for rank, bot in enumerate(ranking[:advance]):
                places[_next_place(at, rank, count, byes, advance)] = bot
        if out:  # they rank ahead of all that went out earlier
            self.order = (tuple(sorted(out, key=self.plan.entrants.index)), *self.order)
        return places

    def _matches_in_later_rounds(self, places: int) -> int:
        each = self.plan.deals * (self.plan.table_size if self.plan.duplicate is Duplicate.ROTATION else 1)
        total = 0
        while places >= self.plan.table_size:
            tables = places // self.plan.table_size
            total += tables * each
            places = tables * self.plan.advance if tables > 1 else 0
        return total


def _lay_out_tables(bots: list[str], count: int, advance: int) -> list[list[str]]:
    """Lay out the bots, the best first. Tables at which nothing is played come first, with the best bots."""
    byes = count * (advance + 1) - len(bots)
    if count == 1 or byes <= 0:
        return _fill_tables(bots, count)
    resting = byes * advance
    return _fill_tables(bots[:resting], byes) + _fill_tables(bots[resting:], count - byes)


def _fill_tables(bots: list[str], count: int) -> list[list[str]]:
    """Lay out the bots over the tables in passes of alternating direction: so the best are apart, and the sums of seeds alike.

    A pass that does not reach all tables begins at the last one, so that the tables of the best stay small.
    """
    tables: list[list[str]] = [[] for _ in range(count)]
    whole = len(bots) // count
    for place, bot in enumerate(bots):
        turn, at = divmod(place, count)
        tables[count - 1 - at if turn % 2 or turn == whole else at].append(bot)
    return tables


def _next_place(table: int, rank: int, tables: int, byes: int, advance: int) -> int:
    """Return the place in the next round of the bot with this rank (from 0) at a table.

    Without byes a winner keeps its table's place, and a second goes to the other half. With byes the place is the number of the seed
    that is expected there. The tables with byes come first, with the best seeds. The layout of the next round then parts
    bots that have met, unless half of the tables had byes: these places are taken as without byes.
    """
    if byes in (0, tables // 2):
        return rank * tables + (table + rank * tables // 2) % tables
    first, count, at = (0, byes, table) if table < byes else (advance * byes, tables - byes, table - byes)
    return first + rank * count + (count - 1 - at if rank % 2 else at)
