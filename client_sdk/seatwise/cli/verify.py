"""`seatwise verify`: checks the records of matches by playing them again."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, BinaryIO

from seatwise.cli import SERVER_EXTRA
from seatwise.cli.arguments import (
    Command,
    InputFile,
    add_deck_argument,
    add_security_arguments,
    add_unit_arguments,
    read_unit_options,
    security_of,
    use_deck_files,
)
from seatwise.defaults import FAILED, USAGE
from seatwise.errors import NotFoundError, UsageError
from seatwise.output import show_progress

if TYPE_CHECKING:
    from seatwise.client import Client
    from seatwise.season import CheckedSeason
    from seatwise_referee.verify import Verdict

EPILOG = """\
FILE holds one record a line, as `seatwise play --records FILE` writes it; - reads standard input.
For each wrong record the command prints its first fault: FILE: line 3: seq 17: the fault.
FILE may also be a season bundle, as `seatwise league` writes it. The command then recomputes the whole
season, from the records to the table. An audit log, as `seatwise ctl audit --json` prints it, is checked
from its first entry to its last.
Only its chain proves that a record is the published one. Give the chain with --chain, or let --server
ask the server that hosted the match.
"""

NO_CHAIN = "none"
"""The chain of a match that the server never hosted, has deleted, or has not ended."""

MOST_FAULTS = 1_000
"""Printed of one file; of the others only how many there are."""

READ_PROGRESS_EVERY_S = 1.0
"""Without a terminal, a line of progress so often."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=InputFile, metavar="FILE", help="file of records, or a season bundle")
    parser.add_argument(
        "--chain",
        type=_chain,
        metavar="HEX",
        help="published end of the record's chain, for a file of one record; or the digest of a season bundle; "
        "or the chain of the last entry of an audit log",
    )
    parser.add_argument(
        "--server", metavar="ADDR", help="host:port of the server that published the chains of these matches"
    )
    add_unit_arguments(parser, "batches of records", jobs=1)
    add_deck_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_security_arguments(parser)


def run(arguments: Namespace) -> int:
    """Checks all, and prints what is wrong; 1 if anything is, and 2 if a record cannot be checked here."""
    import seatwise.kits  # noqa: F401  # adds the games from outside to those that verification knows
    from seatwise.replay.record_files import open_records, read_record_lines

    use_deck_files(arguments.deck)
    if read_unit_options(arguments).units:
        return _verify_part(arguments)
    if _is_season(arguments.file):
        return _verify_season(arguments)
    if _is_audit_log(arguments.file):
        return _verify_audit_log(arguments)
    name = "standard input" if arguments.file == "-" else arguments.file
    shown: list[Verdict] = []
    count = wrong = unchecked = 0
    with open_records(arguments.file) as file, _showing_progress(_size(file), arguments) as on_read:
        for verdict in _verdicts(read_record_lines(file, name, on_read), name, arguments):
            count += 1
            if not verdict.fault:
                continue
            wrong += not verdict.fault.is_unchecked
            unchecked += verdict.fault.is_unchecked
            if wrong + unchecked > MOST_FAULTS:
                continue
            if arguments.json:
                shown.append(verdict)
            else:
                print(f"{name}: line {verdict.line}: {verdict.fault}", flush=True)
    if arguments.json:
        _print_json(name, count, wrong, unchecked, shown)
    else:
        print(_summary(name, count, wrong, unchecked))
    if wrong or not count:
        return FAILED
    return USAGE if unchecked else 0


def _is_season(path: str) -> bool:
    from seatwise.season.bundle import is_bundle

    return path != "-" and is_bundle(Path(path))


def _is_audit_log(path: str) -> bool:
    from seatwise.replay.record_files import open_records
    from seatwise.season.audit_chain import AUDIT_FORMAT, LONGEST_AUDIT_LINE

    if path == "-" or not Path(path).is_file():
        return False
    with open_records(path) as file:
        return f'"format":"{AUDIT_FORMAT}"'.encode() in file.readline(LONGEST_AUDIT_LINE)


