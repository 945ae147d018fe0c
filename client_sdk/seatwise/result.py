"""The end of a match, as its bots see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.journal import Finished, Voided


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one match, seen from one seat. All tuples are by seat."""

    match: str
    """The name of the match. Format: matches/{match}."""

    seat: Seat
    """The bot's own seat, from 0."""

    points: tuple[int, ...] = ()
    """The points of the whole match. Empty if the match was voided, like the tuples below."""

    ranks: tuple[int, ...] = ()
    """The ranks that count. 1 is the best, and equal seats share a rank.

    A seat that resigned or was forfeited ranks behind those that stayed.
    """

    outcome_ranks: tuple[int, ...] = ()
    """The ranks by points alone."""

    endings: tuple[Ending, ...] = ()
    """How each seat came to the end."""

    rounds: tuple[tuple[int, ...], ...] = ()
    """The points of each round: a tuple of rounds, each a tuple by seat."""

    void_reason: str = ""
    """The reason for which the match does not count; empty if it counts."""

    seed: bytes = b""
    """The seed of the match. Its SHA-256 is the commitment of the offer. Empty while a set of duplicate deals runs."""

    chain: bytes = b""
    """The last link of the record's hash chain, 32 bytes."""

    @property
    def is_void(self) -> bool:
        """Whether the match was voided, so that it does not count."""
        return bool(self.void_reason)


def result_of(
    end: Finished | Voided, match: str, seat: Seat, seed: bytes = b"", chain: bytes = b""
) -> Result:
    """Make the result from the journal's last entry."""
    if isinstance(end, Voided):
        return Result(match=match, seat=seat, void_reason=end.reason, seed=seed)
    outcome = cast("dict[str, Any]", end.outcome)
    return Result(
        match=match,
        seat=seat,
        points=tuple(outcome["points"]),
        ranks=tuple(cast("list[int]", end.result["ranks"])),
        outcome_ranks=tuple(outcome["ranks"]),
        endings=end.endings,
        rounds=tuple(map(tuple, outcome["rounds"])),
        seed=seed,
        chain=chain,
    )
