"""Reads the values of one TOML table and checks each of them. A key that is not read is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from seatwise.errors import UsageError

KINDS = {
    bool: "true or false",
    int: "a whole number",
    str: "a text in quotes",
    list: "a list",
    dict: "a table",
}
_REQUIRED: Any = object()


class TableReader:
    """One table of the league file."""

    def __init__(self, source: LeagueFileText, name: str, values: Mapping[str, Any]) -> None:
        self._source = source
        self._name = name
        self._values = dict(values)
        self._known: list[str] = []

    def make_error(self, key: str, what: str) -> LeagueFileError:
        """Make an error about that key of this table."""
        return self._source.make_error(self._name, key, what)

    def read_text(self, key: str, default: str = _REQUIRED, *, example: str = "") -> str:
        """Read a text that is not empty and has no control characters."""
        value: str = self._take_value(key, str, default, example)
        if not value and value != default:
            raise self.make_error(key, f"is empty; {_as_in(key, example)}")
        if not value.isprintable():  # a log with such a text could not be read again
            raise self.make_error(key, f"is {value!r}; all its characters must be printable")
        return value

    def read_choice(self, key: str, among: Iterable[str], default: str = _REQUIRED) -> str:
        """Read one of these texts."""
        names = tuple(among)
        value: str = self._take_value(key, str, default, f'"{names[0]}"')
        if value not in names and value != default:
            raise self.make_error(key, f"there is no {value!r}; {_suggest_name(value, names)}")
        return value

    def read_integer(self, key: str, default: int = _REQUIRED, *, least: int, most: int) -> int:
        """Read a whole number in these bounds, both included."""
        value: int = self._take_value(key, int, default, str(least))
        if not least <= value <= most and value != default:
            raise self.make_error(key, f"is {value}; it must be from {least} to {most}")
        return value

    def read_number(self, key: str, default: float = _REQUIRED, *, least: float, most: float) -> float:
        """Read a number in these bounds, neither of them included."""
        given = self._values.get(key)
        if type(given) is int:
            self._values[key] = float(given)
        value: float = self._take_value(key, float, default, str(default))
        if not least < value < most:
            raise self.make_error(key, f"is {value}; it must be between {least} and {most}")
        return value

    def read_flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value: bool = self._take_value(key, bool, default, "true")
        return value

    def read_choices(self, key: str, default: tuple[str, ...], among: Iterable[str]) -> tuple[str, ...]:
        """Read a list of some of these texts, each once."""
        names = tuple(among)
        values = self._take_value(key, list, list(default), f'["{names[0]}"]')
        for value in values:
            if value not in names:
                raise self.make_error(key, f"there is no {value!r}; {_suggest_name(str(value), names)}")
        if len(set(values)) != len(values):
            raise self.make_error(key, "names one of its values twice")
        return tuple(values)

    def read_table(self, key: str) -> TableReader:
        """Return a reader of a table inside, which is empty if the key is missing."""
        values = self._take_value(key, dict, {}, "")
        return TableReader(self._source, f"{self._name}.{key}".strip("."), values)

    def read_tables(self, key: str) -> list[TableReader]:
        """Return a reader of each table in a list of tables, in order."""
        values = self._take_value(key, list, [], "")
        if not all(isinstance(each, dict) for each in values):
            raise self.make_error(key, f"write each of them as a table under [[{key}]]")
        return [TableReader(self._source, f"{key}[{place}]", each) for place, each in enumerate(values)]

    def copy_reader(self) -> TableReader:
        """Return a reader of the same table, whose reading leaves this one as it is."""
        return TableReader(self._source, self._name, self._values)

    def take_rest(self) -> dict[str, Any]:
        """Remove and return all values that have not been read yet, without checks."""
        rest, self._values = self._values, {}
        return rest

    def has_key(self, key: str) -> bool:
        """Return whether the table has the key and it has not been read."""
        return key in self._values

    def check_all_read(self) -> None:
        """Raise `LeagueFileError` if a key has not been read."""
        for key in self._values:
            raise self.make_error(key, f"there is no such key; {_suggest_name(key, self._known)}")

    def _take_value(self, key: str, kind: type, default: Any, example: str) -> Any:
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise self.make_error(key, f"is missing; {_as_in(key, example)}")
            return default
        value = self._values.pop(key)
        if type(value) is not kind:  # `isinstance` takes `true` for an int
            wanted = KINDS.get(kind, "a number")
            raise self.make_error(key, f"is {_format_value(value)}; {wanted} is needed")
        return value


def _as_in(key: str, example: str) -> str:
    return f"write it, for example, as {key} = {example}" if example else "it is required"


def _suggest_name(value: str, names: Iterable[str]) -> str:
    names = tuple(names)
    close = get_close_matches(value, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the choices are {', '.join(names)}"


def _format_value(value: Any) -> str:
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


# Finds the line of a key in a league file, so that an error can state it.

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
