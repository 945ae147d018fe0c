"""Records as units of offline work: batches of lines, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from seatwise.errors import UsageError
from seatwise.kits import use_deck_files
from seatwise.units import UnitEndsWorkers, UnitRun, reading_units
from seatwise.units.plan import UnitPlayer
from seatwise_referee.setup import Setup
from seatwise_referee.verify import RecordFault, Verdict, verify_line

BATCH_LINES: Final = 32
BATCH_BYTES: Final = 1024 * 1024
"""A batch is a unit when it has so many lines, or so many bytes."""
VERDICTS: Final = "seatwise.replay.record_units:open_verdicts"


def batch_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield batches of lines with their numbers, from 0. Each byte is a letter of its text."""
    number, size, batch = 0, 0, list[str]()
    for line in lines:
        batch.append(line.decode("latin-1"))
        size += len(line)
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield number, batch
            number, size, batch = number + 1, 0, []
    if batch:
        yield number, batch


def open_verdicts(settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what verifies batches of lines."""
    use_deck_files(settings["decks"])
    return lambda _, lines: ([_verdict_to_json(verify_line(line.encode("latin-1"))) for line in lines], {})


def read_verdicts(run: UnitRun, batches: Iterable[tuple[int, list[str]]]) -> Iterator[Verdict]:
    """Yield the verdict on each line, as `verify_line` returns it, in the order of the lines. Raises `UsageError`."""
    count = 0
    try:
        with reading_units(run, batches) as answers:
            for answer in answers:
                yield from map(_verdict_from_json, answer.result)
                count += len(answer.result)
    except UnitEndsWorkers:
        raise UsageError(
            f"{count} records were checked, and the next few have ended three workers; verify with --jobs 1"
        ) from None


def _verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "fault": verdict.fault and asdict(verdict.fault),
        "match": verdict.match,
        "chain": verdict.chain,
        "setup": verdict.setup and verdict.setup.to_json(),
    }


def _verdict_from_json(told: Mapping[str, Any]) -> Verdict:
    return Verdict(
        fault=told["fault"] and RecordFault(**told["fault"]),
        match=told["match"],
        chain=told["chain"],
        setup=told["setup"] and Setup.from_json(told["setup"]),
    )
