"""One round of a Swiss tournament: who meets whom, when it is known who has done how well and who has met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

STEPS: Final = 4_000
"""So many bots are put to a table, and taken back, before more repeats are allowed."""

Met = Mapping[frozenset[str], int]
_Place = tuple[list["Player"], int]


@dataclass(frozen=True, slots=True)
class Player:
    """One entrant before the round."""

    bot: str
    score: float
    has_floated: bool = False
    """It was moved down in the last round."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The round: the top tables first."""

    tables: tuple[tuple[str, ...], ...]
    byes: tuple[str, ...] = ()
    floaters: tuple[str, ...] = ()
    """Those who meet somebody with a lower score."""
    repeats: int = 0
    """Meetings of two who have met before."""


def draw(players: Sequence[Player], had_bye: frozenset[str], met: Met, size: int) -> Draw:
    """The players come the best first, and so do those who are to be preferred among equals."""
    byes = _byes(players, had_bye, len(players) % size)
    # whoever has floated comes first among its equals: the last of them is the one who is left over
    seated = sorted(
        (player for player in players if player.bot not in byes),
        key=lambda player: (-player.score, not player.has_floated),
    )
    allowed, tables = 0, _Search(seated, met, size, 0).tables()
    while tables is None:
        allowed = 2 * allowed or 1
        tables = _Search(seated, met, size, allowed).tables()
    tables = mended(tables, met)
    return Draw(
        tuple(tuple(player.bot for player in table) for table in tables),
        byes,
        tuple(player.bot for table in tables for player in table if player.score > _least(table)),
        sum(_repeats(player, table[:place], met) for table in tables for place, player in enumerate(table)),
    )


def _byes(players: Sequence[Player], had_bye: frozenset[str], count: int) -> tuple[str, ...]:
    """The last of those who have had none."""
    last_first = [player.bot for player in reversed(players) if player.bot not in had_bye]
    return tuple(last_first[:count])


def mended(tables: list[list[Player]], met: Met) -> list[list[Player]]:
    """Swaps two bots of different tables, the nearest in score first, as long as fewer meet again by it."""
    tables = [table.copy() for table in tables]
    while swap := _useful_swap(tables, met):
        (one, here), (other, there) = swap
        one[here], other[there] = other[there], one[here]
    return tables


def _useful_swap(tables: list[list[Player]], met: Met) -> tuple[_Place, _Place] | None:
    places = [(table, at) for table in tables for at in range(len(table))]
    unhappy = [(table, at) for table, at in places if _repeats(table[at], table, met)]
    swaps = [(one, other) for one in unhappy for other in places if one[0] is not other[0]]
    swaps.sort(key=lambda swap: abs(_score(swap[0]) - _score(swap[1])))
    return next((swap for swap in swaps if _saved(*swap, met) > 0), None)


def _score(place: _Place) -> float:
    return place[0][place[1]].score


def _saved(one: _Place, other: _Place, met: Met) -> int:
    """How many repeats fewer there are if the two swap."""
    (table, at), (away, there) = one, other
    rest, rest_away = [*table[:at], *table[at + 1 :]], [*away[:there], *away[there + 1 :]]
    before = _repeats(table[at], rest, met) + _repeats(away[there], rest_away, met)
    return before - _repeats(table[at], rest_away, met) - _repeats(away[there], rest, met)


def _least(table: Sequence[Player]) -> float:
    return min(player.score for player in table)


def _repeats(player: Player, table: Sequence[Player], met: Met) -> int:
    return sum(met.get(frozenset((player.bot, other.bot)), 0) for other in table)


class _Search:
    """Fills the tables from the top, and goes back where it finds no way on."""

    def __init__(self, players: list[Player], met: Met, size: int, allowed: int) -> None:
        self._free = players.copy()
        self._met = met
        self._size = size
        self._allowed = allowed
        self._tables: list[list[Player]] = []
        self._steps = STEPS

    def tables(self) -> list[list[Player]] | None:
        """All of them; `None` if no way was found with so few repeats."""
        return self._tables if self._is_filled() else None

    def _is_filled(self) -> bool:
        if not self._free and len(self._tables[-1]) == self._size:
            return True
        if not self._tables or len(self._tables[-1]) == self._size:
            return self._is_opened()
        table = self._tables[-1]
        for player in list(self._candidates(table)):
            if self._steps <= 0:
                return False
            self._steps -= 1
            repeats = _repeats(player, table, self._met)
            if repeats > self._allowed:
                continue
            place = self._take(player, repeats)
            table.append(player)
            if self._is_filled():
                return True
            table.pop()
            self._give_back(player, place, repeats)
        return False

    def _is_opened(self) -> bool:
        """A new table begins with the best who is left: it has to sit somewhere."""
        first = self._free.pop(0)
        self._tables.append([first])
        if self._is_filled():
            return True
        self._tables.pop()
        self._free.insert(0, first)
        return False

    def _take(self, player: Player, repeats: int) -> int:
        place = self._free.index(player)
        self._free.pop(place)
        self._allowed -= repeats
        return place

    def _give_back(self, player: Player, place: int, repeats: int) -> None:
        self._free.insert(place, player)
        self._allowed += repeats

    def _candidates(self, table: Sequence[Player]) -> Iterator[Player]:
        """Equals first, from where the next part of their group begins; then the others, the nearest first.

        A group of twelve at tables of three has three parts of four: the first of each meet, then the second.
        """
        group = [player for player in self._free if player.score == table[0].score]
        part = (len(group) + len(table)) // self._size
        at = min(len(table) * (part - 1), max(len(group) - 1, 0)) if part else 0
        near = sorted(range(len(group)), key=lambda place: (abs(place - at), -place))
        yield from (group[place] for place in near)
        yield from (player for player in self._free if player.score != table[0].score)
