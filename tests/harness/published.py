"""A server that has something of everything to show: matches of each state, a ladder and a league with results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from seasons.one_season import league_of

from harness.house import House
from harness.ladder import Rung, players
from harness.table import Chair, Table
from harness.wire import Wire
from seatwise.async_client import AsyncClient
from seatwise.v1 import match_pb2
from seatwise_server.league.settings import Entrant

LADDER, LEAGUE, DEAL_SET = "ladders/main", "leagues/summer", "sets/round-1"


@dataclass(frozen=True, slots=True)
class Published:
    """What there is, by name."""

    matches: list[str]
    """Finished, in a set of deals that is not over, voided, running, waiting."""
    bots: list[str]
    token: str
    """Of the last of these bots, which plays no part in any of this."""


@asynccontextmanager
async def publishing(house: House) -> AsyncIterator[Published]:
    """All of it, as long as this lasts: one match goes on, and one waits for a bot that never comes."""
    bots = [await house.bot(), await house.bot()]
    names = [bot.bot for bot in bots]
    async with AsyncClient(house.address, house.admin.token) as admin:
        await admin.create_league(LEAGUE, _settings(names))
        finished = await _play(admin, bots, league=LEAGUE)
        await house.admin.over(finished)
        deal_set = match_pb2.DealSet(name=DEAL_SET, number=1, size=2)
        in_a_set = await _play(admin, bots, deal_set=deal_set)
    await _play_on_a_ladder(house)
    absent, stranger = await house.admin.register(), await house.admin.register()
    voided, waiting = [await house.admin.create([names[0], absent.bot]) for _ in range(2)]
    await house.admin.abort(voided.name)
    async with house.table(bank_ms=600_000) as running:
        await running.sit()
        await running.asked()
        matches = [finished, in_a_set, voided.name, running.name, waiting.name]
        yield Published(matches, [*names, absent.bot, stranger.bot], stranger.token)


def _settings(bots: list[str]) -> str:
    entrants = tuple(Entrant(f"bot{place}", bot) for place, bot in enumerate(bots))
    return json.dumps(league_of(entrants=entrants).to_published_json())


async def _play(admin: AsyncClient, bots: Sequence[Wire], **how: Any) -> str:
    """A whole match of one round; its name."""
    attending = [await bot.attend() for bot in bots]
    match = await admin.create_match("ugo", [bot.bot for bot in bots], {"rounds": 1}, **how)
    offers = [await each.offer(match.name) for each in attending]
    chairs = [Chair(bot, match.name, offer.seat) for bot, offer in zip(bots, offers, strict=True)]
    table = Table(match, chairs)
    await table.sit()
    await table.play_out()
    return match.name


async def _play_on_a_ladder(house: House) -> None:
    rung = Rung(house, LADDER)
    await rung.create()
    async with players(house, LADDER, 2):
        await rung.standings(results=2)
