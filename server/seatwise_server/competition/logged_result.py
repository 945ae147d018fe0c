"""A match that counts, as the result log has it: the one input of all arithmetic in this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from seatwise_referee.ending import Ending

FORFEIT_ENDINGS = frozenset(Ending) - {Ending.COMPLETED, Ending.RESIGNED}
"""The endings that show that a bot is broken. Resigning is not one of them: a bot that resigns still answers."""


@dataclass(frozen=True, slots=True)
class LoggedResult:
    """One match that counts, as the result log holds it. Void matches are never in it."""

    seq: int
    """The number of the result in its log, from 1."""
    match: str
    """The name of the match, `matches/x`."""
    bots: tuple[str, ...]
    """The bots by seat, as `bots/<name>/versions/<v>`. Each version of a bot is a player of its own."""
    points: tuple[int, ...]
    """The game's points by seat."""
    ranks: tuple[int, ...]
    """The ranks by seat, from 1.

    Seats that left rank behind all others, and a later exit ranks ahead of an earlier one. Ties share a rank.
    """
    endings: tuple[Ending, ...]
    """How each seat ended."""
    chain: str = ""
    """The hash chain of the record, in hex."""
    deal: str = ""
    """The name of the duplicate deal that several matches share. Empty for a deal that is played once."""
    par: tuple[float, ...] = ()
    """The score of the par bot at each seat of this deal, if it is known."""
    log_ms: int = field(default=0, compare=False)
    """When it was added to its log, in milliseconds of Redis's clock; 0 if it is not known."""

    @property
    def compares_bots(self) -> bool:
        """Whether the match compares bots: there are at least two, and none of them sits twice."""
        return len(self.bots) > 1 and len(set(self.bots)) == len(self.bots)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `from_json` makes the same result again."""
        plain = asdict(self) | {"endings": tuple(map(str, self.endings))}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in plain.items()
            if name != "log_ms" or value
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> LoggedResult:
        """Return the result of one line of the log. Raises `ValueError`, which names the key, if the line is no result."""
        texts = {name: _read_text(line, name) for name in ("chain", "deal") if name in line}
        par = _read_list(line, "par", float, int) if "par" in line else ()
        result = cls(
            seq=_read_whole_number(line, "seq"),
            match=_read_text(line, "match"),
            bots=_read_list(line, "bots", str),
            points=_read_list(line, "points", int),
            ranks=_read_list(line, "ranks", int),
            endings=_read_endings(line),
            par=tuple(map(float, par)),
            log_ms=_read_whole_number(line, "log_ms") if "log_ms" in line else 0,
            **texts,
        )
        return _check_result(result)


def _check_result(result: LoggedResult) -> LoggedResult:
    seats = len(result.bots)
    for name in ("points", "ranks", "endings"):
        if len(getattr(result, name)) != seats:
            why = f"{name}: one for each of the {seats} bots is needed, not {len(getattr(result, name))}"
            raise ValueError(why)
    if len(result.par) not in (0, seats):
        raise ValueError(f"par: none, or one for each of the {seats} bots")
    if result.seq < 1 or any(not 1 <= rank <= seats for rank in result.ranks):
        raise ValueError(f"seq counts from 1, and ranks go from 1 to {seats}")
    return result


def _read_endings(line: Mapping[str, Any]) -> tuple[Ending, ...]:
    names = _read_list(line, "endings", str)
    if unknown := set(names) - set(Ending):
        raise ValueError(f"endings: {min(unknown)!r} is none of {', '.join(sorted(Ending))}")
    return tuple(map(Ending, names))


def _required_field(line: Mapping[str, Any], name: str) -> Any:
    if name not in line:
        raise ValueError(f"{name}: is missing")
    return line[name]


def _read_text(line: Mapping[str, Any], name: str) -> str:
    value = _required_field(line, name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: a text is needed, not {value!r}")
    return value


def _read_whole_number(line: Mapping[str, Any], name: str) -> int:
    value = _required_field(line, name)
    if type(value) is not int:  # `True` is an int to isinstance
        raise ValueError(f"{name}: a whole number is needed, not {value!r}")
    return value


def _read_list(line: Mapping[str, Any], name: str, *kinds: type) -> tuple[Any, ...]:
    values = _required_field(line, name)
    if not isinstance(values, list) or any(type(value) not in kinds for value in values):
        why = f"{name}: a list of {' or '.join(kind.__name__ for kind in kinds)} is needed, not {values!r}"
        raise ValueError(why)
    return tuple(values)
