"""Checks what is fixed before the first move: limits, seats, seed, nonces and deals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from seatwise_referee.game import BadOptions, Json, RaceGame
from seatwise_referee.games.registry import GAMES
from seatwise_referee.hosted.hosted_rules import GAME_NAME, HostedRules
from seatwise_referee.journal import Entry, Sat, canonical_json
from seatwise_referee.record import RECORD_FORMAT
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.shuffle import commitment_to, seed_in_set
from seatwise_referee.time_control import BadTimeControl, TimeControl
from seatwise_referee.verify.fault import BadRecord, NotInstalled, quote_value

PACKAGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def check_versions(record: dict[str, Any]) -> None:
    """Check that this verifier knows the format, the game and its rules."""
    if record.get("format") != RECORD_FORMAT:
        raise BadRecord(
            f"format is {quote_value(record.get('format'))}; this verifier knows {quote_value(RECORD_FORMAT)}"
        )
    check_rules(record.get("game"), record.get("rules_version"))


def check_rules(name: object, version: object) -> None:
    """Check that the rules of this version of the game are here. Raises `NotInstalled`, or `BadRecord` for no such game."""
    if not isinstance(name, str) or name not in GAMES:
        if isinstance(name, str) and isinstance(version, str) and GAME_NAME.fullmatch(name):
            raise NotInstalled(f"not checked: {_what_to_install(name, version)}")
        raise BadRecord(
            f"game is {quote_value(name)}; this verifier knows {', '.join(map(quote_value, GAMES))}"
        )
    if version != GAMES[name].rules_version:
        known = quote_value(GAMES[name].rules_version)
        if isinstance(GAMES[name], HostedRules):
            raise NotInstalled(
                f"not checked: install the package whose rules_version of {name} is {quote_value(version)}; here it is {known}"
            )
        raise BadRecord(f"rules_version is {quote_value(version)}; this verifier knows {known} of {name}")


def _what_to_install(game: str, rules_version: str) -> str:
    package, slash, _ = rules_version.partition("/")
    if slash and PACKAGE_NAME.fullmatch(package):
        return (
            f"install {package}, the package that the record names for the game {quote_value(game)}, "
            "if you trust its author: its code would run here"
        )
    known = ", ".join(map(quote_value, GAMES))
    return f"install the package of the game {quote_value(game)}; this verifier knows {known}"


def setup_of(record: dict[str, Any]) -> Setup:
    """Return the match as it was created. The keys and types of the record have been checked. Raises `BadRecord`."""
    _check_seats(record)
    _check_options(record)
    _check_times(record)
    if commitment_to(bytes.fromhex(record["seed"])).hex() != record["commitment"]:
        raise BadRecord(f"the commitment {quote_value(record['commitment'])} is not SHA-256 of the seed")
    return Setup(
        match=record["match"],
        game=record["game"],
        rules_version=record["rules_version"],
        options=record["options"],
        bots=tuple(seat["bot"] for seat in record["seats"]),
        time_control=_time_control(record),
        seed=bytes.fromhex(record["seed"]),
        durability=record["durability"],
        deal_set=_deal_set(record),
        times=record.get("times", ""),
    )


def _deal_set(record: dict[str, Any]) -> DealSet | None:
    """Return the set of duplicate deals that the record names. The match's seed must be that of its number in the set."""
    if "deal_set" not in record:
        return None
    named = DealSet.from_json(record["deal_set"])
    if named.number > named.size:
        raise BadRecord(f"deal_set.number is {named.number}; the set has {named.size} matches")
    if seed_in_set(named.seed, named.number).hex() != record["seed"]:
        raise BadRecord(
            f"the seed {quote_value(record['seed'])} is not that of match {named.number} of its set"
        )
    return named


