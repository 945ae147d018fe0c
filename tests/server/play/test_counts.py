"""What a process counts."""

from __future__ import annotations

from seatwise_referee.game import Seat
from seatwise_referee.journal import (
    Agreed,
    AgreedReason,
    Called,
    Charge,
    Defaulted,
    DefaultMove,
    DefaultReason,
    Moved,
    RaceCall,
)
from seatwise_server.counts import LATENCY_BOUNDS_S, Counts


def test_entries_are_counted_by_what_they_are() -> None:
    counts, stamp = Counts(), {"seq": 1, "at_ms": 9}
    counts.count_entry(
        Moved(
            seat=Seat(0), prompt=1, move={}, asked_ms=0, allowance_ms=0, charged_ms=7, request_id="", **stamp
        )
    )
    played = DefaultMove(Seat(0), {})
    counts.count_entry(Defaulted(reason=DefaultReason.TIMED_OUT, prompt=1, moves=(played, played), **stamp))
    counts.count_entry(Defaulted(reason=DefaultReason.FORFEITED, prompt=1, moves=(played,), **stamp))
    call = RaceCall(Seat(0), 7, Charge(asked_ms=0, allowance_ms=0, charged_ms=7))
    counts.count_entry(Called(prompt=1, calls=(call,) * 3, window_ms=1, layouts=(), request_ids=(), **stamp))
    silent = (Seat(1),)
    counts.count_entry(
        Agreed(prompt=1, reason=AgreedReason.TIMED_OUT, layouts=(), silent=silent, asked=(), **stamp)
    )
    assert (counts.moves, counts.timeouts, counts.charged_ms) == (4, 3, 7)


def test_each_append_falls_into_one_bucket() -> None:
    counts = Counts()
    for took_s in (0.0, LATENCY_BOUNDS_S[0], LATENCY_BOUNDS_S[0] * 1.01, 1000.0):
        counts.appends.add(took_s)
    buckets = counts.appends.buckets
    assert (buckets[0], buckets[1], buckets[-1], sum(buckets)) == (2, 1, 1, 4)
