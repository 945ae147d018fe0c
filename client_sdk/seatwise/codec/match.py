"""The ends of matches on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from seatwise.result import Result
from seatwise.v1 import match_pb2, play_service_pb2
from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.journal import Finished, Voided

_TO_WIRE: dict[Ending, Any] = {ending: match_pb2.Ending.Value(f"ENDING_{ending.name}") for ending in Ending}
_FROM_WIRE = {number: ending for ending, number in _TO_WIRE.items()}


def encode_ending(ending: Ending) -> match_pb2.Ending:
    """The wire's number for it."""
    number: match_pb2.Ending = _TO_WIRE[ending]
    return number


def decode_ending(number: int) -> Ending:
    """The ending of that number; `ValueError` if there is none."""
    if number not in _FROM_WIRE:
        raise ValueError(f"{number} is no ending that this version of seatwise knows")
    return _FROM_WIRE[number]


def encode_result(finished: Finished, chain: bytes = b"") -> match_pb2.Result:
    """The result as the journal's last entry tells it; `chain` is the last link of the record's chain."""
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
    """What every seat is told at the end; leave `seed` empty while a set of duplicate deals runs."""
    if isinstance(end, Voided):
        return play_service_pb2.MatchEnded(void_reason=end.reason, seed=seed)
    return play_service_pb2.MatchEnded(result=encode_result(end, chain), seed=seed)


def decode_result(message: match_pb2.Result, match: str, seat: Seat) -> Result:
    """The result, seen from a seat."""
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
    """What a seat is told at the end of a match, be it finished or voided."""
    if not message.HasField("result"):
        return Result(match=match, seat=seat, void_reason=message.void_reason or "VOIDED", seed=message.seed)
    told = decode_result(message.result, match, seat)
    return replace(told, seed=message.seed)
