"""The observation of a seat as numbers, from its view alone. Version 1: its layout never changes.

All seats are relative to the viewer: place 0 is the viewer, place 1 its left neighbour. Everything is 0 or 1, but the
points. A new layout gets a new version, and a new name of the environments that use it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from seatwise_referee.games.ugo.cards import VALUES_PER_COLOUR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatwise_referee.games.ugo import UgoView

OBSERVATION_VERSION: Final = 1
POINTS_LIMIT: Final = 100
"""Points are cut at 100 and -100."""

CARD_PLACES: Final = 45
FULL_SUPPLY: Final = 12
"""From so many farmers on the supply limits nobody soon, and all numbers look alike."""

_KINGDOM: Final = (("tops", 50), ("colours", 25), ("farmers", 10), ("missing", 5), ("points", 1))


@cache
def observation_layout(seats: int) -> dict[str, slice]:
    """Return where each part of an observation is, by its name.

    Args:
        seats: Number of seats of the match, 2 to 4.

    Returns:
        - `hand`: the own cards.
        - `played/P`, `trick/P`: the cards that place P has played in this round, and those on the table.
        - `won`: the cards that the winner of the last trick must lay.
        - `tops/P`: for each section 0 if it is empty, or 1 + the value on top (5 x 10).
        - `colours/P`: the colour of each section (5 x 5); `farmers/P`: their number (10).
        - `missing/P`: the colours that this seat has shown not to hold.
        - `points/P`: the points of all finished rounds.
        - `supply`: 0 to 12 farmers, 12 for more; `rounds_left`: rounds after this one.
        - `leader`, `asked`: the place that leads the trick, or lays its cards; the place that is asked.
        - `laying`: whether won cards are being laid.
    """
    layout, first = {}, 0
    for name, size in _parts(seats):
        layout[name] = slice(first, first + size)
        first += size
    return layout


def observation_size(seats: int) -> int:
    """Return how many numbers an observation has at a table with 2, 3 or 4 seats: 478, 661 or 844."""
    return int(observation_layout(seats)["laying"].stop)


def _parts(seats: int) -> Iterator[tuple[str, int]]:
    yield "hand", CARD_PLACES
    for name in ("played", "trick"):
        yield from ((f"{name}/{place}", CARD_PLACES) for place in range(seats))
    yield "won", CARD_PLACES
    for place in range(seats):
        yield from ((f"{name}/{place}", size) for name, size in _KINGDOM)
    yield from (
        ("supply", FULL_SUPPLY + 1),
        ("rounds_left", 8),
        ("leader", seats),
        ("asked", seats),
        ("laying", 1),
    )


@cache
def _starts(seats: int) -> dict[str, int]:
    return {name: part.start for name, part in observation_layout(seats).items()}


@cache
def _points_places(seats: int) -> list[int]:
    return [_starts(seats)[f"points/{place}"] for place in range(seats)]


def asked_seat(view: UgoView) -> int | None:
    """Return the seat that is asked in a view; `None` when the match is over."""
    if len(view.points) == view.rounds:
        return None
    if view.arranger is not None:
        return int(view.arranger)
    return (view.leader + len(view.trick)) % len(view.hand_sizes)


def encode_view(view: UgoView) -> NDArray[np.int8]:
    """Return the observation of a seat.

    Args:
        view: The view of a seat, from an environment, a live match or a record.

    Returns:
        An array of shape (`observation_size(seats)`,), with values from -100 to 100.

    Raises:
        ValueError: It is the view of a spectator.
    """
    if view.seat is None:
        raise ValueError("this is the view of a spectator; only a seat has an observation")
    seats = len(view.hand_sizes)
    encoded = np.zeros(observation_size(seats), np.int8)
    encoded[_places_of_ones(view, seats, view.seat)] = 1
    if view.points:
        totals = [sum(points) for points in zip(*view.points, strict=True)]
        turned = totals[view.seat :] + totals[: view.seat]
        encoded[_points_places(seats)] = [max(-POINTS_LIMIT, min(POINTS_LIMIT, total)) for total in turned]
    return encoded


def _places_of_ones(view: UgoView, seats: int, viewer: int) -> list[int]:
    starts = _starts(seats)
    ones = list(map(int, view.hand))
    _add_tricks(ones, view, seats, viewer, starts)
    ones += [starts["won"] + card for card in view.won_cards]
    for seat in range(seats):
        _add_kingdom(ones, view, seat, starts["tops/0"] + 91 * ((seat - viewer) % seats))
    ones.append(starts["supply"] + min(view.supply, FULL_SUPPLY))
    ones.append(starts["rounds_left"] + view.rounds - view.round)
    leader = view.leader if view.arranger is None else view.arranger
    ones.append(starts["leader"] + (leader - viewer) % seats)
    asked = asked_seat(view)
    if asked is not None:
        ones.append(starts["asked"] + (asked - viewer) % seats)
    if view.arranger is not None:
        ones.append(starts["laying"])
    return ones


def _add_tricks(ones: list[int], view: UgoView, seats: int, viewer: int, starts: dict[str, int]) -> None:
    played, missing = starts["played/0"], starts["missing/0"]
    tricks = [(trick.leader, trick.cards) for trick in view.tricks]
    for leader, cards in (*tricks, (view.leader, view.trick)):
        if not cards:
            continue
        led = cards[0] // VALUES_PER_COLOUR
        place = (leader - viewer) % seats
        for card in cards:
            ones.append(played + CARD_PLACES * place + card)
            if card // VALUES_PER_COLOUR != led:
                ones.append(missing + 91 * place + led)
            place = place + 1 if place + 1 < seats else 0
    first = starts["trick/0"]
    for number, card in enumerate(view.trick, start=view.leader - viewer):
        ones.append(first + CARD_PLACES * (number % seats) + card)


def _add_kingdom(ones: list[int], view: UgoView, seat: int, first: int) -> None:
    sections, farmers = view.kingdoms[seat]
    for number, stack in enumerate(sections):
        if stack:
            top = stack[-1]
            ones.append(first + 10 * number + top % VALUES_PER_COLOUR + 1)
            ones.append(first + 50 + 5 * number + top // VALUES_PER_COLOUR)
        else:
            ones.append(first + 10 * number)
    ones.append(first + 75 + farmers)
