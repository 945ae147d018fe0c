"""When the streams of bots came to this process: of two streams of one bot, the one that came later stays."""

from __future__ import annotations

import asyncio
import itertools
from typing import NamedTuple

_arrivals = itertools.count(1)


class StreamArrival(NamedTuple):
    """When a stream came to this process. A later one compares as greater."""

    number: int
    """Higher than that of each stream that came before it."""
    time_s: float
    """On the clock of the event loop."""


def note_arrival_of_stream() -> StreamArrival:
    """Returns the arrival of a stream that comes now.

    Call it before anything is awaited for the stream. After a standstill many connections wait, most of them given up by their bots,
    and what is awaited for one may take longer than for the next.
    """
    return StreamArrival(next(_arrivals), asyncio.get_running_loop().time())