def _verify_audit_log(arguments: Namespace) -> int:
    from seatwise.replay.record_files import open_records
    from seatwise.season.audit_chain import LONGEST_AUDIT_LINE, verify_audit_log

    if arguments.server:
        raise UsageError("--server is for records; compare the end of an audit log with --chain")
    with open_records(arguments.file) as file:
        lines = iter(lambda: file.readline(LONGEST_AUDIT_LINE + 1), b"")
        count, first_seq, fault = verify_audit_log(lines, arguments.chain or "")
    if arguments.json:
        found = {"file": arguments.file, "entries": count, "first_seq": first_seq, "fault": fault or None}
        print(json.dumps(found))
    elif fault:
        print(f"{arguments.file}: line {count + 1}: {fault}")
    else:
        told = f"{count} entries of an audit log verified, from seq {first_seq} on, nothing wrong"
        print(f"{arguments.file}: {told}")
    return 1 if fault else 0


def _chain(text: str) -> str:
    if len(text) != 64 or set(text.lower()) - set("0123456789abcdef"):
        raise ArgumentTypeError(f"{text[:70]!r} is not a chain: a chain has 64 digits of 0-9 and a-f")
    return text.lower()


def _verdicts(lines: Iterator[bytes], name: str, arguments: Namespace) -> Iterator[Verdict]:
    """On each record; one that is right in itself must also be the one that was published."""
    if arguments.chain:
        lines = _only_one(lines, name)
    with _published(arguments) as published:
        for verdict in _verify_file(lines, arguments):
            yield _compared(verdict, published(verdict))


def _verify_file(lines: Iterable[bytes], arguments: Namespace) -> Iterator[Verdict]:
    """Yield the verdict on each line, found in this process, or by workers."""
    from seatwise.replay.record_units import read_verdicts
    from seatwise_referee.verify import check_verdicts, verify_lines

    work = read_unit_options(arguments)
    if work.is_here:
        return verify_lines(lines)
    decks = tuple(map(os.path.abspath, arguments.deck))
    return check_verdicts(read_verdicts(arguments.file, lines, decks, work))


def _verify_part(arguments: Namespace) -> int:
    """Verify some batches of a file, for --merge."""
    from seatwise.replay.record_files import open_record_lines

    with open_record_lines(arguments.file) as lines:
        verdicts = list(_verify_file(lines, arguments))
    wrong = sum(verdict.fault is not None for verdict in verdicts)
    print(
        f"{arguments.out}: {len(verdicts)} records, {wrong} with a fault; --merge compares them with the others"
    )
    return FAILED if wrong else 0


@contextmanager
def _published(arguments: Namespace) -> Iterator[Callable[[Verdict], str | None]]:
    """Where to get the published chain of a record."""
    if not arguments.server:
        yield lambda _: arguments.chain
        return
    from seatwise.client import Client

    # Everyone may read chains, so no token is sent to the server that was named.
    with Client(arguments.server, token="", **security_of(arguments)) as client:
        yield lambda verdict: None if verdict.fault else _chain_of(client, verdict.match)


def _chain_of(client: Client, match: str) -> str:
    """Return the published chain; `NO_CHAIN` if the server does not know the match, or withholds its result."""
    try:
        return client.get_match(match).result.chain.hex() or NO_CHAIN
    except NotFoundError:
        return NO_CHAIN


def _compared(verdict: Verdict, chain: str | None) -> Verdict:
    from seatwise_referee.verify import RecordFault

    if chain is None or verdict.fault or verdict.chain == chain:
        return verdict
    is_known = chain != NO_CHAIN
    told = f"the published chain is {chain}" if is_known else "the server has published none for this match"
    fault = (
        f"the record is consistent, but its chain ends with {verdict.chain}, "
        f"and {told}: it is not the record of that match"
    )
    return replace(verdict, fault=RecordFault(fault))


