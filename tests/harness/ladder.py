"""Bots on a ladder: they attend it, and play whatever they are offered, until the test is over."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from harness.house import House
from harness.table import QUICK, Chair
from harness.wire import Attending, Stream, Wire
from seatwise.v1 import ladder_pb2, ladder_service_pb2, ladder_service_pb2_grpc, time_control_pb2
from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.openskill_ratings import OpenskillRatings

LONGEST_S = 30.0


def recompute_ratings(results: Iterable[LoggedResult]) -> OpenskillRatings:
    """Compute the ratings from a whole log, of which everything is rated."""
    ratings = OpenskillRatings()
    for result in results:
        ratings.apply_result(result)
    return ratings


class Rung:
    """One ladder, as its operator and everybody else see it."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name
        self.stub = ladder_service_pb2_grpc.LadderServiceStub(house.admin.channel)

    async def create(self, seats: int = 2, *, game: str = "games/ugo", **more: Any) -> ladder_pb2.Ladder:
        """One round of UGO! a match, with limits that nobody waits for. All bots of the tests have one owner."""
        more = {"owners_together": True} | more
        limits = {"free_ms": QUICK, **more.pop("limits", {})}
        ladder = ladder_pb2.Ladder(
            name=self.name, game=game, seats=seats, options={"rounds": "1"},
            time_control=time_control_pb2.TimeControl(**limits), **more,
        )  # fmt: skip
        request = ladder_service_pb2.CreateLadderRequest(ladder=ladder)
        answer = await self.stub.CreateLadder(request, metadata=self.house.admin.metadata)
        created: ladder_pb2.Ladder = answer.ladder
        return created

    async def results(self) -> list[LoggedResult]:
        """All that count."""
        request = ladder_service_pb2.ListLadderResultsRequest(ladder=self.name, page_size=1000)
        answer = await self.stub.ListLadderResults(request)
        return [
            LoggedResult(each.place, each.match, tuple(each.bots), tuple(each.points), tuple(each.ranks),
                   tuple(each.endings), each.chain.hex())
            for each in answer.results
        ]  # fmt: skip

    async def until_results(self, count: int, within_s: float = LONGEST_S) -> list[LoggedResult]:
        """As soon as there are so many."""
        async with asyncio.timeout(within_s):
            while len(found := await self.results()) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return found

    async def standings(self, results: int = 0, within_s: float = LONGEST_S) -> Sequence[ladder_pb2.Standing]:
        """The table, as soon as so many results are in it."""
        request = ladder_service_pb2.ListStandingsRequest(ladder=self.name, page_size=1000)
        async with asyncio.timeout(within_s):
            while (shown := await self.stub.ListStandings(request)).results < results:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        standings: Sequence[ladder_pb2.Standing] = shown.standings
        return standings

    async def reinstate(self, bot: str, wire: Wire | None = None) -> None:
        """Lets it back on; asked for by the admin, or through another's connection."""
        request = ladder_service_pb2.ReinstateBotRequest(ladder=self.name, bot=bot)
        stub = ladder_service_pb2_grpc.LadderServiceStub(wire.channel) if wire else self.stub
        await stub.ReinstateBot(request, metadata=(wire or self.house.admin).metadata)


class Player:
    """A bot that attends one ladder and plays random legal moves; or sits down nowhere, if it is broken."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.attending: Attending | None = None
        self.is_broken = False
        self._seats: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def attend(self, ladder: str, max_matches: int = 1) -> None:
        """From now on, until `stop`."""
        self.attending = await self.wire.attend([ladder], max_matches)
        self._task = asyncio.create_task(self._play(self.attending))

    async def _play(self, attending: Attending) -> None:
        stream = self.wire.play()
        for count in itertools.count(1):
            await attending.until(lambda count=count: len(attending.offers) >= count, LONGEST_S * 10)
            offer = attending.offers[count - 1]
            if not self.is_broken:
                seat = asyncio.create_task(self._sit(Chair(self.wire, offer.match, offer.seat), stream))
                self._seats.add(seat)
                seat.add_done_callback(self._seats.discard)

    async def _sit(self, chair: Chair, stream: Stream) -> None:
        await chair.sit(stream)
        await chair.play_out(LONGEST_S)

    async def stop(self) -> None:
        """Leaves in the middle of everything."""
        tasks = [task for task in (self._task, *self._seats) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def players(house: House, ladder: str, count: int, max_matches: int = 1) -> AsyncIterator[list[Player]]:
    """So many, who attend the ladder as long as this lasts."""
    found = [Player(await house.bot()) for _ in range(count)]
    try:
        for each in found:
            await each.attend(ladder, max_matches)
        yield found
    finally:
        for each in found:
            await each.stop()


async def played_with_a_friend(house: House, name: str, matches: int = 240) -> Rung:
    """A ladder of five bots with results that nobody played: the second bot loses to the first on purpose."""
    rung, chance = Rung(house, name), Random(7)
    await rung.create(2)
    pairs = list(itertools.permutations([f"bots/b{number}/versions/1" for number in range(5)], 2))
    for number in range(matches):
        bots = pairs[number % len(pairs)]
        points = [chance.randrange(40), chance.randrange(40)]
        if set(bots) == {"bots/b0/versions/1", "bots/b1/versions/1"}:
            points = [60, 0] if bots[0].startswith("bots/b0") else [0, 60]
        ranks = tuple(1 + sum(other > own for other in points) for own in points)
        result = LoggedResult(0, f"matches/f{number}", bots, tuple(points), ranks, (Ending.COMPLETED,) * 2)
        await house.server.store.results.append_result(name, result)
    return rung
