"""The queues of the house: what is played there, and how long somebody waits alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seatwise_referee.game import Options
from seatwise_referee.games.registry import default_time_control
from seatwise_referee.time_control import TimeControl

CREATED = "~created"
"""The queue of matches that were created by name and wait for their bots; no bot can ask for it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the matches of a queue, or of a ladder, have in common."""

    queue: str
    game: str
    options: Options
    time_control: TimeControl
    competition: str = ""
    """What their results count for."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Where bots wait for a match of one kind."""

    name: str
    game: str
    seats: int
    options: Options = field(default_factory=dict)
    time_control: Mapping[str, int] = field(default_factory=dict)
    """What differs from the default time control."""
    patience_ms: int = 3000
    """After this the free places go to house bots, if they play its game."""

    @property
    def kind(self) -> Kind:
        """What is played there."""
        limits = default_time_control(self.game, **self.time_control)
        return Kind(self.name, self.game, self.options, limits)


QUEUES = {
    queue.name: queue
    for queue in (
        Queue("casual", "ugo", seats=4),
        Queue("casual-2", "ugo", seats=2),
        Queue("casual-3", "ugo", seats=3),
        Queue("casual-ubongo", "ubongo", seats=4),
    )
}
"""By name."""
