"""Records of UGO! as arrays: what each seat saw, what it could do, what it did, and how the round ended.

from seatwise.rl.dataset import read_dataset

data = read_dataset(["records.jsonl"], seats=4)
data.observations, data.actions, data.leads
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatwise.errors import UsageError
from seatwise.replay.record_files import read_record_lines
from seatwise.rl.actions import ACTION_COUNT, action_of_move, legal_actions
from seatwise.rl.observation import encode_view
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Ugo, UgoState
from seatwise_referee.journal import Defaulted, Moved, entry_from_json
from seatwise_referee.verify import verify_line

RECORD_RULES = Ugo()


class UgoDataset(NamedTuple):
    """One row for each move that a bot made in time, in the order of the records."""

    observations: NDArray[np.int8]
    """The views of the seat: (moves, size), as `encode_view` writes it."""

    masks: NDArray[np.bool_]
    """Which actions were legal: (moves, 69)."""

    actions: NDArray[np.int64]
    """The actions that it chose."""

    seats: NDArray[np.int8]
    points: NDArray[np.int32]
    """The points that it got in this round."""

    leads: NDArray[np.float32]
    """The same, less the mean of the other seats."""

    matches: NDArray[np.int32]
    """The number of the record, from 0."""


class _Row(NamedTuple):
    observation: NDArray[np.int8]
    legal: tuple[int, ...]
    action: int
    seat: int
    round: int


def read_dataset(
    files: Iterable[str | Path],
    seats: int,
    bots: Sequence[str] = (),
    on_record: Callable[[int, int], None] | None = None,
) -> UgoDataset:
    """Read records of UGO! into arrays. Each record is verified; records of other games and tables are passed over.

    Args:
        files: Files of records, one record a line.
        seats: Only matches with so many seats count, because the size of an observation depends on them.
        bots: Only moves of these bots count, as in "bots/greedy/versions/1"; empty for all.
        on_record: Called after each record with the bytes read so far and the bytes of all files, to show progress.

    Returns:
        The arrays.

    Raises:
        UsageError: A file cannot be read, or a record in it is wrong. The message names the line.
    """
    paths = list(map(Path, files))
    try:
        total = sum(path.stat().st_size for path in paths)
        columns = _Columns()
        read = 0
        for path in paths:
            with path.open("rb") as file:
                for number, line in enumerate(read_record_lines(file), start=1):
                    columns.add_record(_parse_record(line, seats, f"{path}, line {number}"), bots)
                    read += len(line)
                    if on_record:
                        on_record(read, total)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}; name a file of records") from None
    return columns.make_dataset(seats)


def _parse_record(line: bytes, seats: int, where: str) -> dict[str, Any] | None:
    """Return a record of UGO! with so many seats; `None` for another one. Raises `UsageError` for a wrong one."""
    verdict = verify_line(line)
    if verdict.fault or verdict.setup is None:
        raise UsageError(f"{where}: the record is wrong: {verdict.fault}")
    if verdict.setup.game != RECORD_RULES.name or len(verdict.setup.bots) != seats:
        return None
    record: dict[str, Any] = json.loads(line)
    nonces = [bytes.fromhex(nonce) if nonce else None for nonce in record["nonces"]]
    seed = verdict.setup.deals_from(nonces)
    return record | {
        "deal": RECORD_RULES.deal(seats, seed, verdict.setup.options),
        "bots": verdict.setup.bots,
    }


class _Columns:
    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._points: list[tuple[int, float]] = []
        self._matches: list[int] = []
        self._records = 0

    def add_record(self, record: dict[str, Any] | None, bots: Sequence[str]) -> None:
        """Add the moves of a record whose rounds have ended."""
        if record is None:
            return
        rows, rounds = _play_record(record)
        for row in rows:
            if row.round <= len(rounds) and (not bots or record["bots"][row.seat] in bots):
                points = rounds[row.round - 1]
                others = (sum(points) - points[row.seat]) / (len(points) - 1)
                self._rows.append(row)
                self._points.append((points[row.seat], points[row.seat] - others))
                self._matches.append(self._records)
        self._records += 1

    def make_dataset(self, seats: int) -> UgoDataset:
        """Return the arrays."""
        from seatwise.rl.observation import observation_size

        masks = np.zeros((len(self._rows), ACTION_COUNT), np.bool_)
        observations = np.zeros((len(self._rows), observation_size(seats)), np.int8)
        for number, row in enumerate(self._rows):
            masks[number, list(row.legal)] = True
            observations[number] = row.observation
        return UgoDataset(
            observations,
            masks,
            np.array([row.action for row in self._rows], np.int64),
            np.array([row.seat for row in self._rows], np.int8),
            np.array([points for points, _ in self._points], np.int32),
            np.array([lead for _, lead in self._points], np.float32),
            np.array(self._matches, np.int32),
        )


def _play_record(record: dict[str, Any]) -> tuple[list[_Row], tuple[tuple[int, ...], ...]]:
    """Play a record, and return the moves of its bots and the points of its finished rounds."""
    state: UgoState = record["deal"]
    rows = []
    for seat, json_move, is_own in _moves_of(record):
        move = RECORD_RULES.move_from_json(json_move)
        if is_own:
            view = RECORD_RULES.view(state, seat)
            rows.append(
                _Row(encode_view(view), legal_actions(view), action_of_move(move), int(seat), view.round)
            )
        state = RECORD_RULES.play(state, seat, move)
    return rows, state.round.points


def _moves_of(record: dict[str, Any]) -> Iterator[tuple[Seat, Any, bool]]:
    """Yield seat and move of each entry that moves the match on, and whether the bot itself made the move."""
    for written in record["entries"]:
        match entry_from_json(written):
            case Moved(seat=seat, move=move):
                yield seat, move, True
            case Defaulted(moves=moves):
                yield from ((each.seat, each.move, False) for each in moves)
