"""Draws one round of a Swiss tournament by version 1 of the schedule. It draws the same for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MOST_SEARCH_STEPS: Final = 4_000
"""The most times that a bot is put to a table, including those that are undone.

After these the search allows more repeats.
"""

MeetingCounts = Mapping[frozenset[str], int]
"""How often each pair of bots has met."""
_TablePlace = tuple[list["SwissPlayer"], int]


@dataclass(frozen=True, slots=True)
class SwissPlayer:
    """One entrant before the round."""

    bot: str
    score: float
    has_floated: bool = False
    """Whether it was moved down in the last round."""


@dataclass(frozen=True, slots=True)
class SwissRound:
    """The tables of a round, the top one first."""

    tables: tuple[tuple[str, ...], ...]
    byes: tuple[str, ...] = ()
    floaters: tuple[str, ...] = ()
    """The bots that meet a bot with a lower score."""
    repeats: int = 0
    """The number of meetings of pairs that have met before."""


def draw_round(
    players: Sequence[SwissPlayer], had_bye: frozenset[str], met: MeetingCounts, size: int
) -> SwissRound:
    """Draw the round. `players` come the best first; among equals the first has precedence. `size` is the size of tables."""
    byes = _choose_byes(players, had_bye, len(players) % size)
    # Among equals, bots that have floated come first, because the last one of a group is the one that floats.
    seated = sorted(
        (player for player in players if player.bot not in byes),
        key=lambda player: (-player.score, not player.has_floated),
    )
    allowed, tables = 0, _TableSearch(seated, met, size, 0).find_tables()
    while tables is None:
        allowed = 2 * allowed or 1
        tables = _TableSearch(seated, met, size, allowed).find_tables()
    tables = reduce_repeats(tables, met)
    return SwissRound(
        tuple(tuple(player.bot for player in table) for table in tables),
        byes,
        tuple(player.bot for table in tables for player in table if player.score > _lowest_score(table)),
        sum(
            _count_repeats(player, table[:place], met)
            for table in tables
            for place, player in enumerate(table)
        ),
    )


def _choose_byes(players: Sequence[SwissPlayer], had_bye: frozenset[str], count: int) -> tuple[str, ...]:
    """Return the last players that have had no bye."""
    last_first = [player.bot for player in reversed(players) if player.bot not in had_bye]
    return tuple(last_first[:count])


def reduce_repeats(tables: list[list[SwissPlayer]], met: MeetingCounts) -> list[list[SwissPlayer]]:
    """Swap bots of different tables while that saves repeated pairs. Pairs of bots that are near in score come first."""
    tables = [table.copy() for table in tables]
    while swap := _useful_swap(tables, met):
        (one, here), (other, there) = swap
        one[here], other[there] = other[there], one[here]
    return tables


def _useful_swap(
    tables: list[list[SwissPlayer]], met: MeetingCounts
) -> tuple[_TablePlace, _TablePlace] | None:
    places = [(table, at) for table in tables for at in range(len(table))]
    repeating = [(table, at) for table, at in places if _count_repeats(table[at], table, met)]
    swaps = [(one, other) for one in repeating for other in places if one[0] is not other[0]]
    swaps.sort(key=lambda swap: abs(_score_at(swap[0]) - _score_at(swap[1])))
    return next((swap for swap in swaps if _repeats_saved(*swap, met) > 0), None)


def _score_at(place: _TablePlace) -> float:
    return place[0][place[1]].score


def _repeats_saved(one: _TablePlace, other: _TablePlace, met: MeetingCounts) -> int:
    """Return how many repeated pairs a swap of the two places saves."""
    (table, at), (away, there) = one, other
    rest, rest_away = [*table[:at], *table[at + 1 :]], [*away[:there], *away[there + 1 :]]
    before = _count_repeats(table[at], rest, met) + _count_repeats(away[there], rest_away, met)
    return before - _count_repeats(table[at], rest_away, met) - _count_repeats(away[there], rest, met)


def _lowest_score(table: Sequence[SwissPlayer]) -> float:
    return min(player.score for player in table)


def _count_repeats(player: SwissPlayer, table: Sequence[SwissPlayer], met: MeetingCounts) -> int:
    return sum(met.get(frozenset((player.bot, other.bot)), 0) for other in table)


@dataclass(slots=True)
class _SeatChoice:
    """The choice of a bot for one seat."""

    candidates: Iterator[SwissPlayer]
    """Those that were not tried yet."""
    opens_table: bool
    """Whether a table was opened for it."""
    seated: tuple[SwissPlayer, int, int] | None = None
    """The bot that sits there now, its place among the free ones before, and how many pairs it repeats."""


class _TableSearch:
    """Fills the tables from the top, and backtracks at dead ends."""

    def __init__(self, players: list[SwissPlayer], met: MeetingCounts, size: int, allowed: int) -> None:
        self._free = players.copy()
        self._met = met
        self._size = size
        self._allowed = allowed
        self._tables: list[list[SwissPlayer]] = []
        self._steps = MOST_SEARCH_STEPS

    def find_tables(self) -> list[list[SwissPlayer]] | None:
        """Return all tables. `None` if the search found no way with so few repeated pairs."""
        choices = [self._start_choice()]  # a stack: a thousand entrants are too many for recursion
        while choices:
            self._undo_choice(choices[-1])
            if not self._make_choice(choices[-1]):
                self._drop_choice(choices.pop())
            elif not self._free and len(self._tables[-1]) == self._size:
                return self._tables
            else:
                choices.append(self._start_choice())
        return None

    def _start_choice(self) -> _SeatChoice:
        """Return the choice of a bot for the next seat.

        A new table is opened with the best free player. That player has to sit somewhere, so no other first player needs
        to be tried.
        """
        opens_table = not self._tables or len(self._tables[-1]) == self._size
        if opens_table:
            self._tables.append([self._free.pop(0)])
        return _SeatChoice(iter(list(self._order_candidates(self._tables[-1]))), opens_table)

    def _make_choice(self, choice: _SeatChoice) -> bool:
        """Seat the next candidate that may sit there; return whether there was one."""
        table = self._tables[-1]
        for player in choice.candidates:
            if self._steps <= 0:
                return False
            self._steps -= 1
            repeats = _count_repeats(player, table, self._met)
            if repeats <= self._allowed:
                choice.seated = (player, self._remove_free_player(player, repeats), repeats)
                table.append(player)
                return True
        return False

    def _undo_choice(self, choice: _SeatChoice) -> None:
        """Take the bot that was chosen from its seat, if one was."""
        if choice.seated:
            self._tables[-1].pop()
            self._restore_free_player(*choice.seated)
            choice.seated = None

    def _drop_choice(self, choice: _SeatChoice) -> None:
        """Leave the seat for now, because no candidate leads to full tables."""
        if choice.opens_table:
            [first] = self._tables.pop()
            self._free.insert(0, first)

    def _remove_free_player(self, player: SwissPlayer, repeats: int) -> int:
        place = self._free.index(player)
        self._free.pop(place)
        self._allowed -= repeats
        return place

    def _restore_free_player(self, player: SwissPlayer, place: int, repeats: int) -> None:
        self._free.insert(place, player)
        self._allowed += repeats

    def _order_candidates(self, table: Sequence[SwissPlayer]) -> Iterator[SwissPlayer]:
        """Yield the free players in the order in which the table tries them.

        Equals come first, from the place where the next part of their group begins. The others follow, the nearest first.
        For example, a group of twelve at tables of three has three parts of four: the first of each part meet, then the
        second of each.
        """
        group = [player for player in self._free if player.score == table[0].score]
        part = (len(group) + len(table)) // self._size
        at = min(len(table) * (part - 1), max(len(group) - 1, 0)) if part else 0
        near = sorted(range(len(group)), key=lambda place: (abs(place - at), -place))
        yield from (group[place] for place in near)
        yield from (player for player in self._free if player.score != table[0].score)
