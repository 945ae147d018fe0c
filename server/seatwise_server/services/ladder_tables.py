"""Keeps the ladder tables that were read last: reading a long table again for each of its pages takes too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from seatwise.v1 import ladder_pb2
from seatwise_server.ladder.published_table import LadderRow, decode_table
from seatwise_server.store import Store

MOST_LADDER_TABLES = 16
"""The number of tables kept in memory."""


@dataclass(frozen=True, slots=True)
class ShownLadder:
    """A ladder's table, in the form in which it is sent."""

    number: int = 0
    """Rises with each new table of the ladder."""
    results: int = 0
    standings: Sequence[ladder_pb2.Standing] = ()
    publish_ms: int | None = None
    """When it was published, in milliseconds; None if that is not known."""


class LadderTables:
    """A cache of ladder tables, each in its last published form."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: LRUCache[str, ShownLadder] = LRUCache(MOST_LADDER_TABLES)

    async def get_table(self, ladder: str) -> ShownLadder:
        """Returns the table as last published; an empty one for a ladder without results."""
        table = self._shown.get(ladder, ShownLadder())
        if newer := await self._store.ladders.read_table(ladder, unless=table.number):
            lines = enumerate(decode_table(newer.table), start=1)
            table = ShownLadder(
                newer.number,
                newer.results,
                [_standing_message(place, line) for place, line in lines],
                newer.publish_ms,
            )
        self._shown[ladder] = table
        return table


def _standing_message(place: int, line: LadderRow) -> ladder_pb2.Standing:
    return ladder_pb2.Standing(
        bot=line.bot,
        place=place,
        matches=line.matches,
        mu=line.mu,
        sigma=line.sigma,
        strength=line.strength,
        low=line.low,
        high=line.high,
        provisional=line.provisional,
        not_distinguishable_from=line.peers,
        off_reason=line.off,
    )
