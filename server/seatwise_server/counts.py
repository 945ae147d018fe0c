"""Counters of this process, as plain numbers: counting must cost a move next to nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final

from seatwise_referee.journal import Agreed, Called, Defaulted, Entry, Moved

LATENCY_BOUNDS_S: Final = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]


class Latencies:
    """How often something took how long."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        """The number for each bound, and above the last one."""
        self.sum_s = 0.0

    def add(self, took_s: float) -> None:
        """Add one duration in seconds."""
        self.buckets[bisect_left(LATENCY_BOUNDS_S, took_s)] += 1
        self.sum_s += took_s


class Counts:
    """The counters of a process. None is kept by match, bot or seat: their number has no limit."""

    def __init__(self) -> None:
        self.moves = 0
        self.timeouts = 0
        self.charged_ms = 0
        self.no_shows = 0
        """Seats that bots of queues left empty, without those that are not counted as no-shows."""
        self.takeovers = 0
        self.faults: Counter[str] = Counter()
        """Faults of this process that may keep bots from their seats, by kind."""
        self.last_fault = ""
        self.ended: Counter[str] = Counter()
        """Matches by how they ended: FINISHED, or the reason of the void."""
        self.rejections: Counter[str] = Counter()
        """Items of bots that were rejected, by reason."""
        self.refusals: Counter[str] = Counter()
        """Calls that were refused and streams that were ended, by reason."""
        self.http_refusals: Counter[str] = Counter()
        """Those of `refusals` that the HTTP port of this process has sent."""
        self.appends = Latencies()
        """From an append to the answer of the journal."""
        self.rpc_calls: dict[tuple[str, str], Latencies] = {}
        """Calls over gRPC and WebSockets, by method and status."""
        self.http_calls: dict[tuple[str, str, str], Latencies] = {}
        """Requests over HTTP, by verb, path as the table of URLs has it, and status."""
        self.connections_short_s: dict[str, float] = {"bots": 0.0, "http": 0.0}
        """Seconds in which a port had no connection left, by port."""

    def count_entry(self, entry: Entry) -> None:
        """Count an entry that has been written to a journal."""
        if isinstance(entry, Moved):
            self.moves += 1
            self.charged_ms += entry.charged_ms
        elif type(entry) is Defaulted:
            self.timeouts += len(entry.moves) if entry.reason == "TIMED_OUT" else 0
        elif type(entry) is Called:
            self.moves += len(entry.calls)
        elif type(entry) is Agreed:
            self.timeouts += len(entry.silent)

    def count_fault(self, kind: str) -> None:
        """Count a fault that may keep bots from their seats."""
        self.faults[kind] += 1
        self.last_fault = kind

    def count_http_refusal(self, reason: str) -> None:
        """Count a refusal that the HTTP port sends."""
        self.refusals[reason] += 1
        self.http_refusals[reason] += 1


COUNTS: Final = Counts()
