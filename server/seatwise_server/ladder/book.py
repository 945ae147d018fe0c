"""A ladder's result log as it is read, folded up into ratings and form."""

from __future__ import annotations

import asyncio

from seatwise_server.competition.form import Forms
from seatwise_server.competition.ratings import Ratings
from seatwise_server.competition.results import Result
from seatwise_server.store import Store

AT_ONCE = 200
"""Results that are folded up between two breaths of the event loop: some ten milliseconds."""


class Book:
    """What follows from a ladder's log and its pardons, and from nothing else: whoever reads them has the same."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.edition = 0
        """Rises with all that changes what is worked out of it."""
        self._pardons: dict[str, int] = {}
        self._restart()

    def _restart(self) -> None:
        self.results: list[Result] = []
        self.ratings, self.forms = Ratings(), Forms()
        self.faults: dict[str, str] = {}
        """Those who may not be paired, and why."""

    @property
    def seq(self) -> int:
        """The place of the last result that is in it."""
        return len(self.results)

    @property
    def pardoned(self) -> set[str]:
        """Bots that were let back on at some time."""
        return set(self._pardons)

    async def catch_up(self) -> bool:
        """Reads what is new; whether there was anything."""
        changed = await self._read_pardons()
        while found := await self._store.results.read(self.name, self.seq, AT_ONCE):
            for result in found:
                self._take(result)
            changed = True
            await asyncio.sleep(0)
        self.edition += changed
        return changed

    async def _read_pardons(self) -> bool:
        """One for what is folded up already means to fold it up again: its bot may have forfeited since."""
        pardons = await self._store.ladders.pardons(self.name)
        if pardons == self._pardons:
            return False
        fresh = dict(pardons.items() - self._pardons.items())
        self._pardons = pardons
        if any(seq < self.seq for seq in fresh.values()):
            self._restart()
        self._pardon(fresh)
        return True

    def _take(self, result: Result) -> None:
        self.results.append(result)
        self.ratings.apply(result)
        self.forms.apply(result)
        self._look_at(*result.bots)
        self._pardon(self._pardons)

    def _pardon(self, pardons: dict[str, int]) -> None:
        for bot, seq in pardons.items():
            if seq == self.seq:
                self.forms.pardon(bot)
                self._look_at(bot)

    def _look_at(self, *bots: str) -> None:
        for bot in bots:
            if fault := self.forms.of(bot).fault():
                self.faults[bot] = fault
            else:
                self.faults.pop(bot, None)
