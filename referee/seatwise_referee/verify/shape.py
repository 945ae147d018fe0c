"""Which keys a record has, and of what type each value is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from seatwise_referee.ending import Ending
from seatwise_referee.verify.fault import BadRecord, quoted

Check: TypeAlias = Callable[[Any, str], None]
"""Takes a value and where it stands; raises `BadRecord` if it is not what belongs there."""

DURABILITIES = ("fsync", "loss-allowed", "none")
STOPS = ("STALL", "STORE")
"""What a referee may stand still for."""
LONGEST_TEXT = 256
"""In characters. No name comes near it; with longer ones a file could fill the memory."""


def whole(least: int = 0) -> Check:
    """An integer from `least` on; a truth value is none."""

    def check(value: Any, where: str) -> None:
        if type(value) is not int or value < least:
            raise BadRecord(f"{where} is {quoted(value)}; it must be a whole number from {least} on")

    return check


def number(value: Any, where: str) -> None:
    """Any integer."""
    if type(value) is not int:
        raise BadRecord(f"{where} is {quoted(value)}; it must be a whole number")


def text(value: Any, where: str) -> None:
    """A string with something in it."""
    if not isinstance(value, str) or not value:
        raise BadRecord(f"{where} is {quoted(value)}; it must be a text")
    _check_length(value, where)


def _check_length(value: str, where: str) -> None:
    if len(value) > LONGEST_TEXT:
        raise BadRecord(f"{where} is {quoted(value)}; it may have at most {LONGEST_TEXT} characters")


def hexed(value: Any, where: str) -> None:
    """32 bytes."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise BadRecord(f"{where} is {quoted(value)}; it must be 64 digits of 0-9 and a-f")


def anything(value: Any, where: str) -> None:
    """Is looked at elsewhere."""


def one_of(*names: str) -> Check:
    """One of these texts."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in names:
            raise BadRecord(f"{where} is {quoted(value)}; it must be one of {', '.join(names)}")

    return check


def maybe(inner: Check) -> Check:
    """That, or null."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def option(value: Any, where: str) -> None:
    """What a game's options may be."""
    if type(value) not in (int, str):
        raise BadRecord(f"{where} is {quoted(value)}; it must be a whole number or a text")
    if isinstance(value, str):
        _check_length(value, where)


