"""All that is fixed about a match before anybody sits down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from seatwise_referee.clock import TimeControl
from seatwise_referee.game import Json, Options

JOURNAL_FORMAT = "seatwise.journal/1"
"""How setups and entries are written. It changes when an older referee could not go on from a newer journal."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A match as it was created. Holds the seed: it stays inside until the match is over."""

    match: str
    """Format: matches/{id}."""

    game: str
    rules_version: str
    options: Options
    """Complete, as `Game.options` returns them."""

    bots: tuple[str, ...]
    """The players by seat. Format: bots/{bot}/versions/{version}."""

    time_control: TimeControl
    seed: bytes
    """32 bytes; the deals come from it and the seats' nonces."""

    durability: str = "fsync"
    """How safe an acknowledged move was: "fsync", "loss-allowed", or "none" at a local table."""

    def to_json(self) -> dict[str, Json]:
        """For the store; with the seed in it."""
        return {
            "match": self.match,
            "game": self.game,
            "rules_version": self.rules_version,
            "options": cast("dict[str, Json]", dict(self.options)),
            "bots": list(self.bots),
            "time_control": self.time_control.to_json(),
            "seed": self.seed.hex(),
            "durability": self.durability,
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> Setup:
        """The inverse of `to_json`."""
        return cls(
            match=str(json["match"]),
            game=str(json["game"]),
            rules_version=str(json["rules_version"]),
            options=cast("Options", json["options"]),
            bots=tuple(cast("list[str]", json["bots"])),
            time_control=TimeControl.from_json(cast("dict[str, Json]", json["time_control"])),
            seed=bytes.fromhex(str(json["seed"])),
            durability=str(json["durability"]),
        )
