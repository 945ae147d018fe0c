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

ALL: Final = -1
"""In place of a number: all of that kind at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a run is about."""

    name: str
    ways: tuple[tuple[str, str], ...]
    """Roles and what is done to them, drawn with equal chance."""
    lasts_s: tuple[float, float]
    are_all: bool = False
    """Whether all of that role are harmed at once."""


PROCESSES: Final = Fault("processes", (), AWAY_S)
"""Processes of every role are killed, stopped and ended in order; see `WAYS`."""

SERVERS: Final = ("referee", "referee", "front")
"""A referee is harmed twice as often as a front."""

FAULTS: Final = (
    PROCESSES,
    Fault("lobbies", (("front", "kill"),), (0.1, 6.0), are_all=True),
    Fault("disk", (("redis", "fill_disk"),), (0.5, 4.0)),
    Fault("links", tuple((role, "cut") for role in SERVERS), (0.1, 6.0)),
    Fault("sleep", (("redis", "sleep"),), (0.5, 6.0)),
    Fault("stops", tuple((role, "stop") for role in (*SERVERS, "redis", "bot")), (2.0, 8.0)),
)


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


def schedule_fault(fault: Fault, seed: int, seconds: float, many: Mapping[str, int]) -> list[Harm]:
    """The harms of a run that is about this fault; `many` as in `schedule`."""
    if fault == PROCESSES:
        return schedule(seed, seconds, many)
    chance = Random(f"{fault.name} {seed}")
    harms: list[Harm] = []
    at_s, redis_at_s = FIRST_S, -REDIS_EVERY_S
    while at_s < seconds:
        role, way = chance.choice(fault.ways)
        at_s = max(at_s, redis_at_s + REDIS_EVERY_S) if role == "redis" else at_s
        number = ALL if fault.are_all else chance.randrange(many[role])
        harms.append(Harm(at_s, role, number, way, chance.uniform(*fault.lasts_s)))
        redis_at_s = at_s if role == "redis" else redis_at_s
        at_s += chance.uniform(*EVERY_S)
    return harms