def each(inner: Check) -> Check:
    """A list of such values."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list):
            raise BadRecord(f"{where} is {quoted(value)}; it must be a list")
        for place, element in enumerate(value):
            inner(element, f"{where}[{place}]")

    return check


def named(inner: Check) -> Check:
    """An object with any keys and such values."""

    def check(value: Any, where: str) -> None:
        _require_object(value, where)
        for key, element in value.items():
            _check_length(key, f"a key of {where}")
            inner(element, f"{where}.{quoted(key)[1:-1]}")

    return check


def having(checks: Mapping[str, Check], may_have: Mapping[str, Check] | None = None) -> Check:
    """An object with exactly these keys, and perhaps the others."""

    def check(value: Any, where: str) -> None:
        _require_object(value, where)
        here = {key: inner for key, inner in (may_have or {}).items() if key in value}
        _require_keys(value, {**checks, **here}, where)
        for key, inner in (*checks.items(), *here.items()):
            inner(value[key], f"{where}.{key}" if where else key)

    return check


def _require_object(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise BadRecord(f"{where} is {quoted(value)}; it must be an object")


def _require_keys(value: Mapping[str, Any], checks: Mapping[str, Check], where: str) -> None:
    place = f"{where}: " if where else ""
    for key in checks:
        if key not in value:
            raise BadRecord(f"{place}the key {quoted(key)} is missing")
    for key in value:
        if key not in checks:
            raise BadRecord(f"{place}the key {quoted(key)} does not belong there")


_LIMITS = (
    "bank_ms",
    "increment_ms",
    "grace_ms",
    "setup_ms",
    "allowance_cap_ms",
    "handover_ms",
    "tie_window_ms",
    "max_strikes",
    "max_rejections",
)
_OUTCOME = having({"points": each(number), "ranks": each(whole(1)), "rounds": each(each(number))})
_RESULT = having({"ranks": each(whole(1))})
_ENDINGS = each(one_of(*Ending))

RECORD = having(
    {
        "format": text,
        "match": text,
        "game": text,
        "rules_version": text,
        "options": named(option),
        "seats": each(having({"seat": whole(), "bot": text})),
        "time_control": having({"free_ms": named(whole(1)), **dict.fromkeys(_LIMITS, whole())}),
        "durability": one_of(*DURABILITIES),
        "commitment": hexed,
        "seed": hexed,
        "nonces": each(maybe(hexed)),
        "deals": each(anything),
        "entries": each(named(anything)),
        "outcome": _OUTCOME,
        "result": _RESULT,
        "endings": _ENDINGS,
        "chain": hexed,
    },
    may_have={"deal_set": having({"name": text, "number": whole(1), "size": whole(1), "seed": hexed})},
)

_TIMES = {"asked_ms": whole(), "allowance_ms": whole(), "charged_ms": whole()}
_PLAYED = {"seat": whole(), "move": anything}
_CALL = {"seat": whole(), "came_ms": whole(), **_TIMES}

_ENTRIES: Mapping[str, Mapping[str, Check]] = {
    "sat": {"seat": whole(), "nonce": maybe(hexed)},
    "dealt": {},
    "move": {"seat": whole(), "prompt": whole(1), "move": anything, **_TIMES},
    "default": {"reason": one_of("TIMED_OUT", "FORFEITED", "RESIGNED"), "prompt": whole(1)},
    "called": {
        "prompt": whole(1), "calls": each(having(_CALL)), "window_ms": whole(), "layouts": each(anything),
    },
    "agreed": {
        "prompt": whole(1), "reason": one_of("OFFERED", "TIMED_OUT"), "layouts": each(anything),
        "silent": each(whole()), "asked": each(having({"seat": whole(), **_TIMES})),
    },
    "rejected": {"seat": whole(), "prompt": whole(1), "reason": one_of("ILLEGAL", "TOO_LATE")},
    "resigned": {"seat": whole()},
    "forfeited": {"seat": whole(), "ending": one_of("TIMED_OUT", "ILLEGAL_MOVES", "NEVER_SAT")},
    "taken_over": {"epoch": whole(1)},
    "frozen": {"ms": whole(1), "why": one_of(*STOPS)},
    "finished": {"outcome": _OUTCOME, "result": _RESULT, "endings": _ENDINGS},
}  # fmt: skip


def check_entry(entry: dict[str, Any], seats: int) -> None:
    """Keys and types of one entry, and that its seats are at this table of so many."""
    kind = entry.get("kind")
    if kind == "voided":
        raise BadRecord("a voided match has no record")
    if not isinstance(kind, str) or kind not in _ENTRIES:
        raise BadRecord(f"{quoted(kind)} is no kind of entry; there are {', '.join(_ENTRIES)}")
    checks = {"kind": text, "seq": whole(1), "at_ms": whole(), **_ENTRIES[kind]}
    if kind == "default":
        times = _TIMES if entry.get("reason") == "TIMED_OUT" else {}
        checks["moves"] = each(having({**_PLAYED, **times}))
    having(checks)(entry, "")
    for seat in _seats_in(entry):
        if seat >= seats:
            raise BadRecord(f"there is no seat {seat} at a table of {seats}")


def _seats_in(entry: dict[str, Any]) -> Iterator[int]:
    """All seats that the entry names."""
    for holder in (entry, *(each for key in ("moves", "calls", "asked") for each in entry.get(key, ()))):
        yield holder.get("seat", 0)
    yield from entry.get("silent", ())
