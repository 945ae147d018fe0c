"""Checks a finished match by playing it again; docs/record-format.md says what is checked.

    for verdict in verify_lines(open("records.jsonl", "rb")):
        if verdict.fault:
            print(f"line {verdict.line}: {verdict.fault}")

Nothing here trusts the file: whatever a line holds, the answer is a verdict and never an exception.
The checks run from the particular to the general, so that the first fault is also the most telling
one; the chain comes last, and speaks only of what nothing else can notice.
"""

from seatwise_referee.verify.fault import Fault, printable
from seatwise_referee.verify.reading import MOST_BYTES, nesting_fault
from seatwise_referee.verify.verdict import Verdict, verify_line, verify_lines

__all__ = ["MOST_BYTES", "Fault", "Verdict", "nesting_fault", "printable", "verify_line", "verify_lines"]
