"""Finds the line of a key in a league file, so that an error can state it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seatwise.errors import UsageError

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"\s*([A-Za-z0-9_\"'-]+)\s*(?:\.|=)")


class LeagueFileError(UsageError):
    """A league file that cannot be played. The text states file, line and key, the mistake, and a correct form."""


@dataclass(frozen=True, slots=True)
class LeagueFileText:
    """The text of a league file. The TOML parser keeps no line numbers, so they are searched for here."""

    path: str
    text: str

    def make_error(self, table: str, key: str, what: str) -> LeagueFileError:
        """Make an error that names the line of the key, or the head of the table if the key is missing."""
        line = self.line_of(table, key)
        place = f"{self.path}: line {line}" if line else self.path
        named = ".".join(part for part in (table, key) if part)
        return LeagueFileError(f"{place}: {named}: {what}" if named else f"{place}: {what}")

    def line_of(self, table: str, key: str) -> int:
        """Return the line of the key, or of the table that lacks it, counted from 1; 0 if neither is found."""
        lines = self._find_lines()
        path = ".".join(part for part in (table, key) if part)
        parent, _, name = table.rpartition(".")
        found = lines.get((table, key)) or lines.get((path, "")) or lines.get((f"{path}[0]", ""))
        return found or lines.get((table, "")) or lines.get((parent, name)) or 0

    def _find_lines(self) -> dict[tuple[str, str], int]:
        """Return the line of each key by (table, key), and that of each table itself by (table, "")."""
        lines: dict[tuple[str, str], int] = {}
        here, counts = "", dict[str, int]()
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := _HEADER.match(line):
                here = _name_table(header, counts)
                lines.setdefault((here, ""), number)
            elif found := _KEY.match(line):
                lines.setdefault((here, found[1].strip("\"'")), number)
        return lines


def _name_table(header: re.Match[str], counts: dict[str, int]) -> str:
    """Return the name of a table: `entrants[2]` for the third [[entrants]]."""
    name = header[2].strip("\"'")
    if header[1] == "[":
        return name
    counts[name] = counts.get(name, -1) + 1
    return f"{name}[{counts[name]}]"
