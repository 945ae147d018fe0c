"""Created matches: the oldest first for each bot, and side by side where they share none."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import CreatedMatch
from seatwise_server.store import Proposal


class World:
    """Bots with so many places each, matches that wait for them, and a store that answers with the next turn of the loop."""

    def __init__(self, places: dict[str, int], **matches: str) -> None:
        self.places = places
        self.most = dict.fromkeys(places, 9)
        self.waiting = dict(matches)
        self.seated: list[str] = []
        self.at_once = self.most_at_once = 0

    async def front_of(self, _: str, __: int) -> list[str]:
        return list(self.waiting)

    async def most_matches(self, bots: Collection[str]) -> dict[str, int]:
        return {bot: self.most[bot] for bot in bots}

    async def setup_of(self, match: str) -> Any:
        return SimpleNamespace(game="ugo", bots=tuple(self.waiting[match]))

    async def count_free_tables(self, _: object) -> int:
        return 100

    async def propose_these(self, _: str, match: str) -> Proposal:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        return Proposal(match, 0, ())

    async def missing_bot(self, bots: Sequence[str]) -> str | None:
        return next((bot for bot in bots if not self.places[bot]), None)

    async def close_if_handed_over(self, _: str, __: Proposal) -> bool:
        return False

    async def seat_created(self, proposal: Proposal, created: CreatedMatch) -> str | None:
        bots = created.bots
        missing = await self.missing_bot(bots)
        self.at_once -= 1
        if missing is None:
            self.seated.append(proposal.match)
            for bot in bots:
                self.places[bot] -= 1
        return missing


def pairing(world: World) -> Pairing:
    store: Any = SimpleNamespace(queues=world, attendances=world)
    found = Pairing(store, world, {}, SimpleNamespace())  # type: ignore[arg-type]
    found._capacity = found._proposals = world  # type: ignore[assignment]
    return found


async def test_those_that_share_no_bot_are_seated_together() -> None:
    world = World(dict.fromkeys("abcdef", 9), m1="ab", m2="cd", m3="ef", m4="ac", m5="bd")
    await pairing(world)._pair_created(list(world.waiting))
    assert sorted(world.seated) == ["m1", "m2", "m3", "m4", "m5"]
    assert world.most_at_once == 3


async def test_a_bots_last_place_is_the_oldest_matchs() -> None:
    world = World({"a": 1, "b": 2, "c": 1, "d": 1}, m1="ab", m2="bc", m3="cd")
    await pairing(world)._pair_created(list(world.waiting))
    assert world.seated == ["m1", "m2"], "m3 may not take from m2 the last place of c"


async def test_a_bot_that_is_not_to_be_had_keeps_only_its_own_matches_waiting() -> None:
    world = World({"a": 0, "b": 9, "c": 9, "d": 9}, m1="ab", m2="ac", m3="bc", m4="bd")
    await pairing(world)._pair_created(list(world.waiting))
    assert world.seated == ["m3", "m4"]


async def test_bots_are_awaited_if_their_match_waits_only_for_other_matches_to_end() -> None:
    world = World({"a": 0, "b": 9, "c": 9, "d": 0, "e": 9}, m1="ab", m2="cd", m3="ce")
    world.most["d"] = 0  # it drains
    awaited = await pairing(world)._pair_created(list(world.waiting))
    assert world.seated == ["m3"]
    assert awaited == {"a", "b"}
