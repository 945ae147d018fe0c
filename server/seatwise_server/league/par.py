"""Measures the luck of a record's deals, for every seat: by par, and by playouts. Measures the luck of draws, too.

Par is the score of the game's par bot, played by the referee's rules. Playouts are simulations by players that are simpler and
faster. Both are published with the SDK, and the random numbers of playouts follow from the deals. So anyone with the record gets
the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

from cachetools import LRUCache

from seatwise.errors import UsageError
from seatwise.kits import KITS, find_kit
from seatwise.local.table import LocalPlayer, LocalTable, local_time_control
from seatwise.replay.record_files import open_record_lines
from seatwise.replay.record_units import read_in_units
from seatwise.samples import sample
from seatwise.units import UnitOptions, UnitPlan
from seatwise.units.plan import UnitPlayer
from seatwise_referee.journal import canonical_json
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import NO_NONCE, deal_seed, deal_seed_of_set
from seatwise_referee.verify import nesting_fault
from seatwise_server.competition.statistics.pair_test import Favour, JudgedMatch, find_gifts

_known_draw_luck: Final[LRUCache[str, tuple[float, ...]]] = LRUCache(4096)
"""By the last link of the record's chain. A page is written again after each match."""


def par_of(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the par bot's score at each seat of the record's deals; `None` for a game without a par bot."""
    return _play_par(_deal_of(record), len(record["seats"])) if KITS[record["game"]].par_bot else None


def playouts_of(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the mean points of playouts at each seat of the record's deals; `None` for a game without playouts."""
    return _play_out(_deal_of(record), len(record["seats"])) if KITS[record["game"]].playouts_module else None


def draw_luck_of(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the luck at each seat of the draws of mixed moves, in points; `None` if there are none, or the game has no measure."""
    module = KITS[record["game"]].draws_module
    if not module or not any("choices" in entry for entry in record["entries"]):
        return None
    chain = str(record["chain"])
    if chain not in _known_draw_luck:
        _known_draw_luck[chain] = import_module(module).measure_draw_luck(record)
    return _known_draw_luck[chain]


def _deal_of(record: Mapping[str, Any]) -> bytes:
    """Return what determines the record's deals. All matches of a set have the same deals."""
    deal = {key: record[key] for key in ("game", "rules_version", "options")}
    if record.get("deal_set"):
        deal["deal_set"] = record["deal_set"] | {"number": 1}
    else:
        deal |= {"seed": record["seed"], "nonces": record["nonces"]}
    return canonical_json(deal)


@lru_cache(maxsize=4096)
def _play_out(deal: bytes, seats: int) -> tuple[float, ...]:
    given = json.loads(deal)
    if in_set := given.get("deal_set"):
        seed = deal_seed_of_set(bytes.fromhex(in_set["seed"]))
    else:
        nonces = [nonce and bytes.fromhex(nonce) for nonce in given["nonces"] or ()]
        seed = deal_seed(bytes.fromhex(given["seed"]), nonces)
    estimate: Callable[[int, bytes, Mapping[str, Any]], tuple[float, ...]]
    estimate = import_module(KITS[given["game"]].playouts_module).mean_playout_points
    return estimate(seats, seed, given["options"])


@lru_cache(maxsize=4096)
def _play_par(deal: bytes, seats: int) -> tuple[float, ...]:
    given = json.loads(deal)
    nonces = given.get("nonces") or [None] * seats
    in_set = given.get("deal_set")
    name = KITS[given["game"]].par_bot
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


# --- Gifts by moves ---


def report_gifts(
    file: Path, deals: int, on_match: Callable[[], None], work: UnitOptions
) -> tuple[Favour, ...]:
    """Return the gifts of each pair that met often enough, the most surprising first.

    Args:
        file: A season's bundle, or a file of records.
        deals: The number of deals in which each move is judged.
        on_match: Called after each match.
        work: Where the matches are judged, and which of them.

    Raises:
        UsageError: The file cannot be read, or a record of it cannot be judged.
    """
    settings = {"deals": deals, "records": work.digest_files([file])}
    plan = UnitPlan("seatwise_server.league.par:open_gifts", settings)
    with open_record_lines(str(file)) as lines:
        try:
            return find_gifts(_judge_matches(plan, lines, on_match, work))
        except UsageError as bad:
            raise UsageError(f"{file}: {bad}") from None


def count_records(file: Path) -> int:
    """Return the number of records in the file. Raises `UsageError` if it cannot be read, or has none."""
    with open_record_lines(str(file)) as lines:
        count = sum(1 for _ in lines)
    if not count:
        raise UsageError(f"{file}: contains no record")
    return count


def _judge_matches(
    plan: UnitPlan, lines: Iterable[bytes], on_match: Callable[[], None], work: UnitOptions
) -> Iterator[JudgedMatch]:
    for place, (fault, bots, gifts) in read_in_units(plan, lines, work):
        if fault:
            raise UsageError(f"record {place + 1}: {fault}")
        yield JudgedMatch(tuple(bots), tuple(map(tuple, gifts)))
        on_match()


def open_gifts(settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what judges batches of records: of each its fault, its bots, and the gifts of each to each."""

    def judge(line: bytes) -> tuple[Any, ...]:
        try:
            found = _find_judge(_game_in(line))(line, settings["deals"])
        except ValueError as bad:
            return str(bad) or "is no record", (), ()
        return "", found.bots, found.gifts

    return lambda _, lines: ([judge(line.encode("latin-1")) for line in lines], {})


def _game_in(line: bytes) -> str:
    """Return the name of the game in a record that nobody has verified yet. Raises `ValueError`."""
    if fault := nesting_fault(line):
        raise ValueError(fault)
    record = json.loads(line.decode("ascii"))
    game = record.get("game") if isinstance(record, dict) else None
    if not isinstance(game, str):
        raise ValueError("this names no game, so it is no record")
    return game


def _find_judge(game: str) -> Callable[[bytes, int], Any]:
    """Return the function that judges the moves of a match of this game. Raises `UsageError` if there is none."""
    module = find_kit(game).gifts_module
    if not module:
        raise UsageError(f"the moves of {game} are not judged: gifts are measured by points alone there")
    judge: Callable[[bytes, int], Any] = import_module(module).measure_gifts
    return judge
