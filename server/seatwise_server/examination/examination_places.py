"""The places of examinations: how many bots a process examines at once, and whose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

MOST_EXAMINATIONS = 4
"""The most bots that hold a place at once. Further ones wait for their turn."""
LONGEST_PLACE_S = 60.0
"""After this time, in seconds, an examination goes on without its place. One that lasts so long mostly waits for its bot, and what it
costs in all is bounded. So bots that dawdle hold up the others for no longer."""


class ExaminationPlaces:
    """Gives places in the order of arrival, and to each owner one examination at once."""

    def __init__(self, most: int = MOST_EXAMINATIONS, longest_s: float = LONGEST_PLACE_S) -> None:
        """An examination holds its place for at most `longest_s` seconds."""
        self._places = asyncio.Semaphore(most)
        self._longest_s = longest_s
        self._owners: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held by the one bot of each owner that has its turn; a lock that no bot holds or waits for is dropped."""

    @asynccontextmanager
    async def wait_for_place(self, owner: str) -> AsyncIterator[None]:
        """Waits until no other bot of the owner is examined and a place is free; this is the owner's turn for the whole context."""
        turn = self._owners.setdefault(owner, asyncio.Lock())
        async with turn:
            await self._places.acquire()
            place = _HeldPlace(self._places)
            timer = asyncio.get_running_loop().call_later(self._longest_s, place.give_back)
            try:
                yield
            finally:
                timer.cancel()
                place.give_back()


class _HeldPlace:
    """A place that is given back once, by the first caller."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_held = True

    def give_back(self) -> None:
        """Gives the place back, if it still is held."""
        if self._is_held:
            self._is_held = False
            self._places.release()
