"""Sets of duplicate deals at a real server: the same cards, and nothing given before the last match is over."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from harness import House, refusal_of
from harness.table import QUICK, Chair, Table
from harness.terminal import seatwise
from harness.wire import SOON_S

from seatwise.v1 import match_pb2, match_service_pb2, time_control_pb2
from seatwise_referee.verify import verify_lines

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Pool:
    """Two bots, and the matches of a set between them."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name

    async def create(self, number: int, size: int = 2, *, rounds: int = 1, request_id: str = "") -> Table:
        """A new match of the set between new bots who attend; nobody sits yet."""
        bots = [await self.house.bot() for _ in range(2)]
        attending = [await bot.attend() for bot in bots]
        request = self.request([bot.bot for bot in bots], number, size, rounds=rounds, request_id=request_id)
        admin = self.house.admin
        match = (await admin.matches.CreateMatch(request, metadata=admin.metadata, timeout=SOON_S)).match
        offers = [await each.offer(match.name) for each in attending]
        return Table(
            match, [Chair(bot, match.name, each.seat) for bot, each in zip(bots, offers, strict=True)]
        )

    def request(
        self, bots: list[str], number: int, size: int, *, rounds: int = 1, request_id: str = ""
    ) -> Any:
        return match_service_pb2.CreateMatchRequest(
            request_id=request_id,
            game="games/ugo",
            bots=bots,
            options={"rounds": str(rounds)},
            time_control=time_control_pb2.TimeControl(free_ms=QUICK),
            deal_set=match_pb2.DealSet(name=self.name, number=number, size=size),
        )

    async def refused(self, number: int, size: int = 2, **more: Any) -> str:
        """Why such a match is not created."""
        bots = [(await self.house.bot()).bot for _ in range(2)]
        request = self.request(bots, number, size, **more)
        admin = self.house.admin
        return (await refusal_of(admin.matches.CreateMatch(request, metadata=admin.metadata))).reason

    async def over(self) -> None:
        """Returns when the set is over: that follows the end of its last match in a moment."""
        async with asyncio.timeout(SOON_S):
            while not (await self.seen()).over:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def seen(self) -> match_service_pb2.GetDealSetResponse:
        """The set as everybody may see it."""
        request = match_service_pb2.GetDealSetRequest(name=self.name)
        seen: match_service_pb2.GetDealSetResponse = await self.house.wire().matches.GetDealSet(request)
        return seen


