"""LeagueService: what a league is, the log of its results, and the table that follows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio
from harness.table import Chair, Table
from seasons.one_season import league_of

from seatwise.async_client import AsyncClient
from seatwise.errors import AlreadyExistsError, BadRequestError, NotAllowedError, NotFoundError
from seatwise.v1.match_pb2 import Match
from seatwise_server.competition.schedules.schedule import SoFar
from seatwise_server.league.naming import request_id_of
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import logged_result_in
from seatwise_server.league.settings import Entrant, League
from seatwise_server.league.table import standings_of
from seatwise_server.services import leagues as league_operations

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def admin(house):
    """The SDK's client, as an admin."""
    async with AsyncClient(house.address, house.admin.token) as client:
        yield client


def settings_of(*bots: str, **changes: Any) -> str:
    """Of a league between these, as they are published."""
    entrants = tuple(Entrant(f"bot{place}", bot) for place, bot in enumerate(bots))
    return json.dumps(league_of(entrants=entrants, **changes).to_published_json())


async def played(house, admin: AsyncClient, league: str, bots, scheduled: str = "") -> str:
    """A match between those, for the league; that of the schedule, if it is named."""
    attending = [await bot.attend() for bot in bots]
    match = await created(admin, league, [bot.bot for bot in bots], scheduled)
    offers = [await each.offer(match.name) for each in attending]
    table = Table(
        match, [Chair(bot, match.name, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
    )
    await table.sit()
    await table.play_out()
    await house.admin.over(match.name)
    return match.name


async def created(admin: AsyncClient, league: str, bots: list[str], scheduled: str = "") -> Match:
    """As the runner does it."""
    request_id = request_id_of(league, scheduled) if scheduled else ""
    return await admin.create_match("ugo", bots, {"rounds": 1}, request_id=request_id, league=league)


async def played_out(house, admin: AsyncClient, name: str, settings: str, bots) -> SoFar:
    """The whole season, as its runner knows it. The first match due is void at its first attempt."""
    schedule, results, voids = schedule_of(League.from_json(json.loads(settings))), {}, set()
    by_name = {bot.bot: bot for bot in bots}
    while due := schedule.due_matches(SoFar(results, voids)):
        scheduled = due[0]
        if not voids:
            match = await created(admin, name, list(scheduled.bots), scheduled.id)
            await admin.abort_match(match.name)
            await house.admin.over(match.name)
            voids.add(scheduled.id)
            continue
        match = await played(house, admin, name, [by_name[bot] for bot in scheduled.bots], scheduled.id)
        results[scheduled.id] = logged_result_in(await admin.get_match(match), len(results) + 1)
    return SoFar(results, voids)


async def test_each_match_that_counts_is_in_the_log_of_its_league_once(house, admin):
    bots = [await house.bot(), await house.bot()]
    await admin.create_league("leagues/first", settings_of(*(bot.bot for bot in bots)))
    matches = [await played(house, admin, "leagues/first", bots) for _ in range(2)]
    found = (await admin.list_league_results("leagues/first")).results
    assert [result.match for result in found] == matches
    assert [result.place for result in found] == [1, 2]
    assert list(found[0].bots) == [bot.bot for bot in bots]
    assert (await admin.get_match(matches[0])).result.chain == found[0].chain


async def test_the_table_follows_from_the_log(house, admin):
    bots = [await house.bot(), await house.bot()]
    await admin.create_league("leagues/table", settings_of(*(bot.bot for bot in bots)))
    match = await admin.get_match(await played(house, admin, "leagues/table", bots))
    table = await admin.list_league_standings("leagues/table")
    assert table.results == 1
    best = max(range(2), key=lambda seat: match.result.points[seat])
    assert (table.standings[0].bot, table.standings[0].matches) == (match.bots[best], 1)
    assert table.standings[0].points == max(match.result.points)


async def test_a_table_is_worked_out_once_however_many_ask_until_there_is_more_to_count(
    house, admin, monkeypatch
):
    bots = [await house.bot(), await house.bot()]
    await admin.create_league("leagues/asked", settings_of(*(bot.bot for bot in bots)))
    worked_out: list[int] = []
    rows = league_operations._table_rows
    monkeypatch.setattr(
        league_operations, "_table_rows", lambda *args: worked_out.append(len(args[2])) or rows(*args)
    )
    for results in (0, 1):
        tables = await asyncio.gather(*[admin.list_league_standings("leagues/asked") for _ in range(20)])
        assert {table.results for table in tables} == {results}
        assert worked_out == [0, 1][: results + 1]
        await played(house, admin, "leagues/asked", bots)


@pytest.mark.parametrize(
    "plan",
    [{"format": "knockout", "rounds": 1}, {"format": "swiss", "rounds": 2}],
    ids=lambda plan: plan["format"],
)
async def test_byes_and_brackets_are_in_the_table_as_who_runs_the_league_has_them(house, admin, plan):
    bots = [await house.bot() for _ in range(3)]
    name = f"leagues/{plan['format']}"
    settings = settings_of(*(bot.bot for bot in bots), **plan)
    await admin.create_league(name, settings)
    season = await played_out(house, admin, name, settings, bots)
    shown = (await admin.list_league_standings(name)).standings
    rows = standings_of(League.from_json(json.loads(settings)), season)["rows"]
    assert [(row["rank"], row["player"]) for row in rows] == [(line.place, line.bot) for line in shown]
    for key in ("matches", "points", "score", "wins", "byes", "forfeits", "resigned"):
        assert [row[key] for row in rows] == [getattr(line, key) for line in shown], key
    assert sum(line.byes for line in shown) == plan["rounds"]


async def test_a_league_is_created_once_and_never_changes(house, admin):
    bots = [(await house.bot()).bot, (await house.bot()).bot]
    first = await admin.create_league("leagues/once", settings_of(*bots))
    assert await admin.create_league("leagues/once", settings_of(*bots)) == first
    assert (first.game, list(first.bots)) == ("games/ugo", bots)
    with pytest.raises(AlreadyExistsError, match="other settings"):
        await admin.create_league("leagues/once", settings_of(*bots, seed="2"))


@pytest.mark.parametrize("settings", ["", "[]", "{}", "{", '{"game": "chess"}', "[" * 100_000])
async def test_settings_of_no_league_are_refused(admin, settings):
    with pytest.raises(BadRequestError, match=r"league\.settings"):
        await admin.create_league("leagues/none", settings)


async def test_settings_from_which_no_schedule_follows_are_refused(admin):
    with pytest.raises(BadRequestError, match="at least 2"):
        await admin.create_league("leagues/none", settings_of("bots/a/versions/1"))


async def test_a_match_of_a_league_is_between_its_entrants(house, admin):
    bots = [(await house.bot()).bot for _ in range(3)]
    await admin.create_league("leagues/closed", settings_of(*bots[:2]))
    with pytest.raises(BadRequestError, match="does not take part"):
        await admin.create_match("ugo", bots[1:], league="leagues/closed")
    with pytest.raises(NotFoundError, match="there is no league"):
        await admin.create_match("ugo", bots[:2], league="leagues/nowhere")


async def test_only_an_admin_creates_a_league(house):
    bot = await house.bot()
    async with AsyncClient(house.address, bot.token) as client:
        with pytest.raises(NotAllowedError):
            await client.create_league("leagues/mine", settings_of(bot.bot, bot.bot))


@pytest.mark.parametrize(
    "name", ["", "first", "leagues/", "leagues/Big", "ladders/first", "leagues/" + "a" * 64]
)
async def test_a_name_that_is_none_is_refused(admin, name):
    with pytest.raises(BadRequestError, match=r"league\.name"):
        await admin.create_league(name, settings_of("bots/a/versions/1", "bots/b/versions/1"))
    with pytest.raises(NotFoundError):
        await admin.list_league_standings(name)
