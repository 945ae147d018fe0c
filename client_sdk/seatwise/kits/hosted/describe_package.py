"""Describes the games of one entry point, in a process of its own: `python -m seatwise.kits.hosted.describe_package NAME VALUE OUT`.

The code of a package may hang, or end its interpreter. Here it stops nothing but its own description.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from typing import Any, Final

from seatwise.hosting import GameFault, HostedGame, HostedKit, HostedOption
from seatwise.kits.hosted.kit import complete_kit
from seatwise_referee.hosted.hosted_rules import HostedRules, guard_call

_PLAIN_FACTS: Final = ("name", "title", "rules_version", "free_ms", "most_moves", "rules")
"""The facts that are plain values."""


@dataclass(frozen=True, slots=True)
class GameFacts:
    """All that is known of one game."""

    values: Mapping[str, Any]
    """By name, the facts as JSON."""

    @property
    def name(self) -> str:
        """The name of the game."""
        return str(self.values["name"])

    @property
    def samples(self) -> dict[str, str]:
        """The sample bots by name, each as "module:class"."""
        return dict(self.values["samples"])


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """The games of one entry point, and the faults of those that cannot be hosted."""

    games: tuple[GameFacts, ...]
    faults: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {"games": [dict(game.values) for game in self.games], "faults": list(self.faults)}

    @classmethod
    def from_json(cls, json: Any) -> PackageFacts:
        """Return the facts of this JSON. Raises `KeyError` or `TypeError` for anything else."""
        return cls(tuple(map(GameFacts, json["games"])), tuple(json["faults"]))


def facts_of(game: HostedGame[Any], samples: Mapping[str, str]) -> GameFacts:
    """Return the facts of a game that `HostedRules` has checked."""
    values = {name: getattr(game, name) for name in _PLAIN_FACTS} | {
        "rules_version": str(game.rules_version),
        "seats": [game.table_sizes[0], game.table_sizes[-1]],
        "options": {name: _option_to_json(option) for name, option in game.options.items()},
        "samples": dict(samples),
        "levels": list(game.house_bots),
    }
    return GameFacts(values)


def _option_to_json(option: HostedOption) -> dict[str, Any]:
    values = option.values
    told = [values.start, values.stop, values.step] if isinstance(values, range) else {"texts": list(values)}
    return {"default": option.default, "values": told}


def _option_from_json(json: Any) -> HostedOption:
    told = json["values"]
    return HostedOption(json["default"], tuple(told["texts"]) if isinstance(told, dict) else range(*told))


class DescribedGame(HostedGame[Any]):
    """Stands for a game whose code is not loaded in this process: it has the facts of the game, and nothing else."""

    def __init__(self, facts: GameFacts) -> None:
        """Stand for the game with these facts. Raises `GameFault` for facts that are none."""
        try:
            values = facts.values
            for name in _PLAIN_FACTS:
                setattr(self, name, values[name])
            self.table_sizes = range(values["seats"][0], values["seats"][1] + 1)  # type: ignore[misc]
            self.house_bots = dict.fromkeys(values["levels"], _refuse_to_play)  # type: ignore[misc]
            self.options = {name: _option_from_json(each) for name, each in values["options"].items()}  # type: ignore[misc]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as wrong:
            raise GameFault(f"its facts cannot be read: {wrong!r:.200}") from None


def _refuse_to_play(*_: Any) -> None:
    """Stand for a house bot: those who want its moves load the game."""
    raise GameFault("the code of the game is not loaded")


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
