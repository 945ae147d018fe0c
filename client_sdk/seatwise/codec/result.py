"""Decodes the ends of matches."""

from __future__ import annotations

from typing import Final

from seatwise.codec.game_codec import MalformedResult
from seatwise.errors import clean_text
from seatwise.result import Result
from seatwise.v1 import match_pb2, play_service_pb2
from seatwise_referee.ending import Ending, MatchState
from seatwise_referee.game import Seat

_ENDINGS_BY_NUMBER: Final[dict[int, Ending]] = {
    match_pb2.Ending.Value(f"ENDING_{ending.name}"): ending for ending in Ending
}

_LONGEST_REASON: Final = 200
"""The most characters of the reason for which a match was voided."""


def decode_ending(number: int) -> Ending:
    """Return the ending of that number. Raises `ValueError` if there is none."""
    if number not in _ENDINGS_BY_NUMBER:
        raise ValueError(f"{number} is no ending that this version of seatwise knows")
    return _ENDINGS_BY_NUMBER[number]


def decode_match_ended(message: play_service_pb2.MatchEnded, match: str, seat: Seat) -> Result:
    """Return the result of a match that is finished or voided, seen from a seat."""
    if not message.HasField("result"):
        reason = clean_text(message.void_reason, _LONGEST_REASON) or MatchState.VOIDED.value
        return Result(match, seat, void_reason=reason, seed=message.seed)
    result = message.result
    return Result(
        match=match,
        seat=seat,
        points=tuple(result.points),
        ranks=tuple(result.ranks),
        outcome_ranks=tuple(result.outcome_ranks),
        endings=tuple(map(decode_ending, result.endings)),
        rounds=tuple(tuple(each.points) for each in result.rounds),
        seed=message.seed,
        chain=result.chain,
    )


def decode_end_of_seats(message: play_service_pb2.MatchEnded, match: str, seat: Seat, seats: int) -> Result:
    """Return the result as `decode_match_ended` does, if it is one of a match with so many seats.

    Raises `MalformedResult` if it is not.
    """
    try:
        result = decode_match_ended(message, match, seat)
    except ValueError as error:
        raise MalformedResult(f"endings: {error}") from None
    if not result.is_void:
        _check_numbers(result, seats)
    return result


def _check_numbers(result: Result, seats: int) -> None:
    """Raise `MalformedResult` if a list has not one number for each seat, or a rank is none."""
    for field in ("points", "ranks", "outcome_ranks", "endings"):
        given = len(getattr(result, field))
        if given != seats:
            raise MalformedResult(f"{field} has {given} numbers for {seats} seats")
    if any(len(points) != seats for points in result.rounds):
        raise MalformedResult(f"a round of rounds has not {seats} numbers")
    for rank in result.ranks + result.outcome_ranks:
        if not 1 <= rank <= seats:
            raise MalformedResult(f"a rank is {rank}, and there are {seats} seats")
