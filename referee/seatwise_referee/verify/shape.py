"""The keys of a record and the types of their values, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from seatwise_referee.ending import Ending
from seatwise_referee.journal import Moved
from seatwise_referee.setup import MEASURED, PRICED
from seatwise_referee.time_control import NUMBER_FIELDS
from seatwise_referee.verify.fault import BadRecord, quote_value

Check: TypeAlias = Callable[[Any, str], None]
"""Takes a value and its place in the record. Raises `BadRecord` if the value is not right there."""

DURABILITIES = ("fsync", "loss-allowed", "none")
STOPS = ("STALL", "STORE")
"""The causes of a standstill."""
LONGEST_TEXT = 256
"""In characters. No name is nearly as long. With longer names a file could fill the memory."""


def whole_number(least: int = 0) -> Check:
    """Return a check for an integer that is at least `least`. A truth value is none."""

    def check(value: Any, where: str) -> None:
        if type(value) is not int or value < least:
            raise BadRecord(f"{where} is {quote_value(value)}; it must be a whole number from {least} on")

    return check


def any_number(value: Any, where: str) -> None:
    """Check that the value is an integer."""
    if type(value) is not int:
        raise BadRecord(f"{where} is {quote_value(value)}; it must be a whole number")


def any_text(value: Any, where: str) -> None:
    """Check that the value is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise BadRecord(f"{where} is {quote_value(value)}; it must be a text")
    _check_length(value, where)


def _check_length(value: str, where: str) -> None:
    if len(value) > LONGEST_TEXT:
        raise BadRecord(f"{where} is {quote_value(value)}; it may have at most {LONGEST_TEXT} characters")


def hex_digest(value: Any, where: str) -> None:
    """Check that the value is 32 bytes in hex."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise BadRecord(f"{where} is {quote_value(value)}; it must be 64 digits of 0-9 and a-f")


def any_value(value: Any, where: str) -> None:
    """Accept any value; it is checked elsewhere."""


def one_of(*names: str) -> Check:
    """Return a check for one of these texts."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in names:
            raise BadRecord(f"{where} is {quote_value(value)}; it must be one of {', '.join(names)}")

    return check


def or_null(inner: Check) -> Check:
    """Return a check for null, or a value that passes `inner`."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def option_value(value: Any, where: str) -> None:
    """Check that the value is a whole number or a text, as options of games are."""
    if type(value) not in (int, str):
        raise BadRecord(f"{where} is {quote_value(value)}; it must be a whole number or a text")
    if isinstance(value, str):
        _check_length(value, where)


def list_of(inner: Check) -> Check:
    """Return a check for a list whose values pass `inner`."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list):
            raise BadRecord(f"{where} is {quote_value(value)}; it must be a list")
        for place, element in enumerate(value):
            inner(element, f"{where}[{place}]")

    return check


def object_of(inner: Check) -> Check:
    """Return a check for an object with any keys, whose values pass `inner`."""

    def check(value: Any, where: str) -> None:
        _require_object(value, where)
        for key, element in value.items():
            if len(key) > LONGEST_TEXT:
                _check_length(key, f"a key of {where}")
            # A record has a thousand of the others, and the text of their places takes longer.
            if inner is not any_value:
                inner(element, f"{where}.{quote_value(key)[1:-1]}")

    return check


def entry_list(value: Any, where: str) -> None:
    """Check that the value is a list of objects. Moves among them that were read and checked already are right."""
    if not isinstance(value, list):
        raise BadRecord(f"{where} is {quote_value(value)}; it must be a list")
    for place, element in enumerate(value):
        if not isinstance(element, Moved):
            _any_object(element, f"{where}[{place}]")


def object_with(checks: Mapping[str, Check], may_have: Mapping[str, Check] | None = None) -> Check:
    """Return a check for an object with exactly the keys of `checks`, and perhaps those of `may_have`."""

    def check(value: Any, where: str) -> None:
        _require_object(value, where)
        wanted = checks
        if may_have:
            wanted = {**checks, **{key: inner for key, inner in may_have.items() if key in value}}
        _require_keys(value, wanted, where)
        for key, inner in wanted.items():
            inner(value[key], f"{where}.{key}" if where else key)

    return check


