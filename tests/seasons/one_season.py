"""A season of a small league, played here without a server, as the season log of a run that is over."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from seatwise import season as bundles
from seatwise.local.table import LocalPlayer, LocalTable
from seatwise.samples import sample
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import seed_in_set
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import ScheduledMatch
from seatwise_server.league import season_log
from seatwise_server.league.naming import deal_name
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import Entrant, League

NAME = "leagues/small-a1b2c3"


def league_of(*names: str, **changes: Any) -> League:
    """A league of UGO! between samples, short enough for a test."""
    entrants = tuple(
        Entrant(f"{name}{place}", f"bots/{name}{place}/versions/1", name)
        for place, name in enumerate(names or ("random", "greedy", "greedy", "random"), start=1)
    )
    usual = {"name": "small", "game": "ugo", "format": "round-robin", "seats": 2, "entrants": entrants}
    options = {"rounds": 1}
    return League(**usual | {"options": options, "time": default_time_control("ugo")} | changes)


def played(folder: Path, league: League, most: int = 10**6) -> season_log.SeasonLog:
    """The league's season log in that folder, with so many matches in it, or all."""
    book = season_log.open_season_log(folder, league, NAME)
    schedule = schedule_of(league)
    while due := season_log.find_due_matches(schedule, book):
        for match in due:
            if len(book.season.results) >= most:
                return book
            result, record = _played(league, match, len(book.season.results) + 1)
            book.append_result(match.id, result)
            book.append_record(result.match, record)
    return book


def _played(league: League, scheduled: ScheduledMatch, seq: int) -> tuple[LoggedResult, str]:
    table = LocalTable(
        _setup(league, scheduled, seq), list(_players(league, scheduled)), lambda _: None, lambda it: it
    )
    table.play_match()
    line = (table.write_record() or b"").decode().strip()
    record = json.loads(line)
    result = LoggedResult(
        seq=seq,
        match=record["match"],
        bots=scheduled.bots,
        points=tuple(record["outcome"]["points"]),
        ranks=tuple(record["result"]["ranks"]),
        endings=tuple(record["endings"]),
        chain=record["chain"],
        deal=record.get("deal_set", {}).get("name", ""),
    )
    return result, line


def _setup(league: League, scheduled: ScheduledMatch, seq: int) -> Setup:
    deal, seed = scheduled.deal, _seed(scheduled.id)
    place = None
    if deal:
        secret = _seed(deal.set)
        place = DealSet(deal_name(NAME, deal.set), deal.number, deal.size, secret)
        seed = seed_in_set(secret, deal.number)
    return Setup(
        match=f"matches/m{seq}",
        game=league.game,
        rules_version=GAMES[league.game].rules_version,
        options=league.options,
        bots=scheduled.bots,
        time_control=league.time,
        seed=seed,
        deal_set=place,
    )


def _players(league: League, scheduled: ScheduledMatch) -> Iterator[LocalPlayer]:
    kinds = {each.player: each.bot for each in league.entrants}
    for seat, bot in enumerate(scheduled.bots):
        chance = random.Random(f"{scheduled.id}/{seat}")
        yield LocalPlayer(bot, sample(kinds[bot], league.game), _seed(f"{scheduled.id}/{seat}"), chance)


def _seed(text: str) -> bytes:
    return sha256(text.encode()).digest()


# Forging


def files_in(bundle: Path) -> dict[str, bytes]:
    """What is in it, less the manifest."""
    with bundles.open_bundle(bundle) as season:
        names = (*bundles.FILES, *([bundles.DRAWS] if season.has_draws else []))
        return {name: b"".join(season.read_lines(name)) for name in names}


def forged(bundle: Path, folder: Path, changed: Mapping[str, bytes]) -> Path:
    """A bundle with other files and with a manifest that goes with them."""
    paths = {}
    for name, content in (files_in(bundle) | dict(changed)).items():
        paths[name] = folder / name
        paths[name].write_bytes(content)
    bundles.write_bundle(folder / "forged.bundle", paths)
    return folder / "forged.bundle"
