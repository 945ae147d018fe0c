"""What a run of a league does at the server, where no process is needed to see it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from seasons.one_season import NAME, league_of

from seatwise.errors import WrongStateError
from seatwise.v1.match_pb2 import Match
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.statistics.anytime_test import LEAST_UNITS
from seatwise_server.league import runner as runner_module
from seatwise_server.league import season_log
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import Runner
from seatwise_server.league.settings import Entrant


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
        best = 2 + int(unit[1:]) % 3
        points, ranks = ((best, 0), (1, 2)) if table.endswith("1") else ((0, best), (2, 1))
        ends = ("COMPLETED", "COMPLETED")
        book.append_result(table, LoggedResult(seq, f"{unit}-{seq}", bots, points, ranks, ends, deal=unit))
    return book


async def test_a_half_played_unit_of_a_decided_test_is_closed(tmp_path):
    entrants = league_of("greedy", "random").entrants
    league = league_of(
        format="ab-test",
        deals="rotation",
        entrants=entrants,
        is_trusted=True,
    )
    units = [f"u{number}" for number in range(1, LEAST_UNITS + 1)]
    book = decided(
        tmp_path, league, *(f"{unit}-s{at}" for unit in units for at in (1, 2)), f"u{LEAST_UNITS + 1}-s1"
    )
    server: Any = Server(*units)
    players: Any = SimpleNamespace()
    runner = Runner(schedule_of(league), book, league, server, players, tables=2)
    assert await runner.run(), "the season is over"
    book.close()
    assert server.closed == [f"u{LEAST_UNITS + 1}"]
    assert len(book.season.records) == 2 * LEAST_UNITS + 1


async def test_a_deal_that_others_will_play_yet_stays_open(tmp_path):
    entrants = league_of("greedy", "random").entrants
    league = league_of(format="ab-test", deals="rotation", entrants=entrants, is_trusted=True)
    book = decided(tmp_path, league, "u1-s1", "u1-s2", "u2-s1")
    server: Any = Server("u1")
    players: Any = SimpleNamespace()
    runner = Runner(schedule_of(league), book, league, server, players, tables=2, is_stopping=True)
    assert not await runner.run()
    book.close()
    assert (server.closed, len(book.season.records)) == ([], 2)


class Dodged(Server):
    """The first entrant attends and sits down in no match; the others win, the later the stronger."""

    def __init__(self, absent: str, excuse: str = "") -> None:
        super().__init__()
        self.absent, self.excuse = absent, excuse
        self.created: list[tuple[float, tuple[str, ...]]] = []

    async def create_match(self, _game: str, bots: tuple[str, ...], *_: object) -> Match:
        self.created.append((time.time(), bots))
        match = Match(name=f"matches/m{len(self.created)}", bots=bots, end_time=Timestamp(seconds=1))
        if self.absent in bots:
            match.state, match.void_reason = Match.STATE_VOIDED, "TOO_FEW_SAT"
            match.absent_seats.append(bots.index(self.absent))
            match.absence_excuse = self.excuse
            return match
        match.state = Match.STATE_FINISHED
        order = sorted(bots)
        match.result.points.extend(order.index(bot) for bot in bots)
        match.result.ranks.extend(len(bots) - order.index(bot) for bot in bots)
        match.result.endings.extend([1] * len(bots))
        return match

    async def get_record(self, _: str) -> str:
        return "{}"


async def test_a_match_that_a_bot_misses_is_repeated_at_the_end_of_the_round_and_then_lost(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(runner_module, "REPEAT_AFTER_S", 0.5)
    entrants = tuple(Entrant(f"e{n}", f"bots/e{n}/versions/1") for n in range(4))
    league = league_of(entrants=entrants, format="knockout", deals="none")
    book = season_log.open_season_log(tmp_path, league, NAME)
    server: Any = Dodged(league.players[0])
    players: Any = SimpleNamespace(note_completed=lambda _: None, give_up=give_up_nobody)
    schedule = schedule_of(league)
    assert await Runner(schedule, book, league, server, players, tables=2).run()
    book.close()
    met = [{bot.split("/")[1] for bot in bots} for _, bots in server.created]
    assert [{"e0", "e3"}, {"e0", "e3"}, {"e2", "e3"}] == [each for each in met if each != {"e1", "e2"}]
    assert met[-2:] == [{"e0", "e3"}, {"e2", "e3"}], "the repeat comes at the end of the round"
    assert server.created[-2][0] >= book.season.voids[0].at_s + 0.5
    assert schedule.final_order(book.season.so_far)[0] == ("bots/e3/versions/1",)


async def give_up_nobody(_players: object, _why: str) -> None:
    """The runner starts none of them."""


class Slow(Dodged):
    """Each match ends some time after it was created; the calls that ask for it are counted."""

    def __init__(self, took_s: float) -> None:
        super().__init__(absent="")
        self.took_s, self.looks = took_s, 0
        self.ends: dict[str, tuple[float, Match]] = {}

    async def create_match(self, game: str, bots: tuple[str, ...], *more: object) -> Match:
        over = await super().create_match(game, bots, *more)
        self.ends[over.name] = time.monotonic() + self.took_s, over
        return Match(name=over.name, bots=bots, state=Match.STATE_RUNNING)

    async def get_match(self, name: str) -> Match:
        self.looks += 1
        end_s, over = self.ends[name]
        return over if time.monotonic() >= end_s else Match(name=name, state=Match.STATE_RUNNING)


async def test_a_match_is_not_asked_for_long_before_its_usual_end(tmp_path):
    entrants = tuple(Entrant(f"e{n}", f"bots/e{n}/versions/1") for n in range(4))
    league = league_of(entrants=entrants, seats=4, deals="none", rounds=4)
    book = season_log.open_season_log(tmp_path, league, NAME)
    server: Any = Slow(1.0)
    players: Any = SimpleNamespace(note_completed=lambda _: None)
    server.over.add("matches/m1".rpartition("-")[0])
    runner = Runner(schedule_of(league), book, league, server, players, tables=1)
    looks = []
    runner.on_progress = lambda _: looks.append(server.looks)
    assert await runner.run()
    book.close()
    first, *later = [after - before for before, after in zip([0, *looks], looks, strict=False)]
    assert max(later) < first, "nothing is known of the first match"
    assert runner.usual_s >= 1.0
