"""Finds the record of a match in a file of records or a season bundle."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from seatwise.errors import UsageError
from seatwise.output import skip_mark
from seatwise.season.bundle import RECORDS, BadSeason, is_bundle, open_bundle
from seatwise_referee.verify import MOST_BYTES

MOST_NAMED: Final = 10
"""The most matches that an error message names."""

_MATCH = re.compile(rb'"match":"(matches/[A-Za-z0-9-]{1,64})"')


def find_record(path: str, match: str = "") -> bytes:
    """Return the line of a record, by the name of its match or enough of its beginning; empty if there is only one.

    The path is one as for `open_record_lines`. Raises `UsageError` if there is no such record, or there are several; it names some.
    """
    wanted = match.removeprefix("matches/")
    found: dict[str, bytes] = {}
    seen = 0
    with open_record_lines(path) as lines:
        for line in lines:
            seen += 1
            name = _name_in(line)
            if not name:
                continue
            if name == wanted:
                return line
            if name.startswith(wanted) and len(found) <= MOST_NAMED:
                found[name] = line
            if not wanted and len(found) > MOST_NAMED:
                break
    if len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(_explain(path, match, list(found), seen))


def _name_in(line: bytes) -> str:
    """Return the last part of the name of the match; "" if the line names none."""
    found = _MATCH.search(line)
    return found[1].decode().removeprefix("matches/") if found else ""


def _explain(path: str, match: str, names: list[str], seen: int) -> str:
    if not seen:
        return f"{path}: contains no record"
    if not names:
        what = f"no match whose name begins with {match}" if match else "no record of a match"
        return f"{path}: contains {what}; `seatwise verify` says what is wrong with a file"
    shown = ", ".join(names[:MOST_NAMED])
    more = ", ..." if len(names) > MOST_NAMED else ""
    return f"{path}: which match? Name one, as in: seatwise replay {path} {names[0]}. There are {shown}{more}"


@contextmanager
def open_record_lines(path: str) -> Iterator[Iterator[bytes]]:
    """Open a file of records, a season bundle, or standard input ("-"), and yield its lines. Raises `UsageError`."""
    if path != "-" and is_bundle(Path(path)):
        try:
            with open_bundle(Path(path)) as bundle:
                yield bundle.read_lines(RECORDS)
        except BadSeason as error:
            raise UsageError(f"{path}: {error}") from None
        return
    with open_records(path) as file:
        yield read_record_lines(file, path)


@contextmanager
def open_records(path: str) -> Iterator[BinaryIO]:
    """Open a file of records, or standard input ("-"), without the mark that some editors write. Raises `UsageError`."""
    if path == "-":
        skip_mark(sys.stdin.buffer, "standard input")
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115  # a fault inside the body is not a fault of opening
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; name a file of records, or - for standard input"
        ) from None
    with file:
        skip_mark(file, path)
        yield file


def read_record_lines(
    file: BinaryIO, name: str, on_read: Callable[[int], object] = lambda _: None
) -> Iterator[bytes]:
    """Yield the lines of an open file; of one that is longer than any record only as much as shows it.

    `on_read` is called with the number of bytes of each piece that was read. Raises `UsageError` with the name of the file.
    """
    most = MOST_BYTES + 2
    try:
        while line := file.readline(most):
            # the line end of records, also where another system has changed it
            yield line[:-2] + b"\n" if line.endswith(b"\r\n") else line
            on_read(len(line))
            while len(line) == most and not line.endswith(b"\n"):
                line = file.readline(most)  # it is skipped
                on_read(len(line))
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
