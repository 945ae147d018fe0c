"""A seat in a match, as a bot is offered it, and its time left at each question."""

from __future__ import annotations

from dataclasses import dataclass

from seatwise_referee.game import Options, Seat
from seatwise_referee.time_control import TimeControl


@dataclass(frozen=True, slots=True)
class Offer:
    """The facts of a match that are known before its deal."""

    match: str
    """The name of the match. Format: matches/{match}."""

    seat: Seat
    """The bot's own seat, from 0."""

    game: str
    """The game, as in "ugo"."""

    bots: tuple[str, ...]
    """The players by seat. Format: bots/{bot}/versions/{version}."""

    options: Options
    """The game's options, complete."""

    time_control: TimeControl
    """The time limits. `setup_ms` is the limit for `Bot.setup`, in milliseconds."""

    commitment: bytes
    """SHA-256 of the match's seed, 32 bytes."""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """A seat's time at the moment of the question, in milliseconds. No field is negative."""

    move_ms: int
    """Free time for this question, in milliseconds."""

    bank_ms: int
    """Time left in the bank, in addition to the free time, in milliseconds."""

    charged_ms: int
    """Time charged for the last move, in milliseconds."""

    latency_ms: int
    """The measured round trip and 2 ms for the handling of messages, as they are subtracted from charges, in milliseconds; 0 while the
    round trip is not known."""

    strikes: int
    """Number of time-outs so far."""
