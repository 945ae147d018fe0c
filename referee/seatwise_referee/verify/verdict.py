"""What is said of a record, and of a file of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from seatwise_referee.journal import Entry, Finished, entry_from_json
from seatwise_referee.record import TAIL_KEYS, last_link
from seatwise_referee.setup import DealSet, Setup
from seatwise_referee.verify.course import Course
from seatwise_referee.verify.fault import BadRecord, Fault, quoted
from seatwise_referee.verify.finish import check_tail
from seatwise_referee.verify.header import check_deals, check_nonces, check_versions, setup_of
from seatwise_referee.verify.reading import read
from seatwise_referee.verify.shape import RECORD, check_entry


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one record."""

    fault: Fault | None = None
    """`None`: everything that can be checked is right."""

    line: int = 1
    """Counted from 1."""

    match: str = ""
    """Its name as the record gives it; empty if it could not be read."""

    chain: str = ""
    """The last link as worked out here, in hex; empty unless all is right."""

    setup: Setup | None = None
    """What was played, if all is right."""


def verify_line(line: str | bytes) -> Verdict:
    """The verdict on one record. Never raises, whatever the line holds."""
    match = ""
    try:
        record = read(line)
        check_versions(record)
        RECORD(record, "")
        match = record["match"]
        chain, setup = _verified(record)
        return Verdict(match=match, chain=chain, setup=setup)
    except BadRecord as bad:
        return Verdict(bad.fault, match=match)


def verify_lines(lines: Iterable[str | bytes]) -> Iterator[Verdict]:
    """The verdicts on a file's lines, one by one as they are read.

    No match may stand there twice, and what is said of a set of duplicate deals must be the same everywhere.
    """
    file = _File()
    for number, line in enumerate(lines, start=1):
        verdict = replace(verify_line(line), line=number)
        try:
            file.take(verdict)
        except BadRecord as bad:
            verdict = verdict if verdict.fault else replace(verdict, fault=bad.fault, chain="", setup=None)
        yield verdict


class _File:
    """What the records of one file say together."""

    def __init__(self) -> None:
        self._matches: dict[str, int] = {}
        self._sets: dict[str, tuple[Setup, int]] = {}
        self._places: dict[tuple[str, int], int] = {}

    def take(self, verdict: Verdict) -> None:
        """One more record; `BadRecord` if it does not go together with those before it."""
        if not verdict.match:
            return
        first = self._matches.setdefault(verdict.match, verdict.line)
        if first != verdict.line:
            raise BadRecord(f"{quoted(verdict.match)} is already in line {first}")
        if verdict.setup and verdict.setup.deal_set:
            self._take_of_set(verdict.setup, verdict.setup.deal_set, verdict.line)

    def _take_of_set(self, setup: Setup, named: DealSet, line: int) -> None:
        known, first = self._sets.setdefault(named.name, (setup, line))
        here = _same_in_a_set(setup)
        for what, right in _same_in_a_set(known).items():
            if (found := here[what]) != right:
                raise BadRecord(
                    f"{what} is {quoted(found)}; in line {first} the set {quoted(named.name)} has {quoted(right)}"
                )
        taken = self._places.setdefault((named.name, named.number), line)
        if taken != line:
            raise BadRecord(
                f"match {named.number} of the set {quoted(named.name)} is already in line {taken}"
            )


def _same_in_a_set(setup: Setup) -> dict[str, object]:
    """What all matches of a set have in common, by its name."""
    place = cast("DealSet", setup.deal_set)  # only a match of a set is asked
    return {
        "game": setup.game,
        "options": dict(setup.options),
        "the number of seats": len(setup.bots),
        "deal_set.seed": place.seed.hex(),
        "deal_set.size": place.size,
    }


def _verified(record: dict[str, Any]) -> tuple[str, Setup]:
    """The last link of a record that is right in every way, and what was played; or `BadRecord`."""
    setup = setup_of(record)
    entries = _entries(record)
    check_nonces(record, entries)
    check_deals(record, setup)
    _check_course(setup, entries)
    check_tail(record)
    return _checked_chain(record), setup


def _entries(record: dict[str, Any]) -> list[Entry]:
    """The entries, each in its place."""
    entries: list[Entry] = []
    at_ms = 0
    _check_order([body.get("seq") for body in record["entries"]])
    for place, body in enumerate(record["entries"], start=1):
        try:
            check_entry(body, len(record["seats"]))
        except BadRecord as bad:
            raise BadRecord(bad.fault.text, place) from None
        if body["at_ms"] < at_ms:
            raise BadRecord(f"at_ms falls from {at_ms} to {body['at_ms']}", place)
        at_ms = body["at_ms"]
        entries.append(entry_from_json(body))
    return entries


def _check_order(seqs: list[Any]) -> None:
    """That the entries are numbered 1, 2, 3 ..."""
    for place, seq in enumerate(seqs, start=1):
        if type(seq) is not int:
            raise BadRecord(f"entries[{place - 1}].seq is {quoted(seq)}; it must be {place}")
        if seq == place:
            continue
        if seq in seqs[: place - 1]:
            raise BadRecord("stands twice", seq)
        if place in seqs[place:]:
            raise BadRecord(f"out of order: seq {place} belongs there", seq)
        raise BadRecord(f"stands where seq {place} belongs, which is missing", seq)


def _check_course(setup: Setup, entries: list[Entry]) -> None:
    course = Course(setup)
    for entry in entries:
        course.go_on(entry)
    if not isinstance(course.position.end, Finished):
        last = f"`{entries[-1].kind}` (seq {len(entries)})" if entries else "nothing"
        raise BadRecord(f"the entries end with {last}; a record ends with `finished`")


def _checked_chain(record: dict[str, Any]) -> str:
    header = {key: value for key, value in record.items() if key not in TAIL_KEYS}
    right = last_link(header, record["entries"]).hex()
    if record["chain"] != right:
        raise BadRecord(
            f"the chain ends with {quoted(record['chain'])}, but header and entries give {quoted(right)}; "
            "nothing else is wrong, so what was changed is the chain itself or something that only it holds: "
            "a name, a limit or a time that decided nothing, or another legal move"
        )
    return right
