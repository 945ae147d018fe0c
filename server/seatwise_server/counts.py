"""What this process has done so far, in plain numbers: counting must cost a move next to nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final

from seatwise_referee.journal import Agreed, Called, Defaulted, Entry, Moved

LATENCY_BOUNDS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Counts:
    """One set for each process. Never by match, bot or seat: they are without number."""

    def __init__(self) -> None:
        self.moves = 0
        self.timeouts = 0
        self.charged_ms = 0
        self.no_shows = 0
        """Seats of queues that were left empty, as far as they count."""
        self.takeovers = 0
        self.ended: Counter[str] = Counter()
        """Matches by how they ended: FINISHED, or why they were voided."""
        self.rejections: Counter[str] = Counter()
        """Items that did not stand, by reason."""
        self.refusals: Counter[str] = Counter()
        """Calls that were refused, and streams that were ended, by reason."""
        self.append_buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.append_s = 0.0

    def entry(self, entry: Entry) -> None:
        """This entry is in a journal."""
        if type(entry) is Moved:
            self.moves += 1
            self.charged_ms += entry.charged_ms
        elif type(entry) is Defaulted:
            self.timeouts += len(entry.moves) if entry.reason == "TIMED_OUT" else 0
        elif type(entry) is Called:
            self.moves += len(entry.calls)
        elif type(entry) is Agreed:
            self.timeouts += len(entry.silent)

    def appended(self, took_s: float) -> None:
        """The journal has answered after so long."""
        self.append_buckets[bisect_left(LATENCY_BOUNDS_S, took_s)] += 1
        self.append_s += took_s


COUNTS: Final = Counts()
"""Of this process."""
