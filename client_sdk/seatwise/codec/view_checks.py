"""Checks that the views of all games share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatwise.codec.errors import MalformedView


def check_viewer(viewer: int | None, seat: int) -> None:
    """Raise `MalformedView` if the view is not this seat's."""
    if viewer != seat:
        raise MalformedView(f"it is the view of seat {viewer}")


def check_seats(field: str, named: Iterable[int], seats: int) -> None:
    """Raise `MalformedView` if there is no such seat."""
    for seat in named:
        if not 0 <= seat < seats:
            raise MalformedView(f"{field} names the seat {seat}, and there are {seats}")


def check_length(field: str, given: Sequence[object], seats: int) -> None:
    """Raise `MalformedView` if a list by seat is longer or shorter than there are seats."""
    if len(given) != seats:
        raise MalformedView(f"{field} has {len(given)} entries for {seats} seats")
