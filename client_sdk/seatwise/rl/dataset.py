"""Records of UGO! as arrays: what each seat saw, what it could do, what it did, and how the round ended.

from seatwise.rl.dataset import read_dataset

data = read_dataset(["records.jsonl"], seats=4)
data.observations, data.actions, data.leads
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatwise.errors import UsageError
from seatwise.replay.record_files import read_record_lines
from seatwise.replay.record_units import read_in_units
from seatwise.rl.actions import ACTION_COUNT, action_of_move, legal_actions
from seatwise.rl.observation import encode_view, observation_size
from seatwise.units import UnitOptions, UnitPlan, UnitWorkers
from seatwise.units.plan import UnitPlayer
from seatwise_referee.games.ugo import Ugo
from seatwise_referee.journal import Moved
from seatwise_referee.record import replay_moves
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
    points: int
    lead: float


def read_dataset(
    files: Iterable[str | Path],
    seats: int,
    bots: Sequence[str] = (),
    on_record: Callable[[int, int], None] | None = None,
    workers: UnitWorkers | None = None,
    *,
    units: range | None = None,
    out: str | Path = "",
    merge: Sequence[str | Path] = (),
) -> UgoDataset:
    """Read records of UGO! into arrays. Each record is verified; records of other games and tables are passed over.

    Args:
        files: Files of records, one record a line.
        seats: Only matches with so many seats count, because the size of an observation depends on them.
        bots: Only moves of these bots count, as in "bots/greedy/versions/1"; empty for all.
        on_record: Called after each record with the bytes read so far and the bytes of all files, to show progress.
        workers: Reads the records there, as in `seatwise.units.LocalWorkers(8)`; `None` for this process. In a notebook, call it in a
            thread of its own.
        units: Only these batches of records are read, from 0, for another machine's `merge`; `None` for all.
        out: A file to which the answers are written too. The same call goes on from there.
        merge: The files that others wrote with `units` and `out`, which are read in place of the records. All must be there.

    Returns:
        The arrays.

    Raises:
        UsageError: A file cannot be read, a record in it is wrong, or a part is of other records or is missing. The message names it.
    """
    paths = list(map(Path, files))
    work = UnitOptions(jobs=1, units=units, out=out, merge=merge, workers=workers)
    places: list[str] = []
    try:
        total = sum(path.stat().st_size for path in paths)
        read = count = 0
        rows: list[_Row] = []
        matches: list[int] = []
        settings = {"seats": seats, "bots": list(bots), "records": work.digest_files(paths)}
        plan = UnitPlan("seatwise.rl.dataset:open_rows", settings)
        for place, (size, told, fault) in read_in_units(plan, _read_lines(paths, places), work):
            if fault:
                raise UsageError(f"{places[place]}: {fault}")
            if told is not None:
                rows += map(_row_from_json, told)
                matches += [count] * len(told)
                count += 1
            read += size
            if on_record:
                on_record(read, total)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}; name a file of records") from None
    return _make_dataset(rows, matches, seats)


def _read_lines(paths: Iterable[Path], places: list[str]) -> Iterator[bytes]:
    """Yield the lines of all files, and add the place of each to `places`."""
    for path in paths:
        with path.open("rb") as file:
            for number, line in enumerate(read_record_lines(file, str(path)), start=1):
                places.append(f"{path}, line {number}")
                yield line


def open_rows(settings: Mapping[str, Any]) -> UnitPlayer:
    """Return what reads batches of lines: of each its size, its rows, and its fault."""

    def read_line(line: bytes) -> tuple[int, list[Any] | None, str]:
        try:
            rows = _read_rows(line, settings["seats"], settings["bots"])
        except UsageError as error:
            return len(line), None, str(error)
        return len(line), rows and [_row_to_json(row) for row in rows], ""

    return lambda _, lines: ([read_line(line.encode("latin-1")) for line in lines], {})


def _row_to_json(row: _Row) -> list[Any]:
    return [b64encode(row.observation.tobytes()).decode(), *row[1:]]


def _row_from_json(told: list[Any]) -> _Row:
    return _Row(np.frombuffer(b64decode(told[0]), np.int8), tuple(told[1]), *told[2:])


def _read_rows(line: bytes, seats: int, bots: Sequence[str]) -> list[_Row] | None:
    """Return the moves of the rounds that ended, with what they brought; `None` for a record of another game or table.

    Raises `UsageError` for a wrong record.
    """
    verdict = verify_line(line)
    if verdict.fault or verdict.setup is None:
        raise UsageError(f"the record is wrong: {verdict.fault}")
    setup = verdict.setup
    if setup.game != RECORD_RULES.name or len(setup.bots) != seats:
        return None
    rounds: tuple[tuple[int, ...], ...] = ()
    rows = []
    played = list(replay_moves(json.loads(line), setup))
    for state, _, seat, move in played[-1:]:
        rounds = RECORD_RULES.play(state, seat, move).round.points
    for state, entry, seat, move in played:
        view = RECORD_RULES.view(state, seat)
        is_own = isinstance(entry, Moved) and (not bots or setup.bots[seat] in bots)
        if is_own and view.round <= len(rounds):
            points = rounds[view.round - 1]
            lead = points[seat] - (sum(points) - points[seat]) / (len(points) - 1)
            actions = legal_actions(view), action_of_move(move)
            rows.append(_Row(encode_view(view), *actions, int(seat), points[seat], lead))
    return rows


def _make_dataset(rows: Sequence[_Row], matches: Sequence[int], seats: int) -> UgoDataset:
    masks = np.zeros((len(rows), ACTION_COUNT), np.bool_)
    observations = np.zeros((len(rows), observation_size(seats)), np.int8)
    for number, row in enumerate(rows):
        masks[number, list(row.legal)] = True
        observations[number] = row.observation
    return UgoDataset(
        observations,
        masks,
        np.array([row.action for row in rows], np.int64),
        np.array([row.seat for row in rows], np.int8),
        np.array([row.points for row in rows], np.int32),
        np.array([row.lead for row in rows], np.float32),
        np.array(matches, np.int32),
    )
