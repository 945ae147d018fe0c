"""What a pass of a ladder's pairing costs, by the time that a core really had.

python tests/bench/ladders.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from table import Row, at_most, show

from seatwise_server.ladder.ladder_pairing import AttendingBot, PairingRules

ATTENDING = 10_000
PASSES = 7


def rows() -> list[Row]:
    """For the table."""
    return [at_most(f"a pass of pairing over {ATTENDING:,} bots, four seats", pairing_ms(4), 50, "ms")]


def pairing_ms(seats: int) -> float:
    """All wait, of 3,000 owners, with full memories; every table that can be filled is. The best of some passes: the others had company."""
    chance = random.Random(1)
    floor = [_attending(number, chance) for number in range(ATTENDING)]
    return 1000 * min(
        _seconds(lambda: PairingRules(seats).pair_tables(floor, ATTENDING)) for _ in range(PASSES)
    )


def _attending(number: int, chance: random.Random) -> AttendingBot:
    recent = tuple(_name(chance.randrange(ATTENDING)) for _ in range(12))
    counts = tuple(chance.randrange(20) for _ in range(4))
    owner = f"owner{chance.randrange(3000)}"
    return AttendingBot(_name(number), chance.gauss(25, 6), 10 * chance.random(), owner, recent, counts)


def _name(number: int) -> str:
    return f"bots/b{number}/versions/1"


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    show(rows())
