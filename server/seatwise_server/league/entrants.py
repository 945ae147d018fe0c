"""Reads the entrants of a league file."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from seatwise.errors import UsageError
from seatwise.samples import SAMPLES
from seatwise_server.league.settings import Entrant
from seatwise_server.league.table_reader import TableReader
from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name, unify_owner

GO_ON = "to go on without this entrant, add --without and its name"


def read_entrants(
    top: TableReader, game: str, folder: Path, without: Collection[str] = ()
) -> tuple[Entrant, ...]:
    """Read all entrants but those `without`, and check that their names differ.

    Raises `LeagueFileError`, or `UsageError` if there is no entrant that is to be left out.
    """
    tables = top.read_tables("entrants")
    names = [_read_name(table.copy_reader()) for table in tables] if without else []
    without = [unify_owner(name) for name in without]
    if missing := [name for name in without if name not in names]:
        raise UsageError(f"--without: there is no entrant {missing[0]!r}; there are {', '.join(names)}")
    if without:
        tables = [table for table, name in zip(tables, names, strict=True) if name not in without]
    entrants = tuple(_read_entrant(table, game, folder) for table in tables)
    if len(entrants) < 2:
        why = f"there {'is 1' if entrants else 'are 0'}; a league has 2 or more, each under [[entrants]]"
        raise top.make_error("entrants", why)
    _check_names(tables, entrants)
    return entrants


def _read_name(table: TableReader) -> str:
    """Read only the name, whatever else the entrant may have."""
    if table.has_key("registered"):
        return _read_registered(table).name
    return table.read_text("name", _named_after(table.read_text("bot")))


def _read_entrant(table: TableReader, game: str, folder: Path) -> Entrant:
    owner = _read_person(table, "owner", "")
    if table.has_key("registered"):
        entrant = _read_registered(table)
    else:
        bot = table.read_text("bot", example='"greedy", or "my_bot.py:MyBot"')
        name = table.read_text("name", _named_after(bot), example='"anna"')
        entrant = Entrant(name, _read_player(table, name), _locate_bot(table, bot, game, folder))
    table.check_all_read()
    return replace(entrant, owner=owner)


def _read_registered(table: TableReader) -> Entrant:
    player = table.read_text("registered")
    try:
        name, _ = parse_bot_name(player)
    except BadBotName:
        why = f'is {player!r}; name a registered bot as in "bots/anna/versions/3"'
        raise table.make_error("registered", why) from None
    if table.has_key("bot"):
        why = "write either `bot`, which the runner starts, or `registered`, which others run"
        raise table.make_error("bot", why)
    return Entrant(_read_person(table, "name", name), player)


def _read_person(table: TableReader, key: str, default: str) -> str:
    """Read a name in any letters, in the one form in which the server has names, too."""
    text = table.read_text(key, default, example='"anna"')
    if text and not unify_owner(text):
        raise table.make_error(key, "has nothing that can be seen")
    return unify_owner(text)


def _read_player(table: TableReader, name: str) -> str:
    version = table.read_text("version", "1")
    try:
        return bot_name_for(name, version)
    except BadBotName as bad:
        key = "version" if str(bad).startswith("a bot's version") else "name"
        raise table.make_error(key, f"is {version if key == 'version' else name!r}; {bad}") from None


def _named_after(bot: str) -> str:
    """Return a name made from that of the bot: the class MyBot becomes my-bot."""
    from seatwise.cli.tokens import slug_of
    from seatwise.samples import bot_name

    return slug_of(bot_name(bot))


def _check_names(tables: list[TableReader], entrants: tuple[Entrant, ...]) -> None:
    seen: dict[str, int] = {}
    for place, (table, entrant) in enumerate(zip(tables, entrants, strict=True)):
        for what in (entrant.name, entrant.player):
            first = seen.setdefault(what, place)
            if first != place:
                why = f'{what!r} is entrants[{first}] already; give each a name of its own, as in name = "{entrant.name}-2"'
                raise table.make_error("name", why)


# Bots that the runner starts


def _locate_bot(table: TableReader, bot: str, game: str, folder: Path) -> str:
    """Return the bot in the form in which the runner starts it, with the absolute path of its file."""
    if bot in SAMPLES[game]:
        return bot
    file, colon, cls = bot.rpartition(":")
    if not colon or not file.endswith(".py"):
        samples = ", ".join(SAMPLES[game])
        why = f"is {bot!r}; the samples for {game} are {samples}; for your own bot write FILE.py:CLASS"
        raise table.make_error("bot", why)
    path = folder / file
    names = _names_in(table, path)
    if cls not in names and "*" not in names:
        there = ", ".join(sorted(names)) or "nothing"
        raise table.make_error("bot", f"{path} has no {cls!r}; it defines {there}")
    return f"{path.resolve()}:{cls}"


def _names_in(table: TableReader, path: Path) -> set[str]:
    """List the names that the file defines, as far as they can be seen without running it."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except OSError as error:
        why = f"cannot read {path}: {error.strerror}; paths start at the league file; {GO_ON}"
        raise table.make_error("bot", why) from None
    except (SyntaxError, ValueError) as error:
        raise table.make_error("bot", f"{path} is not a Python program: {error}; {GO_ON}") from None
    return {name for node in tree.body for name in _bound_by(node)}


def _bound_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [each.asname or each.name for each in names]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []
