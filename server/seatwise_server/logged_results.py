"""Makes the line of a results log from the result that the wire carries."""

from __future__ import annotations

from collections.abc import Iterable

from seatwise.codec.result import decode_ending
from seatwise.v1 import match_pb2
from seatwise_server.competition.logged_result import LoggedResult


def decode_logged_result(
    result: match_pb2.Result, *, match: str, bots: Iterable[str], deal: str, seq: int = 0
) -> LoggedResult:
    """Return what counts of a finished match; `seq` is its place in the log, 0 as long as it is not known."""
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
