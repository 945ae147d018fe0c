"""Reads a league file. Each error message states where the mistake is, and a correct form."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from seatwise.local.table import local_time_control
from seatwise.output import read_text_file
from seatwise_referee.game import BadOptions, RaceGame
from seatwise_referee.games.registry import GAMES, default_time_control
from seatwise_referee.time_control import LONGEST_LIMIT_MS, TimeControl
from seatwise_server.competition.schedules.schedule import BadSchedule
from seatwise_server.competition.standings.tie_breaks import TIE_BREAKS
from seatwise_server.competition.statistics.anytime_test import MOST_LEAST_POINTS, AnytimeTest
from seatwise_server.league.entrants import read_entrants
from seatwise_server.league.rules import FILE_SETTING_NAMES, LARGEST_TABLE, MOST_ROUNDS, schedule_of
from seatwise_server.league.settings import (
    DEAL_KINDS,
    LEAGUE_FORMATS,
    LOCAL_TABLES,
    SERVER_TABLES,
    TABLE_KINDS,
    WALK_OVERS,
    WITHDRAWAL_KINDS,
    Entrant,
    League,
)
from seatwise_server.league.table_reader import LeagueFileError, LeagueFileText, TableReader
from seatwise_server.resource_names import BadBotName, bot_name_for

TESTED = 2


def read_league(path: Path, without: Collection[str] = (), tables: str = "") -> League:
    """Read the league in that file, as if it had none of the entrants `without`. Raises `UsageError`.

    `tables` says where its matches are played if the file does not; if that is empty, it follows from the file.
    """
    source = LeagueFileText(str(path), read_text_file(path))
    try:
        values = tomllib.loads(source.text)
    except RecursionError:
        raise LeagueFileError(f"{path}: its brackets are nested too deeply") from None
    except ValueError as error:  # including a number of more digits than Python reads
        why = f"{path}: this is not TOML: {error}; see docs/league.md for an example"
        raise LeagueFileError(why) from None
    return _read_settings(TableReader(source, "", values), path.parent, without, tables)


def _read_settings(top: TableReader, folder: Path, without: Collection[str], tables: str) -> League:
    game = top.read_choice("game", GAMES)
    form = top.read_choice("format", LEAGUE_FORMATS, "round-robin")
    entrants = read_entrants(top, game, folder, without)
    is_trusted = top.read_flag("trust", False)
    usual = LOCAL_TABLES if is_trusted and _suits_local_tables(top, game, entrants) else SERVER_TABLES
    tables = top.read_choice("tables", TABLE_KINDS, tables or usual)
    league = League(
        name=_read_name(top),
        game=game,
        format=form,
        seats=_read_seats(top, game, form, entrants),
        entrants=entrants,
        rounds=top.read_integer("rounds", 0, least=0, most=MOST_ROUNDS),
        deals=top.read_choice("deals", DEAL_KINDS, "rotation" if form == "ab-test" else "travelling"),
        is_trusted=is_trusted,
        seed=top.read_text("seed", "1", example='"summer 2026"'),
        tie_breaks=_read_tie_breaks(top, form),
        challengers=_read_challengers(top, form, entrants),
        advance=_read_advance(top, form),
        withdrawals=top.read_choice("withdrawals", WITHDRAWAL_KINDS, WALK_OVERS),
        trial=_read_trial(top, form),
        options=_read_options(top, game),
        time=_read_local_time(top, game) if tables == LOCAL_TABLES else _read_time_control(top, game),
        tables=tables,
    )
    top.check_all_read()
    _check_trust(top, league)
    _check_schedule(top, league)
    return league


def _suits_local_tables(top: TableReader, game: str, entrants: tuple[Entrant, ...]) -> bool:
    """Return whether no other bots, no limits of time and no races need a server."""
    is_timed = top.has_key("time") or isinstance(GAMES[game], RaceGame)
    return not is_timed and all(each.is_local for each in entrants)


def _read_name(top: TableReader) -> str:
    name = top.read_text("name", example='"summer"')
    try:
        bot_name_for(name, "1")  # a league's name has the form of a bot's name
    except BadBotName:
        why = f"is {name!r}; at most 40 of a-z, 0-9 and -, the first one a letter"
        raise top.make_error("name", why) from None
    return name


def _read_seats(top: TableReader, game: str, form: str, entrants: tuple[Entrant, ...]) -> int:
    sizes = GAMES[game].table_sizes
    usual = 2 if form in ("knockout", "ab-test") else min(sizes[-1], len(entrants))
    seats = top.read_integer("seats", usual, least=1, most=1000)
    if seats not in sizes:
        raise top.make_error("seats", f"is {seats}; {game} is played by {sizes[0]} to {sizes[-1]}")
    if seats > len(entrants) and form != "ab-test":
        why = f"is {seats}, but there are {len(entrants)} entrants; no bot sits at a table twice"
        raise top.make_error("seats", why)
    if form == "ab-test" and len(entrants) != TESTED:
        why = f"an ab-test has 2 entrants, and this league has {len(entrants)}; name 2, or choose another format"
        raise top.make_error("format", why)
    return seats


def _read_challengers(top: TableReader, form: str, entrants: tuple[Entrant, ...]) -> tuple[str, ...]:
    names = tuple(each.name for each in entrants)
    if form == "gauntlet":
        return top.read_choices("challengers", names[:1], names)
    _refuse_key(top, "challengers", "gauntlet", form)
    return ()


def _read_tie_breaks(top: TableReader, form: str) -> tuple[str, ...]:
    if form == "knockout" and top.has_key("tie_breaks"):
        why = "a knockout is ordered by its bracket; remove this key, or choose another format"
        raise top.make_error("tie_breaks", why)
    return top.read_choices("tie_breaks", (), TIE_BREAKS)


def _read_advance(top: TableReader, form: str) -> int:
    if form == "knockout":
        return top.read_integer("advance", 1, least=1, most=LARGEST_TABLE)
    _refuse_key(top, "advance", "knockout", form)
    return 1


def _refuse_key(top: TableReader, key: str, needed: str, form: str) -> None:
    """Raise an error for a key that means nothing in this format, instead of ignoring it."""
    if top.has_key(key):
        why = f"only {_with_article(needed)} has this key, and this league is {_with_article(form)}"
        raise top.make_error(key, f'{why}; remove it, or write format = "{needed}"')


def _with_article(form: str) -> str:
    return f"an {form}" if form[0] == "a" else f"a {form}"


def _read_trial(top: TableReader, form: str) -> AnytimeTest:
    if form != "ab-test":
        _refuse_key(top, "test", "ab-test", form)
    table, usual = top.read_table("test"), AnytimeTest()
    least = usual.least_units
    trial = AnytimeTest(
        least_points=table.read_number("least_points", usual.least_points, least=0, most=MOST_LEAST_POINTS),
        alpha=table.read_number("alpha", usual.alpha, least=0, most=0.5),
        beta=table.read_number("beta", usual.beta, least=0, most=0.5),
        least_units=table.read_integer("least_units", least, least=least, most=10_000),
    )
    table.check_all_read()
    return trial


def _read_options(top: TableReader, game: str) -> Mapping[str, int | str]:
    table = top.read_table("options")
    given = table.take_rest()
    for key, value in given.items():
        try:
            GAMES[game].complete_options({key: value})
        except (BadOptions, TypeError, ValueError) as error:
            raise table.make_error(key, str(error)) from None
    try:
        return GAMES[game].complete_options(given)
    except BadOptions as error:
        raise top.make_error("options", str(error)) from None


def _read_time_control(top: TableReader, game: str) -> TimeControl:
    table, usual = top.read_table("time"), default_time_control(game)
    numbers: dict[str, Any] = {}
    for name in (each.name for each in fields(TimeControl) if each.name != "free_ms"):
        least = 1 if name == "setup_ms" or name.startswith("max_") else 0
        numbers[name] = table.read_integer(name, getattr(usual, name), least=least, most=LONGEST_LIMIT_MS)
    free = table.read_table("free_ms")
    paces = {
        pace: free.read_integer(pace, usual.free_ms.get(pace, ms), least=1, most=LONGEST_LIMIT_MS)
        for pace, ms in GAMES[game].paces.items()
    }
    free.check_all_read()
    table.check_all_read()
    return TimeControl(free_ms=paces, **numbers)


def _read_local_time(top: TableReader, game: str) -> TimeControl:
    """Return the limits of local tables, which no bot reaches."""
    if top.has_key("time"):
        why = 'at local tables no bot runs out of time; remove this table, or write tables = "server"'
        raise top.make_error("time", why)
    return local_time_control(game)


def _check_trust(top: TableReader, league: League) -> None:
    """Check that each bot can be kept from a deal that it knows, or is trusted, and that local tables have no other bots."""
    others = ", ".join(each.name for each in league.entrants if not each.is_local)
    if league.has_local_tables and others:
        why = f'is "local", but others run {others}; name a file for each, or write tables = "server"'
        raise top.make_error("tables", why)
    if league.has_local_tables and league.is_fresh:
        raise top.make_error(
            "tables",
            'is "local", where bots are not restarted for each match, and with deals = "rotation" a bot meets a deal again. Write '
            'trust = true if you trust them all, or deals = "travelling"',
        )
    if league.is_trusted and league.deals != "rotation" and others:
        why = f'with bots that others run it has an effect only with deals = "rotation"; here deals is {league.deals!r}'
        raise top.make_error("trust", why)
    if league.is_fresh and others:
        raise top.make_error(
            "deals",
            f'with "rotation" a bot meets a deal again, so it must be restarted for each match. The runner cannot restart '
            f'{others}. Write deals = "travelling", or trust = true if you trust them all',
        )


def _check_schedule(top: TableReader, league: League) -> None:
    try:
        schedule_of(league)
    except BadSchedule as bad:
        setting, _, what = str(bad).partition(": ")
        raise top.make_error(FILE_SETTING_NAMES.get(setting, setting), what) from None
