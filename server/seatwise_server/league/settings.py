"""The settings of a league after its file has been read. They are all fixed before the first match."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Final

from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import canonical_json
from seatwise_referee.time_control import TimeControl
from seatwise_server.competition.schedules.schedule import Duplicate
from seatwise_server.competition.standings.tie_breaks import TIE_BREAKS
from seatwise_server.competition.statistics.anytime_test import AnytimeTest

LEAGUE_FORMATS = ("round-robin", "swiss", "knockout", "gauntlet", "ab-test")
DEAL_KINDS = tuple(str(each) for each in Duplicate)
SERVER_TABLES, LOCAL_TABLES = "server", "local"
TABLE_KINDS = (SERVER_TABLES, LOCAL_TABLES)
"""Where the matches of a league are played: at a server, or in worker processes of the runner."""
BELOW_HALF, WALK_OVERS = "half", "walk-over"
WITHDRAWAL_KINDS = (BELOW_HALF, WALK_OVERS)
"""The results of an entrant that played less than half of its matches leave the table, or they stay."""
VERSIONS: Final = {"schedule_version": 4, "statistics_version": 3}
"""The rules by which seasons are drawn and decided, and the methods by which their figures are computed."""
FORMER_RELEASE = "0.2.0"
"""The release that knows all former versions."""


class OtherVersion(ValueError):
    """A season of another release. The message says which release to use."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A bot that takes part in the league."""

    name: str
    """The name in the report."""
    player: str
    """The bot's resource name, `bots/<name>/versions/<version>`."""
    bot: str = ""
    """The sample or FILE.py:CLASS that the runner starts; empty for a bot that others run."""
    owner: str = ""
    """The owner of the bot by the organiser's word; empty if it is not said."""

    @property
    def is_local(self) -> bool:
        """Whether the runner starts it."""
        return bool(self.bot)


@dataclass(frozen=True, slots=True)
class League:
    """One league."""

    name: str
    game: str
    format: str
    seats: int
    entrants: tuple[Entrant, ...]
    rounds: int = 0
    """The number of rounds, in the sense of the format; 0 for as many as it needs."""
    deals: str = "travelling"
    is_trusted: bool = False
    """Only with rotation: the operator declares that no bot remembers a deal from one match to the next."""
    seed: str = "1"
    """The seed of all draws that the format makes."""
    tie_breaks: tuple[str, ...] = ()
    """The tie-breaks, in the order in which they are applied."""
    challengers: tuple[str, ...] = ()
    """In a gauntlet the names of the entrants that meet all others."""
    advance: int = 1
    """In a knockout the number of bots of a table that advance."""
    trial: AnytimeTest = field(default_factory=AnytimeTest)
    """In a test of A against B when it ends."""
    options: Mapping[str, int | str] = field(default_factory=dict)
    """The complete options of the game."""
    time: TimeControl = field(default_factory=TimeControl)
    withdrawals: str = WALK_OVERS
    """The rule for the results of an entrant that leaves, one of `WITHDRAWAL_KINDS`."""
    tables: str = SERVER_TABLES
    """Where its matches are played, one of `TABLE_KINDS`."""

    @property
    def has_local_tables(self) -> bool:
        """Whether its matches are played in worker processes of the runner, without a server."""
        return self.tables == LOCAL_TABLES

    @property
    def players(self) -> tuple[str, ...]:
        """The resource names of the entrants."""
        return tuple(each.player for each in self.entrants)

    @property
    def is_fresh(self) -> bool:
        """Whether every entrant is restarted for each match."""
        return self.deals == "rotation" and not self.is_trusted

    @property
    def digest(self) -> str:
        """The SHA-256 of the settings: the same for the same league, and different for any other."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `from_json` makes the same league again. Only local tables have a key: they are younger."""
        plain = asdict(self) | VERSIONS
        if not self.has_local_tables:
            del plain["tables"]
        plain |= {key: list(plain[key]) for key in ("entrants", "tie_breaks", "challengers")}
        plain["trial"] = {
            key: str(value) for key, value in plain["trial"].items()
        }  # canonical JSON has no fractions
        return plain | {"time": self.time.to_json(), "rules_version": GAMES[self.game].rules_version}

    def to_published_json(self) -> dict[str, Any]:
        """Return the same values without the folders of the bots' files."""
        plain = self.to_json()
        for entrant in plain["entrants"]:
            entrant["bot"] = PurePath(entrant["bot"]).name
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> League:
        """Return the league of plain values. Raises `KeyError`, `TypeError` or `ValueError` if they describe none."""
        check_versions(plain)
        given = {key: value for key, value in plain.items() if key not in ("rules_version", *VERSIONS)}
        if plain["rules_version"] != GAMES[plain["game"]].rules_version:
            raise ValueError(f"rules_version is {plain['rules_version']!r}, which this program does not know")
        given["entrants"] = tuple(Entrant(**each) for each in plain["entrants"])
        points, alpha, beta = (float(plain["trial"][key]) for key in ("least_points", "alpha", "beta"))
        given["trial"] = AnytimeTest(points, alpha, beta, int(plain["trial"]["least_units"]))
        given["time"] = TimeControl.from_json(plain["time"])
        given |= {key: tuple(plain[key]) for key in ("tie_breaks", "challengers")}
        league = cls(**given)
        _check_types(league)
        return league


def check_versions(plain: Mapping[str, Any]) -> None:
    """Check that settings are of the versions that this program knows. Raises `OtherVersion`."""
    for key, known in VERSIONS.items():
        version = plain.get(key, 1)
        if type(version) is not int or version > known:
            why = f"{key} is {version!r:.20}, which this program does not know; use a newer release"
            raise OtherVersion(why)
        if version < known:
            raise OtherVersion(
                f"the season is of an older release ({key} {version}, and this program knows {known}); "
                f"use version {FORMER_RELEASE} of seatwise for it"
            )


def _check_types(league: League) -> None:
    """Check the types of all values, because JSON may hold any. Raises `ValueError`."""
    kinds = {
        str: ("name", "game", "format", "deals", "seed", "tables", "withdrawals"),
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
            raise ValueError(f"{text!r:.60} is not a printable text")
    if strange := set(league.tie_breaks) - set(TIE_BREAKS):
        raise ValueError(f"there is no tie-break {min(strange)!r:.60}")
    choices = {
        "format": LEAGUE_FORMATS,
        "deals": DEAL_KINDS,
        "withdrawals": WITHDRAWAL_KINDS,
        "tables": TABLE_KINDS,
    }
    for name, known in choices.items():
        if (value := getattr(league, name)) not in known:
            raise ValueError(f"{name} {value!r:.60} is unknown")
