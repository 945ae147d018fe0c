"""What is done to whom, and when: drawn from a seed, so that a run can be asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

FIRST_S = 1.0
EVERY_S = (3.0, 5.0)
REDIS_EVERY_S = 9.0
"""A private Redis that dies five times in half a minute is taken for incurable."""

WAYS: Final = ("kill", "kill", "stop", "kill", "term")
"""In turn: most are kills."""

WEIGHTS: Final = {"referee": 4, "bot": 3, "front": 2, "redis": 2}

LASTS_S: Final = {
    ("referee", "stop"): (3.0, 8.0),  # mostly longer than the lease: another takes over, and then it wakes up
    ("front", "stop"): (2.0, 5.0),
    ("redis", "stop"): (3.0, 7.0),  # longer than any charge may be wrong by
    ("bot", "stop"): (2.0, 6.0),
}
"""How long it stands still; after anything else it is started again soon."""
AWAY_S: Final = (0.1, 1.5)


@dataclass(frozen=True, slots=True)
class Harm:
    """One of them."""

    at_s: float
    role: str
    number: int
    """Which of its kind; if that one is being harmed already, the next."""
    way: str
    lasts_s: float
    """Until it is started or goes on again."""

    def __str__(self) -> str:
        return f"{self.way} {self.role} {self.number}"


def schedule(seed: int, seconds: float, many: Mapping[str, int]) -> list[Harm]:
    """The harms of a run; `many` says how many of each kind there are. A referee is killed first."""
    chance = Random(seed)
    harms: list[Harm] = []
    at_s, redis_at_s = FIRST_S, -REDIS_EVERY_S
    while at_s < seconds:
        roles = [role for role in WEIGHTS if role != "redis" or at_s >= redis_at_s + REDIS_EVERY_S]
        role = chance.choices(roles, [WEIGHTS[each] for each in roles])[0] if harms else "referee"
        way = WAYS[len(harms) % len(WAYS)]
        lasts_s = chance.uniform(*LASTS_S.get((role, way), AWAY_S))
        harms.append(Harm(at_s, role, chance.randrange(many[role]), way, lasts_s))
        redis_at_s = at_s if role == "redis" else redis_at_s
        at_s += chance.uniform(*EVERY_S)
    return harms
