"""Checks a season from its records up: a record proves a result, and the results prove the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import islice, tee
from typing import Any, TypeAlias

from seatwise.season.bundle import BadSeason, Bundle, UncheckedSeason, fault_at
from seatwise_referee.verify import BadRecord, NotInstalled, Verdict, check_rules, verify_lines

VERIFIERS = "seatwise.seasons"
"""Entry points: functions that take an open bundle and raise `BadSeason`."""

_SAME = {"game": "game", "rules_version": "rules_version", "options": "options", "time_control": "time"}
"""The names of settings in a record, and in settings.json."""

Object: TypeAlias = dict[str, Any]
VerifyLines: TypeAlias = Callable[[Iterable[bytes]], Iterator[Verdict]]


@dataclass(frozen=True, slots=True)
class CheckedSeason:
    """A season that was checked, and is right."""

    records: int
    entrants: int
    digest: str
    has_table: bool
    """Whether the table was worked out again; without the server extra it cannot be."""


def check_season(
    bundle: Bundle,
    digest: str = "",
    advance: Callable[[int], None] = lambda _: None,
    verify: VerifyLines = verify_lines,
) -> CheckedSeason:
    """Check a whole season, and return what was found in it.

    Args:
        bundle: The open bundle.
        digest: The digest that was published; empty if it is not known.
        advance: Called with the number of bytes after each record.
        verify: Yields the verdicts on the records, as `verify_lines` does.

    Raises:
        UncheckedSeason: The game of the season is not installed here.
        BadSeason: Something is wrong with it. The text names the first thing.
    """
    bundle.check_manifest()
    if digest and bundle.digest != digest:
        raise BadSeason(f"its digest is {bundle.digest}, and published is {digest}: it is not that season")
    settings = _read_settings(bundle)
    _require_rules(settings)
    count = _check_records(bundle, settings, advance, verify)
    verifiers = list(_load_verifiers())
    for verifier in verifiers:
        verifier(bundle)
    return CheckedSeason(count, len(settings["entrants"]), bundle.digest, bool(verifiers))


def _load_verifiers() -> Iterator[Callable[[Bundle], None]]:
    """Those of the server's arithmetic, where all that it needs is installed."""
    for point in entry_points(group=VERIFIERS):
        try:
            yield point.load()
        except ModuleNotFoundError:
            return


def _read_settings(bundle: Bundle) -> Object:
    settings = bundle.read_json("settings.json")
    if not isinstance(settings, dict) or not isinstance(settings.get("entrants"), list):
        raise BadSeason("settings.json: has no list of entrants")
    for key in _SAME.values():
        if key not in settings:
            raise BadSeason(f"settings.json: {key} is missing")
    return settings


def _require_rules(settings: Object) -> None:
    """Raise `UncheckedSeason` where the game is not installed. Settings that no record can have are found with the records."""
    try:
        check_rules(settings["game"], settings["rules_version"])
    except NotInstalled as missing:
        raise UncheckedSeason(missing.fault.text) from None
    except BadRecord:
        return


def _read_results(bundle: Bundle) -> Iterator[Object]:
    """Those of the log, in their order."""
    for number, result in enumerate(bundle.read_json_lines("results.jsonl"), start=1):
        if result.get("seq") != number:
            told = f"seq is {_shorten(result.get('seq'))}; it must be {number}"
            raise fault_at("results.jsonl", number, told)
        yield result


def _check_records(
    bundle: Bundle, settings: Object, advance: Callable[[int], None], verify: VerifyLines
) -> int:
    """How many there are: one for each result, in the same order. No more of them are in memory than `verify` reads ahead."""
    count = 0
    results = _read_results(bundle)
    told, lines = tee(bundle.read_lines("records.jsonl"))
    for verdict in verify(told):
        line = next(lines)
        if verdict.fault:
            raise fault_at("records.jsonl", verdict.line, str(verdict.fault))
        if (result := next(results, None)) is None:
            raise fault_at(
                "records.jsonl", verdict.line, f"{verdict.match} has no result: it was dropped from the log"
            )
        try:
            _check_record(json.loads(line), settings, result)
        except BadSeason as bad:
            raise fault_at("records.jsonl", verdict.line, str(bad)) from None
        advance(len(line))
        count = verdict.line
    if (left := next(results, None)) is not None:
        raise fault_at("results.jsonl", count + 1, f"{left.get('match')} has no record: it proves nothing")
    return count


def _check_record(record: Object, settings: Object, result: Object) -> None:
    for key, name in _SAME.items():
        if record[key] != settings[name]:
            found, wanted = _shorten(record[key]), _shorten(settings[name])
            raise BadSeason(f"{key} is {found}, and settings.json has {wanted}")
    _check_result(result, result_in(record))


def result_in(record: Mapping[str, Any]) -> Object:
    """Return the result that a record holds."""
    return {
        "match": record["match"],
        "bots": [seat["bot"] for seat in record["seats"]],
        "points": record["outcome"]["points"],
        "ranks": record["result"]["ranks"],
        "endings": record["endings"],
        "chain": record["chain"],
        "deal": record.get("deal_set", {}).get("name", ""),
    }


def _check_result(result: Object, told: Object) -> None:
    for key, right in told.items():
        if result.get(key) != right:
            raise BadSeason(
                f"{told['match']}: by its record {key} is {_shorten(right)}, "
                f"and line {result['seq']} of results.jsonl says {_shorten(result.get(key))}"
            )


def _shorten(value: Any) -> str:
    """The beginning of the value as JSON; the rest is never written."""
    text = "".join(islice(json.JSONEncoder(sort_keys=True).iterencode(value), 160))
    return text if len(text) <= 160 else f"{text[:160]}..."
