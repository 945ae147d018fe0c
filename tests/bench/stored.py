"""What a server has to show: bots, matches, a ladder and a league, written as servers have left them."""

from __future__ import annotations

from seasons.one_season import league_of

from seatwise_referee.ending import Ending
from seatwise_referee.games.registry import default_time_control
from seatwise_referee.journal import canonical_json
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.ladder_settings import Ladder
from seatwise_server.ladder.published_table import LadderRow, encode_table
from seatwise_server.ladder.standings_history import encode_point
from seatwise_server.league.settings import Entrant
from seatwise_server.store import Store, new_client
from seatwise_server.store import results as stored_ladders

LADDER, LEAGUE = "ladders/bench", "leagues/bench"
BOTS = [f"bots/b{number}/versions/1" for number in range(60)]


async def store_competitions(url: str, results: int) -> None:
    """Registers bots, and writes a ladder and a league of theirs with so many results each."""
    client = new_client(url)
    store = Store.of(client)
    for bot in BOTS:
        await store.bots.register_bot(bot.split("/")[1], "1", "bench", "")
    await _store_ladder(store)
    await _store_league(store)
    for competition in (LADDER, LEAGUE):
        for number in range(results):
            await store.results.append_result(competition, _result(number, BOTS[:2]))
    await client.close_connections()


async def _store_ladder(store: Store) -> None:
    ladder = Ladder(LADDER, "ugo", 2, {"rounds": 2}, default_time_control("ugo"))
    await store.ladders.create_ladder(LADDER, ladder.to_bytes())
    rows = [
        LadderRow(bot, 25.5, 1.25, 40, 12.5, -20.0, 40.0, provisional=False, peers=(), off="") for bot in BOTS
    ]
    await store.ladders.publish_table(LADDER, 60, encode_table(rows))
    stored_ladders.HISTORY_GAP_MS = 0
    for results in range(60):
        await store.ladders.add_history_point(LADDER, encode_point(results, rows))


async def _store_league(store: Store) -> None:
    entrants = tuple(Entrant(f"bot{place}", bot) for place, bot in enumerate(BOTS[:4]))
    settings = league_of(entrants=entrants)
    await store.leagues.create_league(LEAGUE, canonical_json(settings.to_json()))


def _result(number: int, bots: list[str]) -> LoggedResult:
    endings = (Ending.COMPLETED, Ending.COMPLETED)
    return LoggedResult(1, f"matches/m{number}", tuple(bots), (30, 20), (1, 2), endings, "ab" * 32)