def _only_one(lines: Iterator[bytes], name: str) -> Iterator[bytes]:
    found = list(islice(lines, 2))
    if len(found) > 1:
        raise UsageError(
            f"--chain is for a file of one record, and {name} has more; copy the line that you mean to a file of its own"
        )
    return iter(found)


# A season bundle


def _verify_season(arguments: Namespace) -> int:
    """Work a whole season out again, and print the first fault; 1 if there is one, and 2 if its game is not installed here."""
    from seatwise.season import BadSeason, UncheckedSeason, check_season, open_bundle
    from seatwise.season.bundle import RECORDS

    if arguments.server:
        raise UsageError("--server is for a file of records; compare a bundle by its digest, with --chain")
    try:
        with (
            open_bundle(Path(arguments.file)) as bundle,
            _showing_progress(bundle.size_of(RECORDS), arguments) as on_read,
        ):
            verify = partial(_verify_file, arguments=arguments)
            checked = check_season(bundle, arguments.chain or "", on_read, verify)
    except UncheckedSeason as unchecked:
        _print_season_fault(arguments, str(unchecked), wrong=0)
        return USAGE
    except BadSeason as bad:
        _print_season_fault(arguments, str(bad), wrong=1)
        return FAILED
    except OSError as error:
        raise UsageError(f"cannot read {arguments.file}: {error.strerror}") from None
    _print_season(arguments, checked)
    return 0


def _print_season_fault(arguments: Namespace, fault: str, wrong: int) -> None:
    if arguments.json:
        faults = [{"message": fault}]
        found = {"file": arguments.file, "wrong": wrong, "not_checked": 1 - wrong, "faults": faults}
        print(json.dumps(found, indent=2))
    else:
        print(f"{arguments.file}: {fault}")


def _print_season(arguments: Namespace, checked: CheckedSeason) -> None:
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
        print(json.dumps(found, indent=2))
        return
    print(f"{arguments.file}: {checked.records} records verified, and each result matches its record")
    if checked.has_table:
        print(f"the schedule and the table of its {checked.entrants} entrants follow from the records")
    else:
        print(f"NOT CHECKED: schedule and table; that needs the server extra: {SERVER_EXTRA}")
    print(f"digest {checked.digest}")


# Output


def _summary(name: str, count: int, wrong: int, unchecked: int) -> str:
    if not count:
        return f"{name}: contains no record"
    records = "record" if count == 1 else "records"
    if not wrong and not unchecked:
        return f"{name}: {count} {records} verified, nothing wrong"
    rest = f"; {unchecked} not checked" if unchecked else ""
    if wrong + unchecked > MOST_FAULTS:
        rest += f"; the faults of the first {MOST_FAULTS} are above"
    return f"{name}: {wrong} of {count} {records} wrong{rest}"


def _print_json(name: str, count: int, wrong: int, unchecked: int, shown: Iterable[Verdict]) -> None:
    faults = [
        {"line": each.line, "match": each.match or None, "seq": each.fault.seq, "message": each.fault.text}
        for each in shown
        if each.fault
    ]
    found = {"file": name, "records": count, "wrong": wrong, "not_checked": unchecked, "faults": faults}
    print(json.dumps(found, indent=2))


def _showing_progress(total: int | None, arguments: Namespace) -> AbstractContextManager[Callable[..., None]]:
    of = f" of {total >> 10}" if total else ""
    return show_progress(
        total,
        lambda done: f"verified {done >> 10}{of} KiB",
        is_quiet=arguments.json,
        every_s=READ_PROGRESS_EVERY_S,
    )


def _size(file: BinaryIO) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except OSError:  # a stand-in without a descriptor
        return None
    return found.st_size if S_ISREG(found.st_mode) else None


COMMAND = Command("verify", "check the records of matches", configure, run, epilog=EPILOG)
