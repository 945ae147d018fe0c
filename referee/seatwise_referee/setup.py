"""All that is fixed about a match before a bot sits down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from seatwise_referee.game import Json, Options
from seatwise_referee.shuffle import deal_seed, deal_seed_of_set
from seatwise_referee.time_control import TimeControl

JOURNAL_FORMAT = "seatwise.journal/1"
"""The format of setups and entries. It changes when an older referee could not continue a newer journal."""


PRICED, MEASURED = "priced", "measured"
"""The kinds of times of a race at a local table: prices for what a bot does, or real time."""


@dataclass(frozen=True, slots=True)
class DealSet:
    """The place of a match in its set of duplicate deals. It holds the seed of the set, so it is secret."""

    name: str
    """The name of the set: sets/{id}."""

    number: int
    """The number of this match in the set, from 1."""

    size: int
    seed: bytes
    """The seed of the set, 32 bytes. It gives away the deals of all its matches, so it is secret until the last is over."""

    def to_json(self) -> dict[str, Json]:
        """Return the set for the store and for records, with its seed."""
        return {"name": self.name, "number": self.number, "size": self.size, "seed": self.seed.hex()}

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> DealSet:
        """Return the set that was written so."""
        number, size = cast("int", json["number"]), cast("int", json["size"])
        return cls(str(json["name"]), number, size, bytes.fromhex(str(json["seed"])))


@dataclass(frozen=True, slots=True)
class Setup:
    """A match as it was created. It holds the seed, so it is secret until the match is over."""

    match: str
    """The name of the match: matches/{id}."""

    game: str
    rules_version: str
    options: Options
    """The game's options, as `Game.complete_options` returns them."""

    bots: tuple[str, ...]
    """The bots by seat, each as bots/{bot}/versions/{version}."""

    time_control: TimeControl
    seed: bytes
    """32 bytes. The deals follow from them and from the nonces of the seats."""

    durability: str = "fsync"
    """How safe an acknowledged move is: "fsync", "loss-allowed", or "none" at a local table."""

    deal_set: DealSet | None = None
    """The set of duplicate deals to which the match belongs, if any."""

    competition: str = ""
    """The competition for which the result counts: ladders/{id} or leagues/{id}; empty for none."""

    times: str = ""
    """In races at a local table, "priced" or "measured"; empty elsewhere, where times are real."""

    def deals_from(self, nonces: Iterable[bytes | None]) -> bytes:
        """Return the seed of the match's deals, given the nonces by seat."""
        if self.deal_set:
            return deal_seed_of_set(self.deal_set.seed)
        return deal_seed(self.seed, nonces)

    def to_json(self) -> dict[str, Json]:
        """Return the setup for the store, with its seed."""
        more: dict[str, Json] = {"deal_set": self.deal_set.to_json()} if self.deal_set else {}
        if self.competition:
            more["competition"] = self.competition
        if self.times:
            more["times"] = self.times
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
        """Return the setup that was written so. Raises `BadTimeControl` for limits that cannot be."""
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
            times=str(json.get("times", "")),
        )
