"""The limits of a match, and the arithmetic of its clocks. No function here reads a clock.

All times are whole milliseconds. A charge is the time that a move costs its seat:

    charged = max(0, at - asked - allowance - frozen)

A move is in time while `charged <= free + bank + grace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from seatwise_referee.each_move import bank_after
from seatwise_referee.game import Json

LONGEST_LIMIT_MS = 24 * 60 * 60 * 1000
"""No limit may be longer than a day: that would be a typing error."""


class BadTimeControl(ValueError):
    """A time control that cannot be played. The text names the key, and says what would be right."""


@dataclass(frozen=True, slots=True)
class TimeControl:
    """The limits of a match, the same for all its seats. All times are whole milliseconds.

    Raises `BadTimeControl` for a limit that is no whole number, or is negative or longer than a day.

    >>> limits = TimeControl(free_ms={"card": 1000}, bank_ms=500)
    >>> limits.allowed_ms("card", bank_ms=500)  # 1000 free, 500 from the bank, 50 of grace
    1550
    >>> limits.bank_after("card", bank_ms=500, charged_ms=1200)  # 200 more than the free time
    300
    """

    free_ms: Mapping[str, int] = field(default_factory=dict)
    """The free time for each prompt, by its pace."""

    bank_ms: int = 10_000
    """Extra time for the whole match."""

    increment_ms: int = 0
    """The time that each move in time adds to the bank."""

    grace_ms: int = 50
    """How far a charge may exceed free time and bank. It is never taken from the bank."""

    setup_ms: int = 10_000
    """The time from the opening of the match to the deal. No seat is charged for it."""

    allowance_cap_ms: int = 300
    """The most of a measured round trip that is taken off a charge: as far as from Europe to Asia or Australia."""

    handover_ms: int = 250
    """The time of a seat starts at the latest this long after its prompt was opened."""

    tie_window_ms: int = 10
    """In a race, calls that are charged at most this much more than the first are simultaneous with it.

    That much of a charge is noise. Two seats that think for the same time are charged 0 to 3 ms apart on a quiet
    machine. On a machine with twice its load it is up to 10 ms in nine rounds of ten.
    """

    max_strikes: int = 3
    """A seat with this many time-outs forfeits the match."""

    max_rejections: int = 10
    """A seat with this many illegal moves forfeits the match."""

    def __post_init__(self) -> None:
        for name in NUMBER_FIELDS:
            _check_whole_number(name, getattr(self, name), least=1 if name.startswith("max_") else 0)
        for pace, free_ms in self.free_ms.items():
            _check_whole_number(f"free_ms[{pace!r}]", free_ms, least=1)

    def allowed_ms(self, pace: str, bank_ms: int) -> int:
        """Return the highest charge that is still in time, in milliseconds.

        Args:
            pace: The pace of the prompt, a key of `free_ms`.
            bank_ms: The rest of the seat's bank, in milliseconds.
        """
        return self.free_ms[pace] + bank_ms + self.grace_ms

    def bank_after(self, pace: str, bank_ms: int, charged_ms: int) -> int:
        """Return what a seat's bank has left after a move in time, in milliseconds.

        The bank pays for what the charge exceeds the free time, and never falls below zero. Then it gets the
        increment.

        Args:
            pace: The pace of the prompt, a key of `free_ms`.
            bank_ms: The rest of the seat's bank before the move, in milliseconds.
            charged_ms: The charge of the move, in milliseconds.
        """
        return bank_after(self.free_ms[pace], self.increment_ms, bank_ms, charged_ms)

    def to_json(self) -> dict[str, Json]:
        """Return the limits as records write them."""
        return {"free_ms": dict(self.free_ms), **{name: getattr(self, name) for name in NUMBER_FIELDS}}

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> TimeControl:
        """Return the limits that `to_json` wrote as this JSON. Missing keys have their defaults.

        Raises `BadTimeControl`, which names the key, for an unknown key or a limit that cannot be.
        """
        unknown = json.keys() - {"free_ms", *NUMBER_FIELDS}
        if unknown:
            raise BadTimeControl(
                f"unknown key {min(unknown)!r}; there are free_ms, {', '.join(NUMBER_FIELDS)}"
            )
        free_ms = json.get("free_ms", {})
        if not isinstance(free_ms, dict):
            raise BadTimeControl("free_ms must map paces to milliseconds")
        return cls(**{**json, "free_ms": free_ms})  # type: ignore[arg-type]  # checked in __post_init__


NUMBER_FIELDS = tuple(each.name for each in fields(TimeControl) if each.name != "free_ms")
"""The limits that are one number each."""


def _check_whole_number(name: str, number: object, least: int) -> None:
    if type(number) is not int or not least <= number <= LONGEST_LIMIT_MS:
        raise BadTimeControl(
            f"{name} is {number!r}; it must be a whole number from {least} to {LONGEST_LIMIT_MS}"
        )
