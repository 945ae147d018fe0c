"""What a run of a league does at the server, where no process is needed to see it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from seasons.one_season import NAME, league_of

from seatwise.errors import WrongStateError
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.league import season_log
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import Runner
from seatwise_server.league.settings import Trial


class Server:
    """Gives the records of a set when it is closed, or complete."""

    def __init__(self, *complete: str) -> None:
        self.over = set(complete)
        self.closed: list[str] = []

    async def get_record(self, match: str) -> str:
        if match.rpartition("-")[0] not in self.over:
            raise WrongStateError("others may play the same deal", "SET_RUNNING")
        return "{}"

    async def close_deal_set(self, name: str) -> bool:
        self.closed.append(name)
        self.over.add(name)
        return True


def decided(folder: Path, league: Any, *played: str) -> season_log.SeasonLog:
    """The season log of a test, the first of the two ahead by what matters in all of these; each deal is called like its unit."""
    book = season_log.open_season_log(folder, league, NAME)
    for seq, table in enumerate(played, start=1):
        unit, bots = table.partition("-")[0], league.players if table.endswith("1") else league.players[::-1]
        points, ranks = ((2, 0), (1, 2)) if table.endswith("1") else ((0, 2), (2, 1))
        ends = ("COMPLETED", "COMPLETED")
        book.append_result(table, LoggedResult(seq, f"{unit}-{seq}", bots, points, ranks, ends, deal=unit))
    return book


async def test_a_half_played_unit_of_a_decided_test_is_closed(tmp_path):
    entrants = league_of("greedy", "random").entrants
    league = league_of(
        format="ab-test",
        deals="rotation",
        entrants=entrants,
        trial=Trial(least_units=2),
        is_trusted=True,
    )
    units = [f"u{number}" for number in range(1, 17)]
    book = decided(tmp_path, league, *(f"{unit}-s{at}" for unit in units for at in (1, 2)), "u17-s1")
    server: Any = Server(*units)
    players: Any = SimpleNamespace()
    runner = Runner(league, schedule_of(league), book, server, players, tables=2)
    assert await runner.run(), "the season is over"
    book.close()
    assert server.closed == ["u17"]
    assert len(book.season.records) == 33


async def test_a_deal_that_others_will_play_yet_stays_open(tmp_path):
    entrants = league_of("greedy", "random").entrants
    league = league_of(
        format="ab-test", deals="rotation", entrants=entrants, trial=Trial(least_units=4), is_trusted=True
    )
    book = decided(tmp_path, league, "u1-s1", "u1-s2", "u2-s1")
    server: Any = Server("u1")
    players: Any = SimpleNamespace()
    runner = Runner(league, schedule_of(league), book, server, players, tables=2, is_stopping=True)
    assert not await runner.run()
    book.close()
    assert (server.closed, len(book.season.records)) == ([], 2)
