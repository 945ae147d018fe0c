"""Computes the result again."""

from __future__ import annotations

from typing import Any

from seatwise_referee.ending import result_ranks
from seatwise_referee.game import Outcome
from seatwise_referee.journal import Finished
from seatwise_referee.position import Position
from seatwise_referee.verify.fault import BadRecord, quote_value


def check_finished(entry: Finished, outcome: Outcome | None, position: Position) -> None:
    """Check that the last entry has the result of the replay."""
    assert outcome is not None  # no prompt is open
    exits = [own.left for own in position.seats]
    endings = [own.ending for own in position.seats]
    given: dict[str, tuple[Any, Any]] = {
        "outcome.rounds": (entry.outcome["rounds"], [list(points) for points in outcome.rounds]),
        "outcome.points": (entry.outcome["points"], list(outcome.points)),
        "outcome.ranks": (entry.outcome["ranks"], list(outcome.ranks)),
        "result.ranks": (entry.result["ranks"], list(result_ranks(outcome.ranks, exits))),
        "endings": (list(entry.endings), endings),
    }
    for key, (found, right) in given.items():
        if found != right:
            names = list(map(str, right)) if key == "endings" else right
            shown = list(map(str, found)) if key == "endings" else found
            raise BadRecord(
                f"{key} is {quote_value(shown)}; the match played again gives {quote_value(names)}", entry.seq
            )


def check_tail(record: dict[str, Any]) -> None:
    """Check that the record's tail repeats its last entry."""
    last = record["entries"][-1]
    for key in ("outcome", "result", "endings"):
        if record[key] != last[key]:
            raise BadRecord(
                f"{key} at the end of the record is {quote_value(record[key])}; "
                f"the entry `finished` says {quote_value(last[key])}"
            )
