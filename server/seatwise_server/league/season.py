"""One run of a league from its file to its season, with all that has to be up meanwhile and is ended after."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from seatwise.async_client import AsyncClient
from seatwise.bot_errors import UsageError
from seatwise.errors import AlreadyExistsError, NotFoundError
from seatwise.link.security import Security, SecurityOptions
from seatwise_server.competition.schedules.schedule import Schedule, SoFar
from seatwise_server.league import season_log
from seatwise_server.league.players import Players
from seatwise_server.league.processes import OwnServer, check_bot_file
from seatwise_server.league.progress import Screen
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import Runner
from seatwise_server.league.settings import Entrant, League

SERVER_PATIENCE_S = 30.0
"""A server that is started again is waited for so long."""
TABLES_A_CORE = 4
"""UGO! is all waiting for one another: more matches than cores keep the cores busy."""
LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class SeasonRun:
    """What a run has come to."""

    is_over: bool
    matches: int
    """Played in this run."""
    moves: int
    """Of these, as far as their records are here."""
    seconds: float
    """From the first match to the last."""


@dataclass(frozen=True, slots=True)
class LeagueServer:
    """The server that plays it."""

    address: str = ""
    """Empty for one of the league's own."""
    token: str = ""
    """An admin's, where it is not our own."""
    decks: tuple[str, ...] = ()
    """Files that our own server is to know."""
    security: SecurityOptions = field(default_factory=SecurityOptions)
    """How the way to it is kept secret."""


async def play_league(league: League, results: Path, where: LeagueServer, screen: Screen) -> SeasonRun:
    """Play what has not been played yet. Ctrl-C lets open matches end; a second one ends the run at once."""
    schedule = schedule_of(league)
    await asyncio.gather(*(check_bot_file(league, each) for each in league.entrants if each.is_local))
    new_name = f"leagues/{league.name[:LONGEST_NAME].rstrip('-')}-{secrets.token_hex(3)}"
    book = season_log.open_season_log(results, league, new_name)
    tables = usual_tables(league)
    async with AsyncExitStack() as stack:
        stack.callback(book.close)
        if is_over(schedule, book.season):
            return SeasonRun(True, 0, 0, 0.0)
        client = await stack.enter_async_context(_open_client(results, where))
        await client.admin.create_league(book.season.league, json.dumps(league.to_published_json()))
        tokens = {each.player: await _obtain_token(client.admin, league, each) for each in league.entrants}
        players = Players(
            league,
            client.address,
            tokens,
            book,
            results / "logs",
            tables,
            screen.tell,
            Security.resolve_options(**where.security),
        )
        await stack.enter_async_context(players)
        runner = Runner(league, schedule, book, client.admin, players, tables, on_progress=screen.show)
        with _ending_in_order(runner):
            return await _run_timed(runner)


def is_over(schedule: Schedule, season: season_log.Season) -> bool:
    """Return whether all is played and every record is here."""
    voids = {void.table for void in season.voids}
    has_records = all(result.match in season.records for result in season.results.values())
    return has_records and not schedule.due_matches(SoFar(season.results, voids))


def usual_tables(league: League) -> int:
    """Return how many matches to play at once. In a race against the clock no bot has to share its core."""
    cores = os.cpu_count() or 1
    return max(1, cores // league.seats) if league.game == "ubongo" else TABLES_A_CORE * cores


async def _run_timed(runner: Runner) -> SeasonRun:
    loop = asyncio.get_running_loop()
    began = loop.time()
    is_over = await runner.run()
    return SeasonRun(is_over, runner.played, runner.moves, loop.time() - began)


# The server


@dataclass(frozen=True, slots=True)
class _Server:
    address: str
    admin: AsyncClient


@asynccontextmanager
async def _open_client(results: Path, where: LeagueServer) -> AsyncIterator[_Server]:
    address, token = where.address, where.token
    async with AsyncExitStack() as stack:
        if not address:
            folder = results / "server"
            folder.mkdir(exist_ok=True)
            address = (await stack.enter_async_context(OwnServer(folder, where.decks))).address
            token = (folder / "admin.token").read_text().strip()
        admin = await stack.enter_async_context(
            AsyncClient(address, token, patience_s=SERVER_PATIENCE_S, **where.security)
        )
        yield _Server(address, admin)


async def _obtain_token(admin: AsyncClient, league: League, entrant: Entrant) -> str:
    """That of an entrant that we start, who is registered if need be; of another one none, but it must be there."""
    if not entrant.is_local:
        await _check_registered(admin, entrant)
        return ""
    _, name, _, version = entrant.player.split("/")
    request_id = hashlib.sha256(f"league/{league.name}/{entrant.player}".encode()).hexdigest()[:40]
    try:
        return (await admin.register_bot(name, version, f"league {league.name}", request_id)).token
    except AlreadyExistsError:
        raise UsageError(
            f"{entrant.player} belongs to somebody else on this server; give {entrant.name} another name or version in the league "
            f'file, or write registered = "{entrant.player}" if its owner is to run it'
        ) from None


async def _check_registered(admin: AsyncClient, entrant: Entrant) -> None:
    try:
        await admin.get_bot(entrant.player)
    except NotFoundError:
        raise UsageError(
            f"{entrant.player} is not registered on this server; its owner gets a token from the operator of the server"
        ) from None


@contextmanager
def _ending_in_order(runner: Runner) -> Iterator[None]:
    """The first signal lets open matches end, the second one ends us."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task

    def stop() -> None:
        if runner.is_stopping:
            task.cancel()
        runner.is_stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None  # who asked for it knows why
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
