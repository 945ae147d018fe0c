"""The settings of a ladder: its game, its tables and its time limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from seatwise_referee.game import Options
from seatwise_referee.journal import canonical_json
from seatwise_referee.time_control import TimeControl
from seatwise_server.ladder.ladder_pairing import PairingRules

LADDER_PREFIX = "ladders/"
"""The prefix of the names of all ladders."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """One ladder. Its settings never change, because ratings under other rules cannot be compared."""

    name: str
    """Format: `ladders/{id}`. The queue of its waiting bots has the same name."""
    game: str
    seats: int
    options: Options
    """The complete options, as `Game.complete_options` returns them."""
    time_control: TimeControl
    owners_together: bool = False
    """Whether two bots of one owner may sit at the same table."""
    season: int = 1
    """From 1."""
    follows: str = ""
    """The ladder of the season before; empty if there is none."""

    @property
    def pairing_rules(self) -> PairingRules:
        """The rules by which its tables are formed."""
        return PairingRules(self.seats, owners_apart=not self.owners_together)

    def to_bytes(self) -> bytes:
        """Return the settings as canonical JSON for the store. Equal ladders give equal bytes."""
        season: dict[str, Any] = {"season": self.season, "follows": self.follows} if self.follows else {}
        return canonical_json(
            {
                "name": self.name,
                "game": self.game,
                "seats": self.seats,
                "options": dict(self.options.items()),
                "time_control": self.time_control.to_json(),
                "owners_together": self.owners_together,
                **season,
            }
        )

    @classmethod
    def from_bytes(cls, written: bytes) -> Ladder:
        """Return the ladder that `to_bytes` has written."""
        body: dict[str, Any] = json.loads(written)
        body.pop("certificate_required", None)  # written by 0.2.0
        return cls(**{**body, "time_control": TimeControl.from_json(body["time_control"])})


def ladder_lease(name: str) -> str:
    """Return the name of the lease that the host of this ladder holds."""
    return f"ladder/{name}"
