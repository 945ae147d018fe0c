"""What kind of world a seed has: which faults come over it, how often, and how short its clocks are."""

from __future__ import annotations

from dataclasses import replace

from simulation.chance import Chance
from simulation.owners import OwnerPlan
from simulation.weather import FAULTS
from simulation.world import Climate, Outcome, play

LOBBIES_AND_LINKS = (
    *("kill a lobby", "stall a lobby", "cut a bot's links", "block a bot"),
    *("kill the process for HTTP", "stall the process for HTTP", "stop the process for HTTP in order"),
    "cut links of the process for HTTP",
)
"""What a bot may need seconds to get over: while the lobby is gone nobody tells it where its match is now."""
SEATING = ("kill a lobby on the path of seating", "stop a lobby on the path of seating")
"""Where bots wait in a queue; elsewhere they would only take turns from other faults."""
BAD_BOTS = ("kill a bot", "stop a bot")
OFTEN_S, SELDOM_S = 1.5, 8.0
PATIENT_MS, HASTY_MS = 20_000, 3_000
PLENTY = 10_000
"""More matches than a world has."""


def world_of(seed: int, keeps_log: bool = False) -> Outcome:
    """What becomes of the world of that seed."""
    return play(seed, climate_of(seed), keeps_log=keeps_log)


def climate_of(seed: int) -> Climate:
    """The kinds take turns; which faults there are is drawn, for too many at once hide each other."""
    chance = Chance(f"{seed}/climate")
    climate = (calm, hasty, patient, patient, queueing)[seed % 5](chance)
    return replace(climate, owners=_owners(climate, chance))


def calm(chance: Chance) -> Climate:
    """One kind of fault alone, or none."""
    kind = chance.choice([*(set_of_hasty()), *BAD_BOTS])
    faults = {kind: chance.uniform(1, 4)}
    return Climate("calm", faults, HASTY_MS, referees=2, lobbies=1, bad_bots=2 * (kind in BAD_BOTS))


def hasty(chance: Chance) -> Climate:
    """Short clocks: what is not the bots' fault must cost them no second. Lobbies and links hold."""
    return Climate("hasty", _drawn(chance, set_of_hasty()), HASTY_MS, lobbies=1)


def patient(chance: Chance) -> Climate:
    """Whatever may happen happens, and every clock outlasts it; some bots come and go."""
    faults = _drawn(chance, [kind for kind in FAULTS if kind not in SEATING])
    return Climate(
        "patient", faults, PATIENT_MS, bad_bots=chance.randrange(3), lobbies=chance.randint(1, 2),
        referees=chance.randint(2, 3), longest_block_s=chance.choice((1.0, 8.0)),
    )  # fmt: skip


def queueing(chance: Chance) -> Climate:
    """Bots wait in a queue, play, and wait again; lobbies die or stand still between any two steps of seating.

    In most of these worlds some bots never sit down. They are found out, and nobody else is.
    It lasts long enough for proposals to be adopted, some of them after their matches are over.
    """
    others = [kind for kind in set_of_hasty() if chance.happens(0.1)]
    faults = {kind: chance.uniform(2, 4) for kind in SEATING}
    faults |= {kind: chance.uniform(4, 12) for kind in others}
    return Climate(
        "queueing", faults, HASTY_MS, matches=0, within_s=45.0, lobbies=4, bots=6, queue="casual-2",
        least_up={"lobby": 1}, most_at_once=chance.randint(1, 2), silent_bots=chance.randrange(3),
    )  # fmt: skip


def set_of_hasty() -> list[str]:
    """Faults of the house alone."""
    return [kind for kind in FAULTS if kind not in (*LOBBIES_AND_LINKS, *SEATING, *BAD_BOTS)]


def _drawn(chance: Chance, kinds: list[str]) -> dict[str, float]:
    return {kind: chance.uniform(OFTEN_S, SELDOM_S) for kind in kinds if chance.happens(0.5)}


def _owners(climate: Climate, chance: Chance) -> tuple[OwnerPlan, ...]:
    """Two owners with half of the bots, which may play fewer matches than there are; the others are the operator's."""
    hosts = [f"bot-{number}" for number in range(climate.bots)]
    many, few = hosts[: climate.bots // 3], hosts[climate.bots // 3 : climate.bots // 2]
    few += [f"silent-{number}" for number in range(climate.silent_bots)]
    return (
        OwnerPlan("owners/many", (*many, "builder-0"), chance.randint(1, 3), PLENTY),
        OwnerPlan("owners/few", tuple(few), chance.randint(1, 2), chance.randint(3, 12)),
    )
