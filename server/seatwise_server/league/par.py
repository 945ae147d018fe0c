"""Computes par: the score of the game's par bot at every seat of a record's deals, played by the referee's rules.

The par bot is published with the SDK and makes no random choice, so anyone with the record gets the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, Final

from seatwise.kits import KITS
from seatwise.local_table import LocalPlayer, LocalTable, local_time_control
from seatwise.samples import sample
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import NO_NONCE

PAR_BOTS: Final = {name: kit.par_bot for name, kit in KITS.items() if kit.par_bot}
"""The par bot by game. A game without one has points that depend little on the deal."""


def par_of(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the par bot's score at each seat of the record's deals; `None` for a game without a par bot."""
    if record["game"] not in PAR_BOTS:
        return None
    deal = {key: record[key] for key in ("game", "rules_version", "options")}
    seats = len(record["seats"])
    if record.get("deal_set"):
        deal["deal_set"] = record["deal_set"] | {"number": 1}  # all matches of a set have the same deals
    else:
        deal |= {"seed": record["seed"], "nonces": record["nonces"]}
    return _play_par(canonical_json(deal), seats)


@lru_cache(maxsize=4096)
def _play_par(deal: bytes, seats: int) -> tuple[float, ...]:
    given = json.loads(deal)
    nonces = given.get("nonces") or [None] * seats
    in_set = given.get("deal_set")
    name = PAR_BOTS[given["game"]]
    setup = Setup(
        match="matches/par",
        game=given["game"],
        rules_version=given["rules_version"],
        options=given["options"],
        bots=tuple(f"bots/{name}/versions/{seat}" for seat in range(seats)),
        time_control=local_time_control(given["game"]),
        seed=bytes.fromhex(given.get("seed") or "00" * 32),
        durability="none",
        deal_set=DealSet.from_json(in_set) if in_set else None,
    )
    players = [
        LocalPlayer(name, sample(name, given["game"]), bytes.fromhex(nonce) if nonce else NO_NONCE, Random(0))
        for nonce in nonces
    ]
    played = LocalTable(setup, players, _raise_failure, lambda value: value).play_match()
    return tuple(map(float, played.points))


def _raise_failure(failure: object) -> None:
    raise RuntimeError(f"the par bot failed: {failure}")
