"""`seatwise verify season.bundle`: works a whole season out again, from its records to its table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from seatwise.cli import SERVER_EXTRA
from seatwise.defaults import FAILED, USAGE
from seatwise.errors import UsageError
from seatwise.season import BadSeason, UncheckedSeason, check_season, open_bundle

if TYPE_CHECKING:
    from seatwise.season import CheckedSeason
    from seatwise.season.checking import VerifyLines


def verify_season(arguments: Namespace, read: Callable[[int], None], verify: VerifyLines) -> int:
    """Checks all, and prints the first thing that is wrong; 1 if there is one, and 2 if its game is not installed here."""
    if arguments.server:
        raise UsageError("--server is for a file of records; compare a bundle by its digest, with --chain")
    try:
        with open_bundle(Path(arguments.file)) as bundle:
            checked = check_season(bundle, arguments.chain or "", read, verify)
    except UncheckedSeason as unchecked:
        _print_fault(arguments, str(unchecked), wrong=0)
        return USAGE
    except BadSeason as bad:
        _print_fault(arguments, str(bad), wrong=1)
        return FAILED
    except OSError as error:
        raise UsageError(f"cannot read {arguments.file}: {error.strerror}") from None
    _print_summary(arguments, checked)
    return 0


def size_of(path: str) -> int | None:
    """How much there is to verify; the bundle itself is packed."""
    try:
        with open_bundle(Path(path)) as bundle:
            return bundle.size_of("records.jsonl")
    except (BadSeason, OSError):  # which is said when it is read
        return None


def _print_fault(arguments: Namespace, fault: str, wrong: int) -> None:
    if arguments.json:
        found = {
            "file": arguments.file,
            "wrong": wrong,
            "not_checked": 1 - wrong,
            "faults": [{"message": fault}],
        }
        print(dumps(found, indent=2))
    else:
        print(f"{arguments.file}: {fault}")


def _print_summary(arguments: Namespace, checked: CheckedSeason) -> None:
    if arguments.json:
        found = {
            "file": arguments.file,
            "records": checked.records,
            "wrong": 0,
            "not_checked": 0,
            "faults": [],
            "table": checked.has_table,
            "digest": checked.digest,
        }
        print(dumps(found, indent=2))
        return
    print(f"{arguments.file}: {checked.records} records verified, and each result matches its record")
    if checked.has_table:
        print(f"the schedule and the table of its {checked.entrants} entrants follow from the records")
    else:
        print(f"NOT CHECKED: schedule and table; that needs the server extra: {SERVER_EXTRA}")
    print(f"digest {checked.digest}")
