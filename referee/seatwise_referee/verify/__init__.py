"""Checks a finished match by playing it again. `docs/record-format.md` lists the checks.

    for verdict in verify_lines(open("records.jsonl", "rb")):
        if verdict.fault:
            print(f"line {verdict.line}: {verdict.fault}")

No check trusts the file. The result is a verdict and never an exception, whatever a line holds. The checks run from
the particular to the general, so that the first fault is the most informative one. The chain comes last: it finds
only what no other check can find.
"""

from seatwise_referee.verify.fault import BadRecord, NotInstalled, RecordFault, escape_text
from seatwise_referee.verify.header import check_rules
from seatwise_referee.verify.reading import MOST_BYTES, find_repeated_key, nesting_fault
from seatwise_referee.verify.verdict import Verdict, check_verdicts, verify_line, verify_lines

__all__ = [
    "MOST_BYTES",
    "BadRecord",
    "NotInstalled",
    "RecordFault",
    "Verdict",
    "check_rules",
    "check_verdicts",
    "escape_text",
    "find_repeated_key",
    "nesting_fault",
    "verify_line",
    "verify_lines",
]
