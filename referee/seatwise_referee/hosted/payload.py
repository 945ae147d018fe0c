"""The views and moves of a hosted game: JSON that has been checked, kept as canonical text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from seatwise_referee.game import Json, Seat
from seatwise_referee.journal import canonical_json

LONGEST_MOVE: Final = 4096
"""The most characters of a move as canonical JSON."""

LONGEST_HOSTED_VIEW: Final = 65_536
"""The most characters of a view as canonical JSON."""

DEEPEST_PAYLOAD: Final = 16
"""The most levels of lists and objects in a view or a move."""

LARGEST_NUMBER: Final = 2**53 - 1
"""The largest whole number: every language with floats of 64 bits reads it exactly."""


@dataclass(frozen=True, slots=True)
class HostedMove:
    """A move of a hosted game."""

    text: str
    """The move as canonical JSON."""

    @property
    def value(self) -> Json:
        """The move as JSON."""
        value: Json = json.loads(self.text)
        return value


@dataclass(frozen=True, slots=True)
class HostedView:
    """All that a seat may know of a match of a hosted game."""

    seat: Seat | None
    """The seat; `None` for a spectator."""

    text: str
    """The view as canonical JSON, an object."""

    legal: tuple[str, ...] = ()
    """The legal moves as canonical JSON; empty unless the seat is to move."""

    has_more_moves: bool = False
    """Whether other moves than these may be legal, too, because the game cannot list all."""

    drawing: str = ""
    """The drawing of a spectator's view as canonical JSON, where a server has sent one."""

    says: str = ""
    """The sentence on the step that led to a spectator's view, where a server has sent one."""

    @property
    def data(self) -> dict[str, Json]:
        """The view as JSON."""
        data: dict[str, Json] = json.loads(self.text)
        return data

    @property
    def legal_moves(self) -> list[Json]:
        """The legal moves, as JSON. A bot returns one of them; or another one, if `has_more_moves` is set."""
        return [json.loads(move) for move in self.legal]


def encode_payload(value: Any, longest: int) -> str:
    """Return a value as canonical JSON. Raises `ValueError`, which says where, if it is not JSON for everyone."""
    _check_payload(value, "", 1)
    text = canonical_json(value).decode()
    if len(text) > longest:
        raise ValueError(f"it has {len(text)} characters as JSON; at most {longest} are allowed")
    return text


def _check_payload(value: Any, where: str, depth: int) -> None:
    """Subclasses are refused too: an enum or a number of numpy looks like JSON and is written otherwise."""
    if depth > DEEPEST_PAYLOAD:
        raise ValueError(f"it has more than {DEEPEST_PAYLOAD} levels of lists and objects")
    if value is None or type(value) is bool:
        return
    if type(value) is str:
        _check_text(value, where)
        return
    if type(value) is int:
        if abs(value) > LARGEST_NUMBER:
            raise ValueError(f"{where or 'it'} is too large; whole numbers end at 2^53 - 1")
    elif type(value) is dict:
        _check_object(value, where, depth)
    elif type(value) in (list, tuple):
        for place, each in enumerate(value):
            _check_payload(each, f"{where}[{place}]", depth + 1)
    else:
        raise ValueError(
            f"{where or 'it'} has the type {type(value).__name__}; JSON here has texts, whole numbers, truth values, None, "
            "lists, and objects"
        )


def _check_text(text: str, where: str) -> None:
    """Half of a surrogate pair is no character: other languages refuse the whole view for it."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{where or 'it'} has half of a surrogate pair, which is no character")


def _check_object(value: dict[Any, Any], where: str, depth: int) -> None:
    for key, each in value.items():
        if type(key) is not str:
            raise ValueError(f"{where or 'it'} has the key {key!r}; keys are texts")
        _check_text(key, where)
        _check_payload(each, f"{where}.{key}" if where else key, depth + 1)
