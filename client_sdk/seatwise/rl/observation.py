"""The observation of a seat as numbers, from its view alone. Version 1: its layout never changes.

All seats are relative to the viewer: place 0 is the viewer, place 1 its left neighbour. Everything is 0 or 1, but the
points. A new layout gets a new version, and a new name of the environments that use it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from seatwise_referee.games.ugo.cards import VALUES_PER_COLOUR, mask_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatwise_referee.games.ugo import Kingdom, Trick, UgoCard, UgoView

OBSERVATION_VERSION: Final = 1
POINTS_LIMIT: Final = 100
"""Points are cut at 100 and -100."""

CARD_PLACES: Final = 45
FULL_SUPPLY: Final = 12
"""From so many farmers on the supply limits nobody soon, and all numbers look alike."""

_KINGDOM: Final = (("tops", 50), ("colours", 25), ("farmers", 10), ("missing", 5), ("points", 1))
_BYTES: Final = np.dtype(np.uint8)
_SMALL_NUMBERS: Final = np.dtype(np.int8)
_KINGDOM_SIZE: Final = sum(size for _, size in _KINGDOM)


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
    tables = _bit_tables(len(view.hand_sizes))
    encoded = array_of_bits(tables.read(view, view.seat), tables.size)
    if view.points:
        totals = _cut_totals(view.points)
        for seat, total in enumerate(totals):
            encoded[tables.points_places[seat - view.seat]] = total
    return encoded


@lru_cache(maxsize=64)  # every view of a round has the same points of the rounds before it
def _cut_totals(points: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    totals = map(sum, zip(*points, strict=True))
    return tuple(max(-POINTS_LIMIT, min(POINTS_LIMIT, total)) for total in totals)


def array_of_bits(bits: int, size: int) -> NDArray[np.int8]:
    """Return so many bits of a number as a new array of 0 and 1 of shape (size,), the lowest first. Higher bits must be 0."""
    packed = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), _BYTES)
    return np.unpackbits(packed, None, size, "little").view(_SMALL_NUMBERS)


class _BitTables:
    """All parts of 0 and 1 as one number, whose lowest bit is the first place. That is twice as fast as places one by one.

    A table by place is read at a seat less the viewer, and a negative index counts from its end, as places do. The cards
    of a trick go on from there, so their table has each place twice.
    """

    def __init__(self, seats: int) -> None:
        starts = _starts(seats)
        self.size = observation_size(seats)
        self.points_places = [starts[f"points/{place}"] for place in range(seats)]
        self._played = [_played_bits(starts, place % seats) for place in range(2 * seats)]
        self._all_played = (1 << CARD_PLACES * seats) - 1 << starts["played/0"]
        self._from_played_to_trick = CARD_PLACES * seats
        self._won, self._kingdoms, self._laying = starts["won"], starts["tops/0"], 1 << starts["laying"]
        self._supply = _bits_from(starts["supply"], FULL_SUPPLY + 1)
        self._rounds_left = _bits_from(starts["rounds_left"], 8)
        self._leader = _bits_from(starts["leader"], seats)
        self._asked = _bits_from(starts["asked"], seats)
        self._known: list[tuple[tuple[Trick, ...], int]] = [((), 0)] * seats
        """By viewer the finished tricks that were read last, and their bits: the next view mostly has one trick more."""

    def read(self, view: UgoView, viewer: int) -> int:
        """Return all parts of a view but the points."""
        bits = mask_of(view.hand) | self._read_tricks(view, viewer) | self._read_kingdoms(view, viewer)
        bits |= self._supply[min(view.supply, FULL_SUPPLY)] | self._rounds_left[view.rounds - view.round]
        asked = asked_seat(view)
        if asked is not None:
            bits |= self._asked[asked - viewer]
        if view.arranger is None:
            return bits | self._leader[view.leader - viewer]
        return (
            bits | self._leader[view.arranger - viewer] | mask_of(view.won_cards) << self._won | self._laying
        )

    def _read_tricks(self, view: UgoView, viewer: int) -> int:
        bits = self._read_finished(view.tricks, viewer)
        if not view.trick:
            return bits
        now = self._read_trick(view.trick, view.leader - viewer)
        return bits | now | (now & self._all_played) << self._from_played_to_trick

    def _read_finished(self, tricks: tuple[Trick, ...], viewer: int) -> int:
        known, bits = self._known[viewer]
        if tricks[: len(known)] != known:
            known, bits = (), 0
        for trick in tricks[len(known) :]:
            bits |= self._read_trick(trick.cards, trick.leader - viewer)
        self._known[viewer] = tricks, bits
        return bits

    def _read_trick(self, cards: Sequence[UgoCard], place: int) -> int:
        led, bits = cards[0] // VALUES_PER_COLOUR, 0
        for card in cards:
            bits |= self._played[place][led][card]
            place += 1
        return bits

    def _read_kingdoms(self, view: UgoView, viewer: int) -> int:
        bits, kingdoms = 0, view.kingdoms
        for seat in range(viewer - 1, viewer - 1 - len(kingdoms), -1):  # from the last place to the first
            bits = bits << _KINGDOM_SIZE | _bits_of_kingdom(kingdoms[seat])
        return bits << self._kingdoms


_bit_tables = cache(_BitTables)


def _bits_from(first: int, count: int) -> list[int]:
    return [1 << first + number for number in range(count)]


def _played_bits(starts: dict[str, int], place: int) -> list[list[int]]:
    """Return by the colour led the bits of each card: that it was played, and if need be that the colour is missing."""
    played = _bits_from(starts[f"played/{place}"], CARD_PLACES)
    missing = _bits_from(starts[f"missing/{place}"], 5)
    return [
        [bit | (missing[led] if card // VALUES_PER_COLOUR != led else 0) for card, bit in enumerate(played)]
        for led in range(5)
    ]


@lru_cache(maxsize=256)  # a move changes one kingdom at most, and hardly any card changes all of them
def _bits_of_kingdom(kingdom: Kingdom) -> int:
    bits = 1 << 75 + kingdom.farmers
    for number, stack in enumerate(kingdom.sections):
        if stack:
            colour, value = divmod(stack[-1], VALUES_PER_COLOUR)
            bits |= 1 << 10 * number + 1 + value | 1 << 50 + 5 * number + colour
        else:
            bits |= 1 << 10 * number
    return bits
