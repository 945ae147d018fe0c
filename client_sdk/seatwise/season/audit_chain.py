"""The lines of an audit log: each has the hash of the line before it, so that no line can be changed, removed or added."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from seatwise_referee.journal import canonical_json

AUDIT_FORMAT = "seatwise.audit/1"
FIRST_LINK = "0" * 64
"""The hash before the first line of a log."""
LONGEST_AUDIT_LINE = 8_192
"""The most bytes of a line."""

_FIELD_TYPES: dict[str, type] = {
    "at_ms": int,
    "chain": str,
    "format": str,
    "from": str,
    "method": str,
    "outcome": str,
    "previous": str,
    "seq": int,
    "thing": str,
    "who": str,
}


def write_audit_line(seq: int, previous: str, fields: dict[str, Any]) -> tuple[str, str]:
    """Return the line of an entry, and its hash. `previous` is the hash of the line before it, or `FIRST_LINK`."""
    entry = {"format": AUDIT_FORMAT, "seq": seq, "previous": previous, **fields}
    chain = sha256(canonical_json(entry)).hexdigest()
    return canonical_json({**entry, "chain": chain}).decode(), chain


def verify_audit_log(lines: Iterable[bytes], last_chain: str = "") -> tuple[int, int, str]:
    """Check the lines of a log, oldest first. Return the number of correct lines, the first seq, and the first fault.

    The fault is empty if there is none. A log that does not begin with seq 1 is checked from its first line on.
    With `last_chain`, the last line must have this chain: else nobody can see that lines were removed from the end.
    """
    count, first_seq, before = 0, 0, None
    for line in lines:
        fault, entry = _check_line(line, before)
        if fault:
            return count, first_seq, fault
        first_seq = first_seq or entry["seq"]
        count, before = count + 1, entry
    if before is None:
        return count, first_seq, "it holds no entry"
    if last_chain and before["chain"] != last_chain:
        fault = f"the log ends before it, with the chain {before['chain']}, and not with {last_chain}"
        return count, first_seq, fault
    return count, first_seq, ""


def _check_line(line: bytes, before: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    try:
        entry = json.loads(line) if len(line) <= LONGEST_AUDIT_LINE else None
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict) or {name: type(it) for name, it in entry.items()} != _FIELD_TYPES:
        return "this is no entry of an audit log", {}
    unhashed = {name: it for name, it in entry.items() if name != "chain"}
    chain, whole = sha256(canonical_json(unhashed)).hexdigest(), canonical_json(entry)
    if chain != entry["chain"] or whole != line.rstrip(b"\n"):
        return "the entry was changed: its chain does not fit", {}
    if before is None:
        is_next = entry["seq"] > 1 or (entry["seq"] == 1 and entry["previous"] == FIRST_LINK)
    else:
        is_next = (entry["seq"], entry["previous"]) == (before["seq"] + 1, before["chain"])
    return ("" if is_next else "an entry before this one was removed, added or changed"), entry
