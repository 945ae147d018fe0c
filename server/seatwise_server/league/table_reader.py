"""Takes the values of one TOML table, each checked as it is taken; what is left over is a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from seatwise_server.league.file_errors import LeagueFileError, Source

KINDS = {
    bool: "true or false",
    int: "a whole number",
    str: "a text in quotes",
    list: "a list",
    dict: "a table",
}
_REQUIRED: Any = object()


class TableReader:
    """One table of the file."""

    def __init__(self, source: Source, name: str, values: Mapping[str, Any]) -> None:
        self._source = source
        self._name = name
        self._values = dict(values)
        self._known: list[str] = []

    def mistake(self, key: str, what: str) -> LeagueFileError:
        """A mistake in that key of this table."""
        return self._source.mistake(self._name, key, what)

    def text(self, key: str, default: str = _REQUIRED, *, example: str = "") -> str:
        """A text that is not empty."""
        value: str = self._take_value(key, str, default, example)
        if not value and value != default:
            raise self.mistake(key, f"is empty; {_as_in(key, example)}")
        return value

    def choice(self, key: str, among: Iterable[str], default: str = _REQUIRED) -> str:
        """One of these texts."""
        names = tuple(among)
        value: str = self._take_value(key, str, default, f'"{names[0]}"')
        if value not in names and value != default:
            raise self.mistake(key, f"there is no {value!r}; {_suggest_name(value, names)}")
        return value

    def whole(self, key: str, default: int = _REQUIRED, *, least: int, most: int) -> int:
        """A whole number in these bounds."""
        value: int = self._take_value(key, int, default, str(least))
        if not least <= value <= most and value != default:
            raise self.mistake(key, f"is {value}; it must be from {least} to {most}")
        return value

    def number(self, key: str, default: float = _REQUIRED, *, least: float, most: float) -> float:
        """A number in these bounds, neither of them included."""
        given = self._values.get(key)
        if type(given) is int:
            self._values[key] = float(given)
        value: float = self._take_value(key, float, default, str(default))
        if not least < value < most:
            raise self.mistake(key, f"is {value}; it must be between {least} and {most}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value: bool = self._take_value(key, bool, default, "true")
        return value

    def texts(self, key: str, default: tuple[str, ...], among: Iterable[str]) -> tuple[str, ...]:
        """A list of some of these, each once."""
        names = tuple(among)
        values = self._take_value(key, list, list(default), f'["{names[0]}"]')
        for value in values:
            if value not in names:
                raise self.mistake(key, f"there is no {value!r}; {_suggest_name(str(value), names)}")
        if len(set(values)) != len(values):
            raise self.mistake(key, "names one of them twice")
        return tuple(values)

    def table(self, key: str) -> TableReader:
        """A table inside, empty if it is not there."""
        values = self._take_value(key, dict, {}, "")
        return TableReader(self._source, f"{self._name}.{key}".strip("."), values)

    def tables(self, key: str) -> list[TableReader]:
        """All of them, in order."""
        values = self._take_value(key, list, [], "")
        if not all(isinstance(each, dict) for each in values):
            raise self.mistake(key, f"write each of them as a table under [[{key}]]")
        return [TableReader(self._source, f"{key}[{place}]", each) for place, each in enumerate(values)]

    def rest(self) -> dict[str, Any]:
        """All that has not been taken yet, unchecked."""
        rest, self._values = self._values, {}
        return rest

    def has(self, key: str) -> bool:
        """Whether it stands there and has not been taken."""
        return key in self._values

    def end(self) -> None:
        """Nothing may be left."""
        for key in self._values:
            raise self.mistake(key, f"there is no such key; {_suggest_name(key, self._known)}")

    def _take_value(self, key: str, kind: type, default: Any, example: str) -> Any:
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise self.mistake(key, f"is missing; {_as_in(key, example)}")
            return default
        value = self._values.pop(key)
        if type(value) is not kind:  # `true` is an int to isinstance
            wanted = KINDS.get(kind, "a number")
            raise self.mistake(key, f"is {_format_value(value)}; {wanted} is needed")
        return value


def _as_in(key: str, example: str) -> str:
    return f"write it, for example, as {key} = {example}" if example else "it is required"


def _suggest_name(value: str, names: Iterable[str]) -> str:
    names = tuple(names)
    close = get_close_matches(value, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there is {', '.join(names)}"


def _format_value(value: Any) -> str:
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