def _require_object(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise BadRecord(f"{where} is {quote_value(value)}; it must be an object")


def _require_keys(value: Mapping[str, Any], checks: Mapping[str, Check], where: str) -> None:
    place = f"{where}: " if where else ""
    for key in checks:
        if key not in value:
            raise BadRecord(f"{place}the key {quote_value(key)} is missing")
    for key in value:
        if key not in checks:
            raise BadRecord(f"{place}the key {quote_value(key)} does not belong there")


_any_object = object_of(any_value)
_OUTCOME = object_with(
    {"points": list_of(any_number), "ranks": list_of(whole_number(1)), "rounds": list_of(list_of(any_number))}
)
_RESULT_SHAPE = object_with({"ranks": list_of(whole_number(1))})
_ENDING_SHAPE = list_of(one_of(*Ending))

RECORD = object_with(
    {
        "format": any_text,
        "match": any_text,
        "game": any_text,
        "rules_version": any_text,
        "options": object_of(option_value),
        "seats": list_of(object_with({"seat": whole_number(), "bot": any_text})),
        "time_control": object_with(
            {"free_ms": object_of(whole_number(1)), **dict.fromkeys(NUMBER_FIELDS, whole_number())}
        ),
        "durability": one_of(*DURABILITIES),
        "commitment": hex_digest,
        "seed": hex_digest,
        "nonces": list_of(or_null(hex_digest)),
        "deals": list_of(any_value),
        "entries": entry_list,
        "outcome": _OUTCOME,
        "result": _RESULT_SHAPE,
        "endings": _ENDING_SHAPE,
        "chain": hex_digest,
    },
    may_have={
        "deal_set": object_with(
            {"name": any_text, "number": whole_number(1), "size": whole_number(1), "seed": hex_digest}
        ),
        "times": one_of(PRICED, MEASURED),
    },
)

_CHARGE_TIMES = {"asked_ms": whole_number(), "allowance_ms": whole_number(), "charged_ms": whole_number()}
_PLAYED = {"seat": whole_number(), "move": any_value}
_CALL_SHAPE = {"seat": whole_number(), "came_ms": whole_number(), **_CHARGE_TIMES}

_ENTRIES: Mapping[str, Mapping[str, Check]] = {
    "sat": {"seat": whole_number(), "nonce": or_null(hex_digest)},
    "dealt": {},
    "move": {"seat": whole_number(), "prompt": whole_number(1), "move": any_value, **_CHARGE_TIMES},
    "default": {"reason": one_of("TIMED_OUT", "FORFEITED", "RESIGNED"), "prompt": whole_number(1)},
    "called": {
        "prompt": whole_number(1), "calls": list_of(object_with(_CALL_SHAPE)), "window_ms": whole_number(), "layouts": list_of(any_value),
    },
    "agreed": {
        "prompt": whole_number(1), "reason": one_of("OFFERED", "TIMED_OUT"), "layouts": list_of(any_value),
        "silent": list_of(whole_number()), "asked": list_of(object_with({"seat": whole_number(), **_CHARGE_TIMES})),
    },
    "rejected": {"seat": whole_number(), "prompt": whole_number(1), "reason": one_of("ILLEGAL", "TOO_LATE")},
    "resigned": {"seat": whole_number()},
    "forfeited": {"seat": whole_number(), "ending": one_of("TIMED_OUT", "ILLEGAL_MOVES", "NEVER_SAT")},
    "taken_over": {"epoch": whole_number(1)},
    "frozen": {"ms": whole_number(1), "why": one_of(*STOPS)},
    "finished": {"outcome": _OUTCOME, "result": _RESULT_SHAPE, "endings": _ENDING_SHAPE},
}  # fmt: skip


def _entry_check(kind: str, **more: Check) -> Check:
    return object_with(
        {"kind": any_text, "seq": whole_number(1), "at_ms": whole_number(), **_ENTRIES[kind], **more}
    )


_ENTRY_CHECKS: dict[str, Check] = {kind: _entry_check(kind) for kind in _ENTRIES}
_ENTRY_CHECKS["default"] = _entry_check("default", moves=list_of(object_with(_PLAYED)))
_DRAWN_MOVE_CHECK: Check = _entry_check(
    "move", choices=list_of(object_with({"move": any_value, "weight": whole_number(1)}))
)
_TIMED_OUT_CHECK: Check = _entry_check("default", moves=list_of(object_with({**_PLAYED, **_CHARGE_TIMES})))


def check_entry(entry: dict[str, Any], seats: int) -> None:
    """Check the keys and types of one entry, and that its seats are at a table of so many."""
    kind = entry.get("kind")
    if kind == "move" and _is_plain_move(entry, seats):
        return
    if kind == "voided":
        raise BadRecord("a voided match has no record")
    if not isinstance(kind, str) or kind not in _ENTRIES:
        raise BadRecord(f"{quote_value(kind)} is no kind of entry; there are {', '.join(_ENTRIES)}")
    _check_of(kind, entry)(entry, "")
    for seat in _seats_in(entry):
        check_seat(seat, seats)


def _check_of(kind: str, entry: dict[str, Any]) -> Check:
    if kind == "move" and "choices" in entry:
        return _DRAWN_MOVE_CHECK
    if kind == "default" and entry.get("reason") == "TIMED_OUT":
        return _TIMED_OUT_CHECK
    return _ENTRY_CHECKS[kind]


def check_seat(seat: int, seats: int) -> None:
    """Check that a table of so many has this seat."""
    if seat >= seats:
        raise BadRecord(f"there is no seat {seat} at a table of {seats}")


_MOVE_KEYS = frozenset({"kind", "seq", "at_ms", *_ENTRIES["move"]})
_move_numbers = itemgetter(*sorted(_MOVE_KEYS - {"kind", "move"}))
_move_counts = itemgetter("seq", "prompt")
_INTEGERS_ONLY = frozenset({int})


def _is_plain_move(move: dict[str, Any], seats: int) -> bool:
    """Return whether all is right with a move. Nearly all entries are moves, and this takes a third of the time of their check."""
    if move.keys() != _MOVE_KEYS:
        return False
    numbers = _move_numbers(move)
    if {*map(type, numbers)} != _INTEGERS_ONLY or min(numbers) < 0:  # `type`, because a truth value is an int
        return False
    return bool(min(_move_counts(move)) >= 1 and move["seat"] < seats)


def _seats_in(entry: dict[str, Any]) -> Iterator[int]:
    for holder in (entry, *(each for key in ("moves", "calls", "asked") for each in entry.get(key, ()))):
        yield holder.get("seat", 0)
    yield from entry.get("silent", ())