async def delivered(house: House, name: str) -> match_pb2.Match:
    """The match when it is over; a spectator may not follow it there."""
    async with asyncio.timeout(SOON_S):
        while not (match := await house.admin.match(name)).HasField("end_time"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return match


async def why_no_record(house: House, name: str) -> str:
    request = match_service_pb2.GetRecordRequest(name=name)
    return (await refusal_of(house.admin.matches.GetRecord(request, metadata=house.admin.metadata))).reason


async def why_no_view(house: House, name: str) -> str:
    try:
        async with asyncio.timeout(SOON_S):
            async for seen in house.admin.watch(name):
                raise AssertionError(f"a spectator was shown {seen}")
    except grpc.aio.AioRpcError as error:
        return str(error.details())
    return ""


async def test_nothing_of_a_set_is_given_before_its_last_match_is_over(house: House) -> None:
    pool = Pool(house, "sets/quiet")
    first = await pool.create(1)
    await first.sit()
    ends = await first.play_out()
    match = await delivered(house, first.name)
    assert [end.seed for end in ends] == [b"", b""]
    assert list(ends[0].result.points) == list(match.result.points)
    assert await why_no_record(house, first.name) == "SET_RUNNING"
    assert "shares its deals" in await why_no_view(house, first.name)
    second = await pool.create(2)
    assert "shares its deals" in await why_no_view(house, second.name)
    await second.sit()
    await second.play_out()
    await pool.over()
    records = [await house.admin.record(table.name) for table in (first, second)]
    assert [verdict.fault for verdict in verify_lines(records)] == [None, None]
    one, other = map(json.loads, records)
    assert one["deals"] == other["deals"]
    assert one["commitment"] == first.match.commitment.hex() != other["commitment"]


async def test_a_match_says_where_it_belongs_but_not_to_what_seed(house: House) -> None:
    pool = Pool(house, "sets/named")
    table = await pool.create(1, 3)
    match = await house.admin.match(table.name)
    assert (match.deal_set.name, match.deal_set.number, match.deal_set.size) == ("sets/named", 1, 3)
    seen = await pool.seen()
    assert (seen.size, list(seen.matches), seen.over) == (3, [table.name], False)


async def test_a_repeat_is_the_same_match(house: House) -> None:
    pool = Pool(house, "sets/repeated")
    table = await pool.create(1, request_id="same")
    request = pool.request(list(table.match.bots), 1, 2, request_id="same")
    again = await house.admin.matches.CreateMatch(request, metadata=house.admin.metadata)
    assert (again.match.name, again.match.commitment) == (table.name, table.match.commitment)


async def test_a_match_that_fits_no_set_is_refused(house: House) -> None:
    pool = Pool(house, "sets/strict")
    await pool.create(1)
    assert await pool.refused(1) == "ALREADY_EXISTS"
    assert await pool.refused(2, 3) == "INVALID_ARGUMENT"
    assert await pool.refused(2, rounds=2) == "INVALID_ARGUMENT"
    assert await pool.refused(3) == "INVALID_ARGUMENT"
    assert await pool.refused(0) == "INVALID_ARGUMENT"
    assert await Pool(house, "sets/Big").refused(1) == "INVALID_ARGUMENT"
    assert await Pool(house, "sets/big").refused(1, 1001) == "INVALID_ARGUMENT"


async def test_an_aborted_match_is_played_again_with_the_same_deals(house: House) -> None:
    pool = Pool(house, "sets/again")
    first, second = await pool.create(1), await pool.create(2)
    await house.admin.abort(first.name)
    await delivered(house, first.name)
    again = await pool.create(1)
    for table in (again, second):
        await table.sit()
        await table.play_out()
    await pool.over()
    records = [json.loads(await house.admin.record(table.name)) for table in (again, second)]
    assert records[0]["deals"] == records[1]["deals"]
    assert await why_no_record(house, first.name) == "MATCH_VOIDED"


async def test_a_closed_set_gives_what_it_has(house: House) -> None:
    pool = Pool(house, "sets/closed")
    table = await pool.create(1, 9)
    await table.sit()
    await table.play_out()
    await delivered(house, table.name)
    request = match_service_pb2.CloseDealSetRequest(name=pool.name)
    assert (await refusal_of(table.chairs[0].wire.matches.CloseDealSet(request))).reason == "TOKEN_MISSING"
    await house.admin.matches.CloseDealSet(request, metadata=house.admin.metadata)
    await pool.over()
    await house.admin.record(table.name)
    assert await pool.refused(2, 9) == "SET_OVER"


async def test_a_set_is_shown_and_closed_from_the_terminal(house: House) -> None:
    pool = Pool(house, "sets/terminal")
    table = await pool.create(1, 3)
    await table.sit()
    await table.play_out()
    await delivered(house, table.name)
    out = await said(house, "set", pool.name)
    assert table.name in out
    assert "1 of 3 matches were created; the set is not over" in out
    assert json.loads(await said(house, "set", pool.name, "--json"))["matches"] == [table.name]
    withheld = "Results withheld until their deal sets are over: 1"
    player = table.chairs[0].wire.token
    assert withheld in await said(house, "list", token="")
    assert withheld in await said(house, "set", pool.name, token="")
    assert withheld not in await said(house, "list") + await said(house, "list", token=player)
    assert await said(house, "close-set", pool.name) == "sets/terminal is over.\n"
    assert withheld not in await said(house, "list", token="")
    assert "the set is over" in await said(house, "set", pool.name)


async def test_a_match_of_a_set_is_created_from_the_terminal(house: House) -> None:
    bots = [(await house.bot()).bot for _ in range(2)]
    named = ("--deal-set", "sets/by-hand:2/4", "--option", "rounds=1")
    match = json.loads(await said(house, "create", "ugo", *bots, *named, "--json"))
    assert match["deal_set"] == {"name": "sets/by-hand", "number": 2, "size": 4}


async def said(house: House, *args: str, token: str | None = None) -> str:
    """What `seatwise match` prints, with the admin token if no other is given."""
    named = ("--address", house.address, "--token", house.admin.token if token is None else token)
    code, out, complained = await seatwise("match", *args, *named)
    assert code == 0, complained
    return out


@pytest.mark.parametrize("name", ["sets/none", "matches/x", ""])
async def test_a_set_that_is_not_there_is_not_found(house: House, name: str) -> None:
    get, close = (
        match_service_pb2.GetDealSetRequest(name=name),
        match_service_pb2.CloseDealSetRequest(name=name),
    )
    assert (await refusal_of(house.admin.matches.GetDealSet(get))).reason == "NOT_FOUND"
    call = house.admin.matches.CloseDealSet(close, metadata=house.admin.metadata)
    assert (await refusal_of(call)).reason == "NOT_FOUND"
