"""A seat at a table, as it is offered to a bot."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_referee.clock import TimeControl
from seatwise_referee.game import Options, Seat


@dataclass(frozen=True, slots=True)
class Offer:
    """What is known of a match before its deal."""

    match: str
    """Format: matches/{match}."""

    seat: Seat
    """The bot's own, from 0."""

    game: str
    """As in `run` and `play`: "ugo"."""

    bots: tuple[str, ...]
    """The players by seat. Format: bots/{bot}/versions/{version}."""

    options: Options
    """The game's options, complete."""

    time_control: TimeControl
    """Its `setup_ms` is the time for `Bot.setup`."""

    commitment: bytes
    """SHA-256 of the match's seed."""
