"""Free tables for a lobby under test, without a referee."""

from __future__ import annotations

from typing import Any

from seatwise_server.game_choice import ALL_KINDS
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.store import Tables


class FreeTables:
    """As many free tables as the test says, for all kinds of games."""

    def __init__(self, count: int = 100) -> None:
        self.count = count

    async def count_free_tables(self, _: object) -> int:
        return self.count

    async def find_tables(self, _: object) -> Tables:
        return Tables(self.count, ALL_KINDS)


def give_tables(lobby: Pairing, count: int = 100) -> Pairing:
    """Lets the lobby see these tables in place of those of referees."""
    tables: Any = FreeTables(count)
    lobby._capacity = lobby._ladders._capacity = lobby._proposals._capacity = tables
    return lobby
