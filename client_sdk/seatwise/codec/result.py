"""Decodes the ends of matches."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from seatwise.result import Result
from seatwise.v1 import match_pb2, play_service_pb2
from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.match_state import MatchState

_ENDINGS_BY_NUMBER: Final[dict[int, Ending]] = {
    match_pb2.Ending.Value(f"ENDING_{ending.name}"): ending for ending in Ending
}


def decode_ending(number: int) -> Ending:
    """Return the ending of that number. Raises `ValueError` if there is none."""
    if number not in _ENDINGS_BY_NUMBER:
        raise ValueError(f"{number} is no ending that this version of seatwise knows")
    return _ENDINGS_BY_NUMBER[number]


def decode_result(message: match_pb2.Result, match: str, seat: Seat) -> Result:
    """Return the result of a finished match, seen from a seat."""
    return Result(
        match=match,
        seat=seat,
        points=tuple(message.points),
        ranks=tuple(message.ranks),
        outcome_ranks=tuple(message.outcome_ranks),
        endings=tuple(map(decode_ending, message.endings)),
        rounds=tuple(tuple(each.points) for each in message.rounds),
        chain=message.chain,
    )


def decode_match_ended(message: play_service_pb2.MatchEnded, match: str, seat: Seat) -> Result:
    """Return the result of a match that is finished or voided, seen from a seat."""
    if not message.HasField("result"):
        return Result(
            match=match,
            seat=seat,
            void_reason=message.void_reason or MatchState.VOIDED.value,
            seed=message.seed,
        )
    result = decode_result(message.result, match, seat)
    return replace(result, seed=message.seed)
