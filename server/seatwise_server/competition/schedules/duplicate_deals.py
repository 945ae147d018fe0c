"""Decide which matches share a deal: turn tables into matches, with duplicate deals or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    """Return the matches of a table that play one deal from every seat by every bot. Neighbours stay neighbours."""
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


def _can_share_deal(table: ScheduledTable, other: ScheduledTable) -> bool:
    """Tell whether a deal has a hand for every seat of both tables, and no bot would meet it twice."""
    return len(table.bots) == len(other.bots) and not set(table.bots) & set(other.bots)


def _share_travelling_deals(tables: Sequence[ScheduledTable]) -> Iterable[ScheduledMatch]:
    """Give each table the first deal that none of its bots has met. A deal that stays at one table is not shared."""
    sets: list[list[ScheduledTable]] = []
    for table in tables:
        free = (each for each in sets if all(_can_share_deal(table, other) for other in each))
        chosen = next(free, None)
        if chosen is None:
            sets.append(chosen := [])
        chosen.append(table)
    for place, travelled in enumerate(sets, 1):
        for number, table in enumerate(travelled, 1):
            deal = (
                SharedDeal(f"r{table.round}-d{place}", number, len(travelled)) if len(travelled) > 1 else None
            )
            yield ScheduledMatch(table.id, table.round, table.bots, deal)
