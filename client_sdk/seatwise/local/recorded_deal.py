"""A deal out of a record, to be played again at a local table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from seatwise.errors import UsageError
from seatwise.kits import find_kit
from seatwise.local.table import local_time_control
from seatwise_referee.game import Seat
from seatwise_referee.record import replay_moves
from seatwise_referee.setup import Setup
from seatwise_referee.verify import verify_line


@dataclass(frozen=True, slots=True)
class RecordedDeal:
    """The deal of a recorded match, and the moves up to which it is played as recorded."""

    setup: Setup
    """The set-up for a local table: same deal, same options, no limits of time."""

    nonces: tuple[bytes, ...]
    moves: Mapping[tuple[int, Seat], Any] = field(default_factory=dict)
    """The moves that are played as recorded, by prompt and seat."""

    last_move: int | None = None
    """The prompt after which the match is aborted; `None` if it is played to its end."""


def read_recorded_deal(
    line: str | bytes, from_move: int | None = None, to_move: int | None = None
) -> RecordedDeal:
    """Check a record, and return its deal.

    Args:
        line: The record, one line of a file of records.
        from_move: The number of the first move that the bots choose; the moves before it are those of the record. By
            default the bots choose all.
        to_move: The number of the last move that is played. By default the match is played to its end.

    Returns:
        The deal, for `seatwise.play`.

    Raises:
        UsageError: The record is wrong, a seat of it was never taken, or its game has no moves to count.
    """
    verdict = verify_line(line)
    if verdict.fault or verdict.setup is None:
        raise UsageError(f"the record is wrong: {verdict.fault}")
    record = json.loads(line)
    setup = verdict.setup
    if (from_move is not None or to_move is not None) and find_kit(setup.game).has_races:
        raise UsageError(f"{setup.game} has no moves to count: leave --from-move and --to-move out")
    recorded = replay_moves(record, setup) if from_move is not None else ()
    first = from_move or 0
    return RecordedDeal(
        setup=replace(setup, time_control=local_time_control(setup.game), durability="none", competition=""),
        nonces=_read_nonces(record["nonces"]),
        moves={(entry.prompt, seat): move for _, entry, seat, move in recorded if entry.prompt < first},
        last_move=to_move,
    )


def _read_nonces(told: list[str | None]) -> tuple[bytes, ...]:
    if None in told:
        seat = told.index(None)
        raise UsageError(f"seat {seat} of this match was never taken, so its deal cannot be dealt again")
    return tuple(bytes.fromhex(nonce) for nonce in cast("list[str]", told))
