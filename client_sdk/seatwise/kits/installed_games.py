"""Finds the games from outside: packages that are installed here and name a game in an entry point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

from seatwise.hosting import GameFault, HostedGame, HostedKit
from seatwise.kits.game_kit import GameKit
from seatwise.kits.hosted_kit import make_hosted_kit
from seatwise_referee.hosted.hosted_rules import HostedRules, guard_call

HOSTED_GAMES: Final = "seatwise.hosted_games"
"""The group of entry points in which packages name their games."""

log = logging.getLogger("seatwise")


class RefusedGame(NamedTuple):
    """A game, or a whole package, that is installed and cannot be hosted."""

    entry: str
    """The entry point, as in "leduc = seatwise_leduc:Leduc"."""
    why: str


class InstalledGames(NamedTuple):
    """The games from outside that are installed here."""

    kits: tuple[GameKit, ...]
    refused: tuple[RefusedGame, ...]


def find_installed_games(taken: Collection[str]) -> InstalledGames:
    """Return the games that are installed. A package that fails is refused, and affects no other.

    Args:
        taken: The names that no game from outside may have.
    """
    kits: dict[str, GameKit] = {}
    refused: list[RefusedGame] = []
    for point in sorted(entry_points(group=HOSTED_GAMES), key=lambda point: (point.name, point.value)):
        package = point.dist.name if point.dist else ""
        for make in _kits_of(point, package):
            try:
                kit = make()
                if kit.name in taken or kit.name in kits:
                    raise GameFault(f"there is another game {kit.name}")
                kits[kit.name] = kit
            except GameFault as fault:
                refused.append(RefusedGame(f"{point.name} = {point.value}", str(fault)))
                log.warning("the game %s = %s is not hosted: %s", point.name, point.value, fault)
    return InstalledGames(tuple(kits.values()), tuple(refused))


def _kits_of(point: EntryPoint, package: str) -> Iterator[Callable[[], GameKit]]:
    """Yield a maker of each kit of an entry point, so that one wrong game of a family does not affect the others."""
    try:
        found = guard_call(point.value, lambda: _list_entry(point.load()))
    except GameFault as fault:
        text = str(fault)
        yield lambda: _raise_fault(text)
        return
    for each in found:
        yield lambda each=each: make_kit(each, package)  # type: ignore[misc]  # a default binds it now


def _raise_fault(text: str) -> GameKit:
    raise GameFault(text)


def _list_entry(found: Any) -> list[Any]:
    """Return what an entry point gives, as a list. May raise anything, because it runs foreign code."""
    if isinstance(found, type | HostedKit | HostedGame):
        return [found]
    if callable(found):
        return _list_entry(found())
    if isinstance(found, Iterable):
        return list(found)
    return [found]


def make_kit(found: object, package: str = "") -> GameKit:
    """Return the kit for a `HostedKit`, a `HostedGame` or a class derived from it. Raises `GameFault` for anything else."""
    if isinstance(found, type) and issubclass(found, HostedGame):
        found = HostedKit(guard_call(found.__name__, found))
    if isinstance(found, HostedGame):
        found = HostedKit(found)
    if not isinstance(found, HostedKit) or not isinstance(found.game, HostedGame):
        raise GameFault(f"{found!r:.60} is neither a class derived from HostedGame nor a HostedKit")
    rules = HostedRules(found.game, package)
    return make_hosted_kit(rules, rules.title, dict(found.samples))


__all__ = ["HOSTED_GAMES", "InstalledGames", "RefusedGame", "find_installed_games", "make_kit"]
