"""How a match ended, as its bots are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.journal import Finished, Voided


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one match, seen from one seat; the tuples are by seat."""

    match: str
    """Format: matches/{match}."""

    seat: Seat
    """The seat that is told."""

    points: tuple[int, ...] = ()
    """Of the whole match; empty if the match was voided, as all that follows."""

    ranks: tuple[int, ...] = ()
    """What counts: 1 is the best, equals share a rank, who gave up comes behind those who stayed."""

    outcome_ranks: tuple[int, ...] = ()
    """By points alone."""

    endings: tuple[Ending, ...] = ()
    """How each seat came to the end."""

    rounds: tuple[tuple[int, ...], ...] = ()
    """The points of each round."""

    void_reason: str = ""
    """Why the match counts for nobody; empty if it counts."""

    seed: bytes = b""
    """SHA-256 of it is the commitment of the offer. Empty while a set of duplicate deals runs."""

    chain: bytes = b""
    """The last link of the record's hash chain."""

    @property
    def is_void(self) -> bool:
        """Whether the match counts for nobody."""
        return bool(self.void_reason)


def result_of(
    end: Finished | Voided, match: str, seat: Seat, seed: bytes = b"", chain: bytes = b""
) -> Result:
    """The result as the journal's last entry tells it."""
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
