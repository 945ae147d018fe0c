"""Runs a league from its file to its season, and starts and stops the server and the bots that it needs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from seatwise.async_client import AsyncClient
from seatwise.errors import AlreadyExistsError, NotFoundError, UsageError
from seatwise.kits import KITS
from seatwise.link.security import Security, SecurityOptions
from seatwise.units import UnitOptions, UnitRun
from seatwise_server.competition.schedules.schedule import Schedule
from seatwise_server.league import season_log
from seatwise_server.league.league_file import read_league
from seatwise_server.league.local_match import LocalSeason
from seatwise_server.league.local_runner import LocalRunner, derive_key, read_or_create_key
from seatwise_server.league.players import Players
from seatwise_server.league.processes import OwnServer, check_bot_files
from seatwise_server.league.progress import Screen
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.runner import Runner
from seatwise_server.league.settings import SERVER_TABLES, Entrant, League

SERVER_PATIENCE_S = 30.0
"""Seconds to wait for a server that restarts."""
TABLES_A_CORE = 4
"""Matches at once for each core. In UGO! most time is spent waiting, so more matches than cores keep the cores busy."""
LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class SeasonRun:
    """The outcome of a run."""

    is_over: bool
    matches: int = 0
    """The matches that were played in this run, void ones too."""
    moves: int = 0
    """The moves of these matches, as far as their records have arrived."""
    seconds: float = 0.0
    """The time from the first match to the last, in seconds."""
    results: int = 0
    """The results of the whole season so far."""
    expected: int = 0
    """The matches of the whole season, as far as is known now."""
    new_results: int = 0
    """The results of this run."""
    due: int = 0
    """The matches at local tables that may be played next."""


@dataclass(frozen=True, slots=True)
class LeagueServer:
    """The server on which the league is played."""

    address: str = ""
    """host:port, with or without a scheme; empty for a server that the league starts itself."""
    token: str = ""
    """The admin token; not needed for the league's own server."""
    decks: tuple[str, ...] = ()
    """Deck files for the league's own server."""
    security: SecurityOptions = field(default_factory=SecurityOptions)
    """The options of TLS for connections to it."""
    work: UnitOptions = field(default_factory=UnitOptions)
    """Where matches at local tables are played, and which of those that are due."""
    seed: str = ""
    """A text from which the deals at local tables follow; empty to draw it."""


def read_league_without(
    path: Path, names: Collection[str], results: Path, *, has_server: bool = False
) -> tuple[League, tuple[str, ...]]:
    """Read a league that is to be played without these entrants. Return it, and the players that it gives up.

    Before the first match they are left out. In a season that has begun with them a substitute resigns their matches. A season
    that has begun goes on where it began, at a server or at local tables. Raises `UsageError`.
    """
    begun = season_log.read_season(results)[0] if season_log.has_begun(results) else {}
    tables = begun.get("tables", SERVER_TABLES) if begun or has_server else ""
    league = read_league(path, names, tables)
    if names and begun:
        whole = read_league(path, (), tables)
        if begun == whole.to_json():
            if whole.has_local_tables:
                raise UsageError(
                    f"the season in {results} has begun with {', '.join(names)}, and at local tables nothing plays in place of a bot; "
                    "repair it, or begin another season with --results"
                )
            return whole, tuple(each.player for each in whole.entrants if each.name in names)
    return league, ()


async def play_league(
    league: League,
    results: Path,
    where: LeagueServer,
    screen: Screen,
    *,
    stops_at_walk_over: bool = False,
    gives_up: Collection[str] = (),
) -> SeasonRun:
    """Play the matches that are left. Ctrl-C lets open matches end; a second one ends the run at once.

    With `stops_at_walk_over` the run ends in the same way when a match is lost by walk-over. A substitute resigns the
    matches of the players that it `gives_up`.

    Raises `UsageError`, and `SeatwiseError` if the server refuses a call.
    """
    schedule = schedule_of(league)
    _check_local_options(league, results, where)
    await check_bot_files(league, {*_find_given_up(results), *gives_up})
    suffix = hashlib.sha256(derive_key(where.seed)).hexdigest()[:6] if where.seed else secrets.token_hex(3)
    new_name = f"leagues/{league.name[:LONGEST_NAME].rstrip('-')}-{suffix}"
    if where.work.out:
        book = season_log.copy_season_log(results, league, new_name)
    else:
        book = season_log.open_season_log(results, league, new_name)
    if league.has_local_tables:
        with closing(book):
            return await _play_locally(league, schedule, book, results, where, screen)
    for player in gives_up:
        if player not in book.season.given_up:
            book.give_up_entrant(player, "the organiser goes on without it")
    tables = usual_tables(league)
    async with AsyncExitStack() as stack:
        stack.callback(book.close)
        if is_over(schedule, book.season):
            return SeasonRun(True)
        address, admin = await stack.enter_async_context(_open_client(results, where))
        await admin.create_league(book.season.league, json.dumps(league.to_published_json()))
        tokens = {each.player: await _obtain_token(admin, league, each) for each in league.entrants}
        security, logs = Security.resolve_options(**where.security), results / "logs"
        players = await stack.enter_async_context(
            Players(league, address, tokens, book, logs, tables, screen.print_message, security)
        )
        runner = Runner(schedule, book, league, admin, players, tables, screen.show, stops_at_walk_over)
        with _ending_in_order(runner):
            return await _run_timed(runner)


