"""Encodes the end of a match for its seats and for all who ask about it later."""

from __future__ import annotations

from typing import Any, Final, cast

from seatwise.v1 import match_pb2, play_service_pb2
from seatwise_referee.ending import Ending
from seatwise_referee.journal import Finished, Voided

_ENDING_NUMBERS: Final[dict[Ending, Any]] = {
    ending: match_pb2.Ending.Value(f"ENDING_{ending.name}") for ending in Ending
}


def encode_ending(ending: Ending) -> match_pb2.Ending:
    """Returns the number of an ending in the protocol."""
    number: match_pb2.Ending = _ENDING_NUMBERS[ending]
    return number


def encode_result(finished: Finished, chain: bytes = b"") -> match_pb2.Result:
    """Returns the result that the journal's last entry holds; `chain` is the last link of the record's chain."""
    outcome = cast("dict[str, Any]", finished.outcome)
    return match_pb2.Result(
        points=outcome["points"],
        outcome_ranks=outcome["ranks"],
        ranks=cast("Any", finished.result["ranks"]),
        endings=map(encode_ending, finished.endings),
        rounds=[match_pb2.RoundResult(points=points) for points in outcome["rounds"]],
        chain=chain,
    )


def encode_match_ended(
    end: Finished | Voided, seed: bytes, chain: bytes = b""
) -> play_service_pb2.MatchEnded:
    """Returns the message that every seat gets at the end. Leave `seed` empty while a set of duplicate deals runs."""
    if isinstance(end, Voided):
        return play_service_pb2.MatchEnded(void_reason=end.reason, seed=seed)
    return play_service_pb2.MatchEnded(result=encode_result(end, chain), seed=seed)
