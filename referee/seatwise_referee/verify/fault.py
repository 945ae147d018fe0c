"""A fault of a record, as one sentence that is safe to print."""

from __future__ import annotations

from dataclasses import dataclass

MOST_LETTERS = 500
"""The length of a fault's text at most. A forged record must not fill the reader's screen."""


@dataclass(frozen=True, slots=True)
class RecordFault:
    """The first thing that is wrong with a record."""

    text: str
    """Plain ASCII without control characters, whatever the record holds."""

    seq: int | None = None
    """The number of the entry that it is about, if it is about one."""

    is_unchecked: bool = False
    """Whether the record could not be checked at all, because its game is not installed here."""

    def __str__(self) -> str:
        return self.text if self.seq is None else f"seq {self.seq}: {self.text}"


class BadRecord(Exception):
    """The record has a fault. Nothing after it was checked."""

    def __init__(self, text: str, seq: int | None = None) -> None:
        super().__init__(text)
        self.fault = RecordFault(escape_text(text), seq)

    def in_entry(self, seq: int) -> BadRecord:
        """Return the fault as one of this entry, unless it names an entry already."""
        return BadRecord(self.fault.text, seq) if self.fault.seq is None else self


class NotInstalled(BadRecord):
    """The game of the record is not installed here, so nothing of it was checked."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.fault = RecordFault(escape_text(text), is_unchecked=True)


def escape_text(text: str) -> str:
    """Return the text as ASCII without control characters, at most `MOST_LETTERS` of them and a mark where it is cut.

    A terminal may show it, whatever the file holds.
    """
    letters = text[: MOST_LETTERS + 1].encode("ascii", "backslashreplace").decode()
    shown = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in letters)
    return shown if len(shown) <= MOST_LETTERS else shown[:MOST_LETTERS] + " ..."


def quote_value(value: object, most: int = 70) -> str:
    """Return the value as the file has it, cut short."""
    try:
        text = ascii(value)
    except RecursionError:
        return "something nested very deeply"
    return text if len(text) <= most else text[:most] + " ..."