def _find_given_up(results: Path) -> Collection[str]:
    """Return the players that an earlier run gave up. A log that cannot be read is refused when it is opened."""
    try:
        return season_log.read_season(results)[1].given_up
    except UsageError:
        return ()


def is_over(schedule: Schedule, season: season_log.Season) -> bool:
    """Return whether all matches have been played and every record has arrived."""
    has_records = all(result.match in season.records for result in season.results.values())
    return has_records and not schedule.due_matches(season.so_far)


def usual_tables(league: League) -> int:
    """Return how many matches to play at once. In a race against the clock no bot must share its core."""
    cores = os.cpu_count() or 1
    return max(1, cores // league.seats) if KITS[league.game].has_races else TABLES_A_CORE * cores


def _check_local_options(league: League, results: Path, where: LeagueServer) -> None:
    """Raise `UsageError` for options of local tables that do not fit this league."""
    if not league.has_local_tables:
        if where.seed or where.work != UnitOptions():
            raise UsageError(
                "--seed and the options of workers and parts are for local tables, and a server plays this league; "
                'write tables = "local" into its file'
            )
        return
    if where.address:
        raise UsageError(
            'the league has tables = "local", so no server plays it; leave --address out, or write tables = "server"'
        )
    if where.work.has_files and league.format == "ab-test":
        raise UsageError(
            "an A-B test has no parts, because it ends when it is clear; `seatwise compare` plays two bots in parts, "
            "and --on plays this test on a cluster"
        )
    if where.work.has_files and not (where.seed or season_log.has_begun(results)):
        raise UsageError("the parts of a season that has not begun need --seed: all must have the same deals")


async def _play_locally(
    league: League,
    schedule: Schedule,
    book: season_log.SeasonLog,
    results: Path,
    where: LeagueServer,
    screen: Screen,
) -> SeasonRun:
    if is_over(schedule, book.season):
        return SeasonRun(True)
    screen.print_message(
        "The matches are played at local tables, without a server, because all bots are trusted"
    )
    work = where.work
    key = read_or_create_key(results, where.seed, is_part=bool(work.out))
    season = LocalSeason(league, book.season.league, key, where.decks)
    due = season_log.find_due_matches(schedule, book) if work.has_files else ()
    plan = season.to_unit_plan(due)
    workers = work.make_workers(plan, len(due), None if work.out else results / "logs")
    part = (work.units or range(len(due))) if work.out else None
    with work.open_file(plan) as file:
        async with UnitRun(plan, workers, file=file) as run:
            runner = LocalRunner(schedule, book, season, run, screen, part, is_merge=bool(work.merge))
            with _ending_in_order(run):
                played = await _run_timed(runner)
    if not run.is_repeatable:
        screen.print_message("Not repeatable: a match that was played again had another result.")
    return replace(played, due=len(schedule.due_matches(book.season.so_far)))


async def _run_timed(runner: Runner | LocalRunner) -> SeasonRun:
    loop = asyncio.get_running_loop()
    began, before = loop.time(), len(runner.so_far.results)
    is_over = await runner.run()
    took_s, results = loop.time() - began, len(runner.so_far.results)
    expected = runner.schedule.expected_matches(runner.so_far)
    return SeasonRun(is_over, runner.played, runner.moves, took_s, results, expected, results - before)


# The server


@asynccontextmanager
async def _open_client(results: Path, where: LeagueServer) -> AsyncIterator[tuple[str, AsyncClient]]:
    """Yield the address of the server, which is started if necessary, and its admin's client."""
    address, token = where.address, where.token
    async with AsyncExitStack() as stack:
        if not address:
            folder = results / "server"
            folder.mkdir(exist_ok=True)
            address = (await stack.enter_async_context(OwnServer(folder, where.decks))).address
            token = (folder / "admin.token").read_text().strip()
        client = AsyncClient(address, token, patience_s=SERVER_PATIENCE_S, **where.security)
        yield address, await stack.enter_async_context(client)


async def _obtain_token(admin: AsyncClient, league: League, entrant: Entrant) -> str:
    """Return the token of a local entrant, which is registered if necessary; empty for one that others run and have registered."""
    if not entrant.is_local:
        try:
            await admin.get_bot(entrant.player)
        except NotFoundError:
            why = f"{entrant.player} is not registered on this server; its owner gets a token from the operator of the server"
            raise UsageError(why) from None
        return ""
    _, name, _, version = entrant.player.split("/")
    request_id = hashlib.sha256(f"league/{league.name}/{entrant.player}".encode()).hexdigest()[:40]
    try:
        return (await admin.register_bot(name, version, f"league {league.name}", request_id)).token
    except AlreadyExistsError:
        raise UsageError(
            f"{entrant.player} has another owner on this server; give {entrant.name} another name or version in the league "
            f'file, or write registered = "{entrant.player}" if its owner is to run it'
        ) from None


@contextmanager
def _ending_in_order(runner: Runner | UnitRun) -> Iterator[None]:
    """Handle SIGINT and SIGTERM: the first one lets open matches end, and the second one ends the run."""
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
        raise KeyboardInterrupt from None  # the person who pressed Ctrl-C needs no traceback
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
