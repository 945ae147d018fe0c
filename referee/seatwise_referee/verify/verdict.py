"""The verdict on a record, and the verdicts on a file of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.journal import Entry, Finished, Moved, entry_from_json
from seatwise_referee.record import TAIL_KEYS, compute_last_link
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.verify.fault import BadRecord, RecordFault, escape_text, quote_value
from seatwise_referee.verify.header import check_deals, check_nonces, check_versions, setup_of
from seatwise_referee.verify.reading import read_line
from seatwise_referee.verify.replay import RecordReplay, check_tail
from seatwise_referee.verify.shape import RECORD, check_entry, check_seat


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one record."""

    fault: RecordFault | None = None
    """The first fault of the record; `None` if it has none."""

    line: int = 1
    """The line of the record, from 1."""

    match: str = ""
    """The name of the match; empty if it could not be read."""

    chain: str = ""
    """The last link of the chain as computed here, in hex; empty if there is a fault."""

    setup: Setup | None = None
    """The match as it was created; `None` if there is a fault."""


def verify_line(line: str | bytes) -> Verdict:
    """Return the verdict on one record. It never raises an exception, whatever the line holds."""
    match = ""
    try:
        record, written = read_line(line)
        check_versions(record)
        RECORD(record, "")
        match = record["match"]
        chain, setup = _verify_record(record, written)
        return Verdict(match=match, chain=chain, setup=setup)
    except BadRecord as bad:
        return Verdict(bad.fault, match=match)
    except GameFault as fault:
        return Verdict(RecordFault(escape_text(f"the code of its game failed: {fault}")), match=match)


def verify_lines(lines: Iterable[str | bytes]) -> Iterator[Verdict]:
    """Yield the verdicts on the lines of a file, one by one as they are read.

    A match that is in the file twice is a fault. So is a set of duplicate deals whose records contradict each other.
    """
    yield from check_verdicts(map(verify_line, lines))


def check_verdicts(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield the verdicts of `verify_line` on all lines of a file, with their lines, after checking them against each other."""
    file = _FileChecks()
    for number, found in enumerate(verdicts, start=1):
        verdict = replace(found, line=number)
        try:
            file.add_verdict(verdict)
        except BadRecord as bad:
            verdict = verdict if verdict.fault else replace(verdict, fault=bad.fault, chain="", setup=None)
        yield verdict


class _FileChecks:
    """The checks of the records of one file against each other."""

    def __init__(self) -> None:
        self._matches: dict[str, int] = {}
        self._sets: dict[str, tuple[Setup, int]] = {}
        self._places: dict[tuple[str, int], int] = {}

    def add_verdict(self, verdict: Verdict) -> None:
        """Add one more record. Raises `BadRecord` if it contradicts those before it."""
        if not verdict.match:
            return
        first = self._matches.setdefault(verdict.match, verdict.line)
        if first != verdict.line:
            raise BadRecord(f"{quote_value(verdict.match)} is already in line {first}")
        if verdict.setup and verdict.setup.deal_set:
            self._add_match_of_set(verdict.setup, verdict.setup.deal_set, verdict.line)

    def _add_match_of_set(self, setup: Setup, named: DealSet, line: int) -> None:
        known, first = self._sets.setdefault(named.name, (setup, line))
        here = _same_in_a_set(setup)
        for what, right in _same_in_a_set(known).items():
            if (found := here[what]) != right:
                raise BadRecord(
                    f"{what} is {quote_value(found)}; in line {first} the set {quote_value(named.name)} has {quote_value(right)}"
                )
        taken = self._places.setdefault((named.name, named.number), line)
        if taken != line:
            raise BadRecord(
                f"match {named.number} of the set {quote_value(named.name)} is already in line {taken}"
            )


def _same_in_a_set(setup: Setup) -> dict[str, object]:
    """Return what all matches of a set must have in common, each value by its name."""
    place = cast("DealSet", setup.deal_set)  # only a match of a set is asked
    return {
        "game": setup.game,
        "options": dict(setup.options),
        "the number of seats": len(setup.bots),
        "deal_set.seed": place.seed.hex(),
        "deal_set.size": place.size,
    }


def _verify_record(record: dict[str, Any], written: list[bytes]) -> tuple[str, Setup]:
    """Return the last link of the record's chain, and the match as it was created. Raises `BadRecord` for any fault.

    `written` are its entries as they are written in the line.
    """
    setup = setup_of(record)
    entries = _read_entries(record)
    check_nonces(record, entries)
    check_deals(record, setup)
    _replay_entries(setup, entries)
    check_tail(record)
    return _check_chain(record, written), setup


def _read_entries(record: dict[str, Any]) -> list[Entry]:
    """Return the entries, which are in order. Raises `BadRecord`."""
    entries: list[Entry] = []
    at_ms, seats = 0, len(record["seats"])
    _check_order([body.seq if type(body) is Moved else body.get("seq") for body in record["entries"]])
    for place, body in enumerate(record["entries"], start=1):
        is_plain = type(body) is Moved and body.seat < seats  # nearly always
        entry: Entry = body if is_plain else _read_entry(body, seats, place)
        if entry.at_ms < at_ms:
            raise BadRecord(f"at_ms falls from {at_ms} to {entry.at_ms}", place)
        at_ms = entry.at_ms
        entries.append(entry)
    return entries


def _read_entry(body: dict[str, Any] | Moved, seats: int, place: int) -> Entry:
    try:
        if isinstance(body, Moved):
            check_seat(body.seat, seats)
            return body
        check_entry(body, seats)
    except BadRecord as bad:
        raise bad.in_entry(place) from None
    return entry_from_json(body)


def _check_order(seqs: list[Any]) -> None:
    """Check that the entries are numbered 1, 2, 3 ..."""
    for place, seq in enumerate(seqs, start=1):
        if type(seq) is not int:
            raise BadRecord(f"entries[{place - 1}].seq is {quote_value(seq)}; it must be {place}")
        if seq == place:
            continue
        if seq in seqs[: place - 1]:
            raise BadRecord("stands twice", seq)
        if place in seqs[place:]:
            raise BadRecord(f"out of order: seq {place} belongs there", seq)
        raise BadRecord(f"stands where seq {place} belongs, which is missing", seq)


def _replay_entries(setup: Setup, entries: list[Entry]) -> None:
    course = RecordReplay(setup)
    for entry in entries:
        course.apply_entry(entry)
    if not isinstance(course.position.end, Finished):
        last = f"`{entries[-1].kind}` (seq {len(entries)})" if entries else "nothing"
        raise BadRecord(f"the entries end with {last}; a record ends with `finished`")


def _check_chain(record: dict[str, Any], written: list[bytes]) -> str:
    header = {key: value for key, value in record.items() if key not in TAIL_KEYS}
    right = compute_last_link(header, written).hex()
    if record["chain"] != right:
        raise BadRecord(
            f"the chain ends with {quote_value(record['chain'])}, but header and entries give {quote_value(right)}; "
            "nothing else is wrong, so what was changed is the chain itself or something that only it holds: "
            "a name, a limit or a time that decided nothing, or another legal move"
        )
    return right
