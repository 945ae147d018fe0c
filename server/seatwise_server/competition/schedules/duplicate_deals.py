"""Which matches share a deal: tables as matches, with duplicate deals or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatwise_server.competition.schedules.schedule import Deal, Duplicate, ScheduledMatch, Table


def matches_at(tables: Sequence[Table], duplicate: Duplicate) -> tuple[ScheduledMatch, ...]:
    """All matches of these tables, of one round or of several."""
    if duplicate is Duplicate.ROTATION:
        return tuple(match for table in tables for match in rotated(table))
    if duplicate is Duplicate.TRAVELLING:
        return tuple(match for of_round in _by_round(tables) for match in _travelling(of_round))
    return tuple(ScheduledMatch(table.id, table.round, table.bots) for table in tables)


def rotated(table: Table) -> tuple[ScheduledMatch, ...]:
    """One deal, played from every seat by every bot; neighbours stay neighbours."""
    size = len(table.bots)
    return tuple(
        ScheduledMatch(
            f"{table.id}-s{turn + 1}",
            table.round,
            table.bots[turn:] + table.bots[:turn],
            Deal(table.id, turn + 1, size),
        )
        for turn in range(size)
    )


def _by_round(tables: Iterable[Table]) -> Iterable[list[Table]]:
    rounds: dict[int, list[Table]] = {}
    for table in tables:
        rounds.setdefault(table.round, []).append(table)
    return rounds.values()


def _may_share(table: Table, other: Table) -> bool:
    """A deal has as many hands at every table."""
    return len(table.bots) == len(other.bots) and not set(table.bots) & set(other.bots)


def _travelling(tables: Sequence[Table]) -> Iterable[ScheduledMatch]:
    """Each table takes the first deal that none of its bots has met; a deal that stays at one table is none."""
    sets: list[list[Table]] = []
    for table in tables:
        free = (each for each in sets if all(_may_share(table, other) for other in each))
        chosen = next(free, None)
        if chosen is None:
            sets.append(chosen := [])
        chosen.append(table)
    for place, travelled in enumerate(sets, 1):
        for number, table in enumerate(travelled, 1):
            deal = Deal(f"r{table.round}-d{place}", number, len(travelled)) if len(travelled) > 1 else None
            yield ScheduledMatch(table.id, table.round, table.bots, deal)
