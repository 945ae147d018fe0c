"""Decide which matches share a deal: turn tables into matches, with duplicate deals or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatwise_server.competition.schedules.schedule import (
    Duplicate,
    ScheduledMatch,
    ScheduledTable,
    SharedDeal,
)


def matches_at_tables(tables: Sequence[ScheduledTable], duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
    """Return all matches of these tables, of one round or of several."""
    if duplicate is Duplicate.ROTATION:
        return tuple(match for table in tables for match in rotate_seats(table))
    if duplicate is Duplicate.TRAVELLING:
        return tuple(
            match for of_round in _group_by_round(tables) for match in _share_travelling_deals(of_round)
        )
    return tuple(ScheduledMatch(table.id, table.round, table.bots) for table in tables)


def rotate_seats(table: ScheduledTable) -> tuple[ScheduledMatch, ...]:
    """Return the matches in which the bots of a table play one deal, each from every seat. Neighbours stay neighbours."""
    size = len(table.bots)
    return tuple(
        ScheduledMatch(
            f"{table.id}-s{turn + 1}",
            table.round,
            table.bots[turn:] + table.bots[:turn],
            SharedDeal(table.id, turn + 1, size),
        )
        for turn in range(size)
    )


def _group_by_round(tables: Iterable[ScheduledTable]) -> Iterable[list[ScheduledTable]]:
    rounds: dict[int, list[ScheduledTable]] = {}
    for table in tables:
        rounds.setdefault(table.round, []).append(table)
    return rounds.values()


@dataclass(slots=True)
class _TravellingDeal:
    """A deal with the tables that it goes to."""

    tables: list[ScheduledTable]
    bots: set[str]
    """The bots of these tables. None of them may meet the deal twice."""

    def can_be_played_at(self, table: ScheduledTable) -> bool:
        """Return whether the deal has a hand for every seat of the table, and no bot would meet it twice."""
        return len(self.tables[0].bots) == len(table.bots) and self.bots.isdisjoint(table.bots)


def _share_travelling_deals(tables: Sequence[ScheduledTable]) -> Iterable[ScheduledMatch]:
    """Give each table the first deal that none of its bots has met. A deal that stays at one table is not shared."""
    deals: list[_TravellingDeal] = []
    for table in tables:
        chosen = next((each for each in deals if each.can_be_played_at(table)), None)
        if chosen is None:
            deals.append(chosen := _TravellingDeal([], set()))
        chosen.tables.append(table)
        chosen.bots.update(table.bots)
    sets = [deal.tables for deal in deals]
    for place, travelled in enumerate(sets, 1):
        for number, table in enumerate(travelled, 1):
            deal = (
                SharedDeal(f"r{table.round}-d{place}", number, len(travelled)) if len(travelled) > 1 else None
            )
            yield ScheduledMatch(table.id, table.round, table.bots, deal)
