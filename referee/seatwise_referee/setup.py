"""All that is fixed about a match before anybody sits down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from seatwise_referee.game import Json, Options
from seatwise_referee.shuffle import deal_seed, deal_seed_of_set
from seatwise_referee.time_control import TimeControl

JOURNAL_FORMAT = "seatwise.journal/1"
"""How setups and entries are written. It changes when an older referee could not go on from a newer journal."""


@dataclass(frozen=True, slots=True)
class DealSet:
    """A match's place among those that are played with the same deals. Holds the seed of them all."""

    name: str
    """Format: sets/{id}."""

    number: int
    """Which of the set's matches this is, from 1."""

    size: int
    """How many matches the set has."""

    seed: bytes
    """32 bytes. It tells the deals of all of them: it stays inside until the last is over."""

    def to_json(self) -> dict[str, Json]:
        """For the store and for records; with the seed in it."""
        return {"name": self.name, "number": self.number, "size": self.size, "seed": self.seed.hex()}

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> DealSet:
        """The inverse of `to_json`."""
        number, size = cast("int", json["number"]), cast("int", json["size"])
        return cls(str(json["name"]), number, size, bytes.fromhex(str(json["seed"])))


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

    deal_set: DealSet | None = None
    """Where the match shares its deals with others."""

    competition: str = ""
    """Whose table the result counts for: ladders/{id} or leagues/{id}; nobody's if empty."""

    def deals_from(self, nonces: Iterable[bytes | None]) -> bytes:
        """The seed of the match's deals."""
        if self.deal_set:
            return deal_seed_of_set(self.deal_set.seed)
        return deal_seed(self.seed, nonces)

    def to_json(self) -> dict[str, Json]:
        """For the store; with the seed in it."""
        more: dict[str, Json] = {"deal_set": self.deal_set.to_json()} if self.deal_set else {}
        if self.competition:
            more["competition"] = self.competition
        return {
            "match": self.match,
            "game": self.game,
            "rules_version": self.rules_version,
            "options": cast("dict[str, Json]", dict(self.options)),
            "bots": list(self.bots),
            "time_control": self.time_control.to_json(),
            "seed": self.seed.hex(),
            "durability": self.durability,
            **more,
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> Setup:
        """The inverse of `to_json`."""
        in_set = cast("dict[str, Json] | None", json.get("deal_set"))
        return cls(
            match=str(json["match"]),
            game=str(json["game"]),
            rules_version=str(json["rules_version"]),
            options=cast("Options", json["options"]),
            bots=tuple(cast("list[str]", json["bots"])),
            time_control=TimeControl.from_json(cast("dict[str, Json]", json["time_control"])),
            seed=bytes.fromhex(str(json["seed"])),
            durability=str(json["durability"]),
            deal_set=DealSet.from_json(in_set) if in_set else None,
            competition=str(json.get("competition", "")),
        )
