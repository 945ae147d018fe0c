"""The queues: the kind of match that each one has, and how long a bot waits before house bots help out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seatwise.kits import KITS
from seatwise_referee.game import Options
from seatwise_referee.games.registry import default_time_control
from seatwise_referee.time_control import TimeControl

CREATED = "~created"
"""The queue of created matches, which wait for their bots; no bot can name it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The common properties of all matches of a queue, or of a ladder."""

    queue: str
    game: str
    options: Options
    time_control: TimeControl
    competition: str = ""
    """The competition that their results count for; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, in which bots wait for a match of one kind."""

    name: str
    game: str
    seats: int
    options: Options = field(default_factory=dict)
    time_control: Mapping[str, int] = field(default_factory=dict)
    """The differences from the default time control, except for free times."""
    free_ms: Mapping[str, int] = field(default_factory=dict)
    """The free times by pace that differ from the default."""
    patience_ms: int = 3000
    """After this time free seats go to house bots, if there are any for the game."""

    @property
    def kind(self) -> Kind:
        """The kind of match that is played."""
        limits = default_time_control(self.game, **self.time_control)
        limits = replace(limits, free_ms={**limits.free_ms, **self.free_ms})
        return Kind(self.name, self.game, self.options, limits)


QUEUES = {
    queue.name: queue
    for queue in (
        Queue(
            each.name,
            kit.name,
            each.seats,
            options=each.options,
            free_ms=each.free_ms,
            patience_ms=each.patience_ms,
        )
        for kit in KITS.values()
        for each in kit.queues
    )
}
"""All queues, by name."""
