"""Reads the records of a season, and reports which bots' moves give more to one bot than to the rest of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from seatwise.errors import UsageError
from seatwise.kits import find_kit
from seatwise.replay.record_files import open_record_lines
from seatwise_referee.verify import nesting_fault
from seatwise_server.competition.statistics.decision_gifts import Gift, JudgedMatch, find_gifts


def report_gifts(file: Path, deals: int, on_match: Callable[[], None]) -> tuple[Gift, ...]:
    """Return the gifts of each pair that met often enough, the most surprising first.

    Args:
        file: A season's bundle, or a file of records.
        deals: The number of deals in which each move is judged.
        on_match: Called after each match.

    Raises:
        UsageError: The file cannot be read, or a record of it cannot be judged.
    """
    with open_record_lines(str(file)) as lines:
        return find_gifts(_judge_matches(lines, deals, on_match))


def count_records(file: Path) -> int:
    """Return the number of records in the file. Raises `UsageError` if it cannot be read, or has none."""
    with open_record_lines(str(file)) as lines:
        count = sum(1 for _ in lines)
    if not count:
        raise UsageError(f"{file}: contains no record")
    return count


def _judge_matches(lines: Iterator[bytes], deals: int, on_match: Callable[[], None]) -> Iterator[JudgedMatch]:
    for number, line in enumerate(lines, start=1):
        try:
            yield _find_judge(_game_in(line))(line, deals)
        except ValueError as bad:
            raise UsageError(f"record {number}: {bad}") from None
        on_match()


def _game_in(line: bytes) -> str:
    """Return the name of the game in a record that nobody has verified yet. Raises `ValueError`."""
    if fault := nesting_fault(line):
        raise ValueError(fault)
    record = json.loads(line.decode("ascii"))
    game = record.get("game") if isinstance(record, dict) else None
    if not isinstance(game, str):
        raise ValueError("this names no game, so it is no record")
    return game


def _find_judge(game: str) -> Callable[[bytes, int], JudgedMatch]:
    """Return what judges the moves of a match of this game."""
    module = find_kit(game).gifts_module
    if not module:
        raise UsageError(f"the moves of {game} are not judged: gifts are measured by points alone there")
    judge: Callable[[bytes, int], JudgedMatch] = import_module(module).measure_gifts
    return judge
