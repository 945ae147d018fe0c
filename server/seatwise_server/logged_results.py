"""Turns the result of a match, as the API carries it, into an entry of a result log."""

from __future__ import annotations

from collections.abc import Iterable

from seatwise.codec.result import decode_ending
from seatwise.v1 import match_pb2
from seatwise_server.competition.logged_result import LoggedResult


def decode_logged_result(
    result: match_pb2.Result, *, match: str, bots: Iterable[str], deal: str, seq: int = 0
) -> LoggedResult:
    """Return the entry of a finished match; `seq` is its position in the log, 0 while it is not known."""
    return LoggedResult(
        seq=seq,
        match=match,
        bots=tuple(bots),
        points=tuple(result.points),
        ranks=tuple(result.ranks),
        endings=tuple(map(decode_ending, result.endings)),
        chain=result.chain.hex(),
        deal=deal,
    )
