"""All chance of a world comes from its seed: what the world draws, and what the programs in it draw."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def seeded(seed: str, clock: Callable[[], float]) -> Iterator[None]:
    """As long as this lasts the system's entropy comes from the seed, and its clocks show the world's time."""
    entropy = random.Random(f"{seed}/entropy").randbytes
    random.seed(f"{seed}/random")
    before = os.urandom, random._urandom, time.monotonic, time.time  # type: ignore[attr-defined]
    os.urandom = random._urandom = entropy  # type: ignore[attr-defined]
    time.monotonic, time.time = clock, lambda: clock() + 1_700_000_000
    try:
        yield
    finally:
        os.urandom, random._urandom, time.monotonic, time.time = before  # type: ignore[attr-defined]


class Chance(random.Random):
    """One stream of lots for each matter, so that one more draw of one kind leaves the others as they were."""

    def __init__(self, seed: str) -> None:
        self.name = seed
        super().__init__(seed)

    def of(self, matter: str) -> Chance:
        """The lots of this matter."""
        return Chance(f"{self.name}/{matter}")

    def happens(self, probability: float) -> bool:
        """Whether it does, this time."""
        return self.random() < probability
