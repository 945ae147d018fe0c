"""Describes the games of one entry point, in a process of its own: `python -m seatwise.kits.describe_package NAME VALUE OUT`.

The code of a package may hang, or end its interpreter. Here it stops nothing but its own description.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from typing import Any, Final

from seatwise.hosting import GameFault, HostedGame, HostedKit
from seatwise.kits.game_facts import GameFacts, PackageFacts, facts_of
from seatwise.kits.hosted_kit import complete_kit
from seatwise_referee.hosted.hosted_rules import HostedRules, guard_call

MOST_GAMES: Final = 1000
"""The most games of one entry point."""


def describe_package(point: EntryPoint) -> PackageFacts:
    """Return the facts of the games of an entry point. One wrong game of a family does not affect the others."""
    games: list[GameFacts] = []
    faults: list[str] = []
    try:
        for found in read_entry(point):
            try:
                games.append(_describe_game(found))
            except GameFault as fault:
                faults.append(str(fault))
    except GameFault as fault:
        faults.append(str(fault))
    return PackageFacts(tuple(games), tuple(faults))


def _describe_game(found: object) -> GameFacts:
    kit = complete_kit(found)
    HostedRules(kit.game)
    return facts_of(kit.game, kit.samples)


def read_entry(point: EntryPoint) -> Iterator[Any]:
    """Import what an entry point names, and yield what it gives. Raises `GameFault` for whatever that raises."""
    found = guard_call(point.value, lambda: _list_entry(point.load()))
    if len(found) > MOST_GAMES:
        raise GameFault(f"{point.value} gives more than {MOST_GAMES} games")
    yield from found


def _list_entry(found: Any) -> list[Any]:
    """Return what an entry point gives, as a list. May raise anything, because it runs foreign code."""
    if isinstance(found, type | HostedKit | HostedGame):
        return [found]
    if callable(found):
        return _list_entry(found())
    if isinstance(found, Iterable):
        return list(islice(found, MOST_GAMES + 1))
    return [found]


def main(name: str, value: str, out: str) -> None:
    """Write the facts into the file `out`, and end at once, whatever threads the package has left behind."""
    facts = describe_package(EntryPoint(name, value, ""))
    draft = Path(f"{out}.draft")
    draft.write_text(json.dumps(facts.to_json()))
    draft.replace(out)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