def _check_seats(record: dict[str, Any]) -> None:
    sizes, seats = GAMES[record["game"]].table_sizes, record["seats"]
    if len(seats) not in sizes:
        raise BadRecord(f"{len(seats)} seats; {record['game']} is played by {sizes[0]} to {sizes[-1]}")
    for place, seat in enumerate(seats):
        if seat["seat"] != place:
            raise BadRecord(f"seats[{place}].seat is {seat['seat']}; seats stand in order")
    for key in ("nonces", "endings"):
        if len(record[key]) != len(seats):
            raise BadRecord(f"{key} has {len(record[key])} elements for {len(seats)} seats")


def _check_options(record: dict[str, Any]) -> None:
    given = record["options"]
    try:
        complete = GAMES[record["game"]].complete_options(given)
    except BadOptions as error:
        raise BadRecord(f"options: {error}") from None
    for key, value in complete.items():
        if key not in given:
            raise BadRecord(f"options: the key {quote_value(key)} is missing; options are complete")
        if given[key] != value:
            raise BadRecord(
                f"options.{key} is {quote_value(given[key])}; in full it is {quote_value(value, 140)}"
            )


def _check_times(record: dict[str, Any]) -> None:
    """Check that only a race at a local table says how its times were charged."""
    if "times" not in record:
        return
    if record["durability"] != "none" or not isinstance(GAMES[record["game"]], RaceGame):
        raise BadRecord(
            f"times is {quote_value(record['times'])}; only a race at a local table has it, whose durability is 'none'"
        )


def _time_control(record: dict[str, Any]) -> TimeControl:
    try:
        limits = TimeControl.from_json(record["time_control"])
    except BadTimeControl as error:
        raise BadRecord(f"time_control: {error}") from None
    for pace in GAMES[record["game"]].paces:
        if pace not in limits.free_ms:
            raise BadRecord(f"time_control.free_ms has no limit for the pace {quote_value(pace)}")
    return limits


def check_nonces(record: dict[str, Any], entries: Sequence[Entry]) -> None:
    """Check that the nonces of the header are those with which the bots sat down."""
    taken: dict[int, Sat] = {}
    for entry in entries:
        if isinstance(entry, Sat):
            taken.setdefault(entry.seat, entry)
    for seat, nonce in enumerate(record["nonces"]):
        if nonce is not None and "deal_set" in record:
            raise BadRecord(f"nonces[{seat}] is given; in a set of duplicate deals no nonce is taken")
        sat = taken.get(seat)
        if sat is None and nonce is not None:
            raise BadRecord(f"nonces[{seat}] is given, but no entry `sat` of seat {seat} is")
        if sat is not None and sat.nonce != nonce:
            raise BadRecord(
                f"seat {seat} sat with the nonce {quote_value(sat.nonce)}, but nonces[{seat}] is {quote_value(nonce)}",
                sat.seq,
            )


def check_deals(record: dict[str, Any], setup: Setup) -> None:
    """Check that seed and nonces give exactly these deals."""
    nonces = [None if nonce is None else bytes.fromhex(nonce) for nonce in record["nonces"]]
    given = GAMES[setup.game].deals_in_clear(len(setup.bots), setup.deals_from(nonces), setup.options)
    _check_same(
        record["deals"], given, "deals", "the set's seed gives" if setup.deal_set else "seed and nonces give"
    )


def _check_same(found: Any, given: Json, where: str, source: str) -> None:
    """Raise `BadRecord` for the first place at which the deals differ."""
    if canonical_json(found) == canonical_json(given):  # not `==`, because there `true` equals 1
        return
    if isinstance(given, list) and isinstance(found, list):
        if len(found) != len(given):
            raise BadRecord(f"{where} has {len(found)} elements; the options and the seed give {len(given)}")
        for place, (one, other) in enumerate(zip(found, given, strict=True)):
            _check_same(one, other, f"{where}[{place}]", source)
    elif isinstance(given, dict) and isinstance(found, dict) and given.keys() == found.keys():
        for key in given:
            _check_same(found[key], given[key], f"{where}.{key}", source)
    raise BadRecord(f"{where} is {quote_value(found)}; {source} {quote_value(given)}")
