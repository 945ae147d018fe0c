"""What a ladder is: the game, the table, the limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from seatwise_referee.clock import TimeControl
from seatwise_referee.game import Options
from seatwise_referee.journal import canonical
from seatwise_server.ladder.ladder_pairing import PairingRules

LADDER_PREFIX = "ladders/"


@dataclass(frozen=True, slots=True)
class Ladder:
    """One ladder. Nothing of it ever changes, for ratings under other rules would be others."""

    name: str
    """Format: ladders/{id}. The queue in which its bots wait is called the same."""
    game: str
    seats: int
    options: Options
    """Complete, as `Game.options` returns them."""
    time_control: TimeControl
    owners_together: bool = False
    """Whether two bots of one owner may sit at the same table of three or four."""

    @property
    def pairing_rules(self) -> PairingRules:
        """Who may sit with whom."""
        return PairingRules(self.seats, owners_apart=not self.owners_together)

    def to_bytes(self) -> bytes:
        """For the store: the same for the same ladder."""
        return canonical(
            {
                "name": self.name,
                "game": self.game,
                "seats": self.seats,
                "options": dict(self.options.items()),
                "time_control": self.time_control.to_json(),
                "owners_together": self.owners_together,
            }
        )

    @classmethod
    def from_bytes(cls, written: bytes) -> Ladder:
        """The inverse of `to_bytes`."""
        body: dict[str, Any] = json.loads(written)
        return cls(**{**body, "time_control": TimeControl.from_json(body["time_control"])})


def ladder_lease(name: str) -> str:
    """The lease of the lobby that looks after the ladder of that name."""
    return f"ladder/{name}"
