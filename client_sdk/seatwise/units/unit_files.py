"""Answers in files: parts of a run that another machine did, and what an interrupted run goes on from.

A file has one JSON object a line. The first names the digest of the plan, and the units for which the file was made:

    {"format": "seatwise-units/1", "plan": "6b1f...", "units": [0, 500]}
    {"unit": 0, "result": ..., "note": ...}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from seatwise.errors import UsageError
from seatwise.units.plan import PART_FORMAT, UnitAnswer, UnitPlan


class UnitFile:
    """The answers of one run so far. It is a context manager, which closes the file."""

    def __init__(self, path: Path, plan: UnitPlan, units: range | None = None) -> None:
        """Open the file, or create it, for these units; `None` if nobody knows how many the run takes.

        Raises `UsageError` if it is of another plan, or no such file.
        """
        head = {"format": PART_FORMAT, "plan": plan.digest, "units": units and [units.start, units.stop]}
        self.answers: dict[int, UnitAnswer] = {}
        """The answers by the numbers of their units."""
        try:
            size = self._read_answers(path, head) if path.exists() and path.stat().st_size else 0
            with ExitStack() as stack:
                self._file = stack.enter_context(path.open("ab"))
                self._file.truncate(size)  # half a line, of a run that was killed
                if not size:
                    self._write_line(head)
                stack.pop_all()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None

    def __enter__(self) -> UnitFile:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # each line was written already, or has failed
            self._file.close()

    def add_answer(self, answer: UnitAnswer) -> None:
        """Write an answer down."""
        self._write_line({"unit": answer.number, "result": answer.result, "note": answer.note})

    def _write_line(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._file.name) from None

    def _read_answers(self, path: Path, head: dict[str, Any]) -> int:
        """Read the file, and return how many bytes of it are whole lines."""
        found, answers, size = read_part(path)
        for key, what in (("plan", OTHER_PLAN), ("units", "it was made for other units")):
            if found[key] != head[key]:
                raise UsageError(f"{path}: {what}; name another file")
        self.answers = {each.number: each for each in answers}
        return size


OTHER_PLAN = "it was made of another plan: other bots, options, files, round, seed or version"


def read_part(path: Path) -> tuple[dict[str, Any], list[UnitAnswer], int]:
    """Return the head of a file, its answers, and the bytes of its whole lines. Raises `UsageError`."""
    head: dict[str, Any] = {}
    answers, size = [], 0
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                told = json.loads(line)
                if not head:
                    if told["format"] != PART_FORMAT:
                        raise ValueError
                    head = told | {"plan": str(told["plan"]), "units": told["units"]}
                else:
                    answers.append(UnitAnswer(int(told["unit"]), told["result"], told["note"], str(path)))
                size += len(line)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        head = {}
    if not head:
        raise UsageError(f"{path}: these are no answers to units, as --out writes them")
    return head, answers, size


class PartFiles:
    """A make of workers that have answered already: the parts of a run. Each file is named as the worker of its answers."""

    count = 1

    def __init__(self, paths: Sequence[Path], plan: UnitPlan, count: int = 0) -> None:
        """Read the parts of so many units, or of as many as there are.

        Raises `UsageError` for parts of other plans, units that are there twice, and missing ones.
        """
        self.name = "parts"
        self._answers: dict[int, UnitAnswer] = {}
        found = 0
        for path in paths:
            head, answers, _ = read_part(path)
            if head["plan"] != plan.digest:
                raise UsageError(f"{path}: {OTHER_PLAN}")
            for answer in answers:
                if (other := self._answers.setdefault(answer.number, answer)) is not answer:
                    raise UsageError(f"unit {answer.number} is in {other.worker} and in {answer.worker}")
            ends = (answer.number + 1 for answer in answers)
            found = max(found, *ends, int(head["units"][1]) if head["units"] else 0)
        self.units = count or found
        """How many units there are, from 0."""
        missing = [number for number in range(self.units) if number not in self._answers]
        if missing:
            raise UsageError(f"units are missing: {_name_spans(missing)}; do them with --units")

    async def start_worker(self, plan: UnitPlan, place: int) -> PartFiles:  # noqa: ARG002
        """Return itself: it needs no worker."""
        return self

    async def run_unit(self, number: int, told: Any) -> UnitAnswer:  # noqa: ARG002
        """Return the answer that the part has."""
        if number not in self._answers:
            raise UsageError(f"units are missing: {number} and those after it; do them with --units")
        return self._answers[number]

    async def stop(self) -> None:
        """Do nothing."""


def _name_spans(numbers: Sequence[int]) -> str:
    """Return sorted numbers as spans, as in 3:5, 9:10."""
    starts = [number for before, number in pairwise([-2, *numbers]) if number != before + 1]
    ends = [before + 1 for before, number in pairwise([*numbers, -1]) if number != before + 1]
    shown = [f"{start}:{end}" for start, end in zip(starts, ends, strict=True)]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
