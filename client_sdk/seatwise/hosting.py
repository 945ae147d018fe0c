"""For authors of games: everything that a package needs to have its game hosted.

A package names its game in an entry point of the group `seatwise.hosted_games`. The entry is a class derived from
`HostedGame`, or a `HostedKit`, or a list of them, or a function without arguments that returns one of these:

    [project.entry-points."seatwise.hosted_games"]
    leduc = "seatwise_leduc:Leduc"

docs/examples/leduc/README.md has the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seatwise_referee.hosted.chance import Chance
from seatwise_referee.hosted.hosted_game import GameFault, HostedGame, HostedOption
from seatwise_referee.hosted.payload import HostedView


@dataclass(frozen=True, slots=True)
class HostedKit:
    """A game, and what comes with it."""

    game: HostedGame[Any]
    """The game, an object of a class derived from `HostedGame`."""

    samples: Mapping[str, str] = field(default_factory=dict)
    """Sample bots by name, each as "module:class". The sample `random` is always there."""


__all__ = ["Chance", "GameFault", "HostedGame", "HostedKit", "HostedOption", "HostedView"]
