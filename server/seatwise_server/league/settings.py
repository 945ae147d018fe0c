"""What a league is, once its file has been read: all of it is fixed before the first match."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import canonical_json
from seatwise_referee.time_control import TimeControl
from seatwise_server.competition.schedules.schedule import Duplicate
from seatwise_server.competition.standings.tie_breaks import TIE_BREAKS

FORMATS = ("round-robin", "swiss", "knockout", "gauntlet", "ab-test")
DEALS = tuple(str(each) for each in Duplicate)


@dataclass(frozen=True, slots=True)
class Entrant:
    """A bot that takes part."""

    name: str
    """As the report calls it."""
    player: str
    """`bots/<name>/versions/<version>`."""
    bot: str = ""
    """The sample or FILE.py:CLASS that the runner starts; empty for a bot that others run."""

    @property
    def is_local(self) -> bool:
        """Whether the runner starts it."""
        return bool(self.bot)


@dataclass(frozen=True, slots=True)
class Trial:
    """The question that an A-against-B test answers."""

    least_points: float = 2.0
    """The smallest difference of mean points a match that would matter."""
    alpha: float = 0.05
    """How often a difference may be claimed where there is none."""
    beta: float = 0.05
    """How often one of `least_points` may be missed."""
    least_units: int = 16
    """Before so many there is no verdict."""

    def to_json(self) -> dict[str, str]:
        """Return the values as texts, for canonical JSON has no fractions."""
        return {key: str(value) for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, plain: Mapping[str, str]) -> Trial:
        """Make it from what `to_json` returned."""
        points, alpha, beta = (float(plain[key]) for key in ("least_points", "alpha", "beta"))
        return cls(points, alpha, beta, int(plain["least_units"]))


@dataclass(frozen=True, slots=True)
class League:
    """One league."""

    name: str
    game: str
    format: str
    seats: int
    entrants: tuple[Entrant, ...]
    rounds: int = 0
    """What the format takes for a round; 0 is as many as it needs."""
    deals: str = "travelling"
    is_trusted: bool = False
    """With rotation: the operator declares that no bot keeps a deal in mind from one match to the next."""
    seed: str = "1"
    """Draws whatever the format leaves open."""
    tie_breaks: tuple[str, ...] = ()
    """In the order in which they are asked."""
    challengers: tuple[str, ...] = ()
    """Of a gauntlet, by name: the entrants that meet all others."""
    advance: int = 1
    """Of a knockout: how many of a table go on."""
    trial: Trial = field(default_factory=Trial)
    options: Mapping[str, int | str] = field(default_factory=dict)
    """Of the game, complete."""
    time: TimeControl = field(default_factory=TimeControl)

    @property
    def players(self) -> tuple[str, ...]:
        """The entrants as the server knows them."""
        return tuple(each.player for each in self.entrants)

    @property
    def is_fresh(self) -> bool:
        """Whether every entrant is started again for each match."""
        return self.deals == "rotation" and not self.is_trusted

    @property
    def digest(self) -> str:
        """SHA-256 of the settings: the same for the same league, and for no other."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `from_json` makes the same league again."""
        plain = asdict(self)
        return plain | {
            "entrants": [asdict(each) for each in self.entrants],
            "tie_breaks": list(self.tie_breaks),
            "challengers": list(self.challengers),
            "trial": self.trial.to_json(),
            "time": self.time.to_json(),
            "rules_version": GAMES[self.game].rules_version,
        }

    def to_published_json(self) -> dict[str, Any]:
        """Return the same without the folders in which our bots lie."""
        plain = self.to_json()
        for entrant in plain["entrants"]:
            entrant["bot"] = PurePath(entrant["bot"]).name
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> League:
        """Make a league from plain values. Raises `KeyError`, `TypeError` or `ValueError` if they are none."""
        given: dict[str, Any] = {key: value for key, value in plain.items() if key != "rules_version"}
        if plain["rules_version"] != GAMES[plain["game"]].rules_version:
            raise ValueError(f"rules_version is {plain['rules_version']!r}, which this program does not know")
        given["entrants"] = tuple(Entrant(**each) for each in plain["entrants"])
        given["trial"] = Trial.from_json(plain["trial"])
        given["time"] = TimeControl.from_json(plain["time"])
        given |= {key: tuple(plain[key]) for key in ("tie_breaks", "challengers")}
        league = cls(**given)
        _check_types(league)
        return league


def _check_types(league: League) -> None:
    """What came from JSON may be anything."""
    kinds = {
        str: ("name", "game", "format", "deals", "seed"),
        int: ("seats", "rounds", "advance"),
        bool: ("is_trusted",),
    }
    for kind, names in kinds.items():
        for name in names:
            if type(getattr(league, name)) is not kind:
                raise ValueError(f"{name} is {getattr(league, name)!r}")
    texts = [text for each in league.entrants for text in (each.name, each.player, each.bot)]
    for text in (*texts, *league.tie_breaks, *league.challengers, league.name, league.seed):
        if not isinstance(text, str) or not text.isprintable():
            raise ValueError(f"{text!r:.60} is no name")
    if strange := set(league.tie_breaks) - set(TIE_BREAKS):
        raise ValueError(f"there is no tie-break {min(strange)!r:.60}")
    if league.deals not in DEALS or league.format not in FORMATS:
        raise ValueError(f"format is {league.format!r}, and deals are {league.deals!r}")
