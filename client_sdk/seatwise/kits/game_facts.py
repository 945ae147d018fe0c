"""The facts of games from outside, as one process tells another: all that is known of a game without its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from seatwise.hosting import GameFault, HostedGame, HostedOption

_PLAIN_FACTS: Final = ("name", "title", "rules_version", "free_ms", "most_moves")
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
    values = {name: getattr(game, name) for name in _PLAIN_FACTS}
    return GameFacts(
        {
            **values,
            "rules_version": str(game.rules_version),
            "seats": [game.table_sizes[0], game.table_sizes[-1]],
            "options": {name: _option_to_json(option) for name, option in game.options.items()},
            "samples": dict(samples),
        }
    )


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
            self.options = {name: _option_from_json(each) for name, each in values["options"].items()}  # type: ignore[misc]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as wrong:
            raise GameFault(f"its facts cannot be read: {wrong!r:.200}") from None
