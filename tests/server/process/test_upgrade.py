"""Two versions of the server side by side: each referee plays what it knows, and a match waits for one that does."""

from __future__ import annotations

import asyncio
import signal

import pytest
from harness import REFEREE, Chair, House, Seats, endings, fleet, until

from seatwise_server.play.seat_offers import GIVE_BACK_S

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120), pytest.mark.slow]

NEXT_RULES = """
from seatwise_referee.games.registry import GAMES
type(GAMES["ugo"]).rules_version = "99"
"""
NEXT_JOURNAL = """
import seatwise_referee.setup
seatwise_referee.setup.JOURNAL_FORMAT = "seatwise.journal/99"
"""
PATIENCE_S = 60.0
"""Both kinds take the match in turn, until one of them can play it."""


async def waiting(house: House) -> Seats:
    """A match whose bots are there; no referee is looked for yet."""
    bots = [await house.bot() for _ in range(2)]
    attending = [await bot.attend() for bot in bots]
    hour = {"card": 3_600_000, "arrange": 3_600_000}
    match = await house.admin.create([bot.bot for bot in bots], free_ms=hour, setup_ms=3_600_000)
    seat_of = {bot: seat for seat, bot in enumerate(match.bots)}
    chairs = [Chair(bot, match.name, seat_of[bot.bot]) for bot in bots]
    return Seats(match, bots, attending, chairs, "")


@pytest.mark.parametrize("version", [NEXT_RULES, NEXT_JOURNAL], ids=["rules", "journal"])
async def test_a_match_waits_for_a_referee_that_knows_how_it_is_played(version):
    async with fleet(referees=0) as (processes, house):
        newer = await processes.start(*REFEREE, before=version)
        seats = await waiting(house)
        await until(lambda: [it for it in newer.log if it["event"] == "match_of_another_version"])
        older = await processes.start(*REFEREE)
        await seats.follow(1, PATIENCE_S)
        assert seats.address == older.address
        older.signal(signal.SIGTERM)
        assert await older.ended() == 0
        await asyncio.sleep(GIVE_BACK_S)
        again = await processes.start(*REFEREE)
        await seats.follow(2, PATIENCE_S)
        assert seats.address == again.address
        await seats.table.play_out()
        match = await house.admin.over(seats.match.name)
        assert endings(match) == ["COMPLETED"] * 2
        await house.admin.record(seats.match.name)
        await seats.drop()
