"""Records as units of offline work: batches of lines, what is answered to each line, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from seatwise.errors import UsageError
from seatwise.kits import use_deck_files
from seatwise.units import UnitEndsWorkers, UnitOptions, UnitPlan, UnitRun, reading_units
from seatwise.units.plan import UnitPlayer
from seatwise_referee.setup import Setup
from seatwise_referee.verify import RecordFault, Verdict, verify_line

BATCH_LINES: Final = 32
BATCH_BYTES: Final = 1024 * 1024
"""A batch is a unit when it has so many lines, or so many bytes."""


def read_in_units(plan: UnitPlan, lines: Iterable[bytes], work: UnitOptions) -> Iterator[tuple[int, Any]]:
    """Yield the place of each line, from 0, and what the plan's function answers to it, in the order of the lines.

    The function is told a batch of lines, each byte as a letter of its text, and returns a list with an answer to each. With `units`
    among the options, the lines of other batches are passed over.

    Raises:
        UsageError: The options cannot be, a batch has ended three workers, or a worker has answered wrongly.
    """
    firsts: dict[int, int] = {}

    def choose_batches() -> Iterator[tuple[int, list[str]]]:
        first = 0
        for number, batch in _batch_lines(lines):
            if not work.units or number in work.units:
                firsts[number] = first
                yield number, batch
            first += len(batch)

    if work.is_here:
        player = plan.open_player()
        for number, batch in choose_batches():
            for place, line in enumerate(batch, firsts.pop(number)):
                yield place, player(number, [line])[0][0]
        return
    place = -1
    with work.open_file(plan) as file:
        run = UnitRun(plan, work.make_workers(plan), file=file)
        try:
            with reading_units(run, choose_batches()) as answers:
                for answer in answers:
                    for place, told in enumerate(answer.result, firsts.pop(answer.number)):
                        yield place, told
        except UnitEndsWorkers:
            raise UsageError(
                f"records up to number {place + 1} were read, and the next few have ended three workers; "
                "with --jobs 1 this process reads them"
            ) from None


def _batch_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, list[str]]]:
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


def read_verdicts(
    file: str, lines: Iterable[bytes], decks: tuple[str, ...], work: UnitOptions
) -> Iterator[Verdict]:
    """Yield the verdict on each line of a file, as `verify_line` returns it, in the order of the lines. Raises as `read_in_units`."""
    settings = {"decks": decks, "records": work.digest_files([file])}
    plan = UnitPlan("seatwise.replay.record_units:open_verdicts", settings, decks)
    for _, told in read_in_units(plan, lines, work):
        yield _verdict_from_json(told)


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
