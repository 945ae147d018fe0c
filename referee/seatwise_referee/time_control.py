"""Time as numbers: the caller reads the clock on the wall, this module only reckons.

All times are whole milliseconds. A charge is what a move costs its seat:

    charged = max(0, at - asked - allowance - frozen)

and a move is in time while `charged <= free + bank + grace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from seatwise_referee.game import Json

LONGEST_LIMIT_MS = 24 * 60 * 60 * 1000
"""No limit may be longer than a day: a typing error, not a time control."""


class BadTimeControl(ValueError):
    """A time control that cannot be played; the text names the key and what would be right."""


@dataclass(frozen=True, slots=True)
class TimeControl:
    """The limits of a match, the same for all its seats."""

    free_ms: Mapping[str, int] = field(default_factory=dict)
    """Free time for each prompt, by its pace."""

    bank_ms: int = 10_000
    """Extra time for the whole match."""

    increment_ms: int = 0
    """Added to the bank after each move made in time."""

    grace_ms: int = 50
    """How far a charge may exceed free time and bank; never taken from the bank."""

    setup_ms: int = 10_000
    """From the opening of the match to the deal; charged to nobody."""

    allowance_cap_ms: int = 100
    """The most of a measured round trip that is taken off a charge."""

    handover_ms: int = 250
    """A prompt's time starts at the latest this long after it was put."""

    tie_window_ms: int = 10
    """In a race, calls that are charged at most so much more than the first are simultaneous with it.

    So much of a charge is noise: two seats that think as long are charged 0 to 3 ms apart on a quiet machine
    and up to 10 ms, in nine rounds of ten, on one that has twice as much to do as it can.
    """

    max_strikes: int = 3
    """With this many time-outs a seat is forfeited."""

    max_rejections: int = 10
    """With this many illegal moves a seat is forfeited."""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            _check_whole_number(name, getattr(self, name), least=1 if name.startswith("max_") else 0)
        for pace, free_ms in self.free_ms.items():
            _check_whole_number(f"free_ms[{pace!r}]", free_ms, least=1)

    def allowed_ms(self, pace: str, bank_ms: int) -> int:
        """The highest charge that is still in time."""
        return self.free_ms[pace] + bank_ms + self.grace_ms

    def bank_after(self, pace: str, bank_ms: int, charged_ms: int) -> int:
        """The bank after a move made in time."""
        return max(0, bank_ms - max(0, charged_ms - self.free_ms[pace])) + self.increment_ms

    def to_json(self) -> dict[str, Json]:
        """As in records."""
        return {"free_ms": dict(self.free_ms), **{name: getattr(self, name) for name in _NUMBERS}}

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> TimeControl:
        """The inverse of `to_json`; `BadTimeControl` names what is wrong. Missing keys have their defaults."""
        unknown = json.keys() - {"free_ms", *_NUMBERS}
        if unknown:
            raise BadTimeControl(f"unknown key {min(unknown)!r}; there are free_ms, {', '.join(_NUMBERS)}")
        free_ms = json.get("free_ms", {})
        if not isinstance(free_ms, dict):
            raise BadTimeControl("free_ms must map paces to milliseconds")
        return cls(**{**json, "free_ms": free_ms})  # type: ignore[arg-type]  # checked in __post_init__


_NUMBERS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")


def _check_whole_number(name: str, number: object, least: int) -> None:
    if type(number) is not int or not least <= number <= LONGEST_LIMIT_MS:
        raise BadTimeControl(
            f"{name} is {number!r}; it must be a whole number from {least} to {LONGEST_LIMIT_MS}"
        )
