"""Thousands of matches of UGO! at once in NumPy, where `seatwise_fast` is not installed.

U1 to U33 are the numbers of the rules. Tests compare these tables with the referee move by move.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from seatwise.rl.actions import ACTION_COUNT, CARD_ACTIONS
from seatwise.rl.batch import check_batch_deals, first_illegal, refuse_illegal
from seatwise.rl.observation import encode_view, observation_layout, observation_size
from seatwise_referee.games.ugo import (
    CARDS,
    MOST_FARMERS,
    default_order,
    farmers_by_section,
    farmers_gained,
    score_section,
)

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoView

Rows = NDArray[np.int64]
"""Numbers of tables."""

CARD_VALUES: Final = np.array([card.value for card in CARDS], np.int8)
CARD_COLOURS: Final = np.array([card // 9 for card in CARDS], np.int8)
TRICK_STRENGTH: Final = (2 * CARD_VALUES[None] + (CARD_COLOURS[None] == np.arange(5)[:, None])).astype(
    np.int8
)
"""The strength of a card by the colour led (U11, U12)."""

FARMERS_BROUGHT: Final = np.array(
    [[farmers_gained((best, card), 0)[best is not card] for card in CARDS] for best in CARDS], np.int8
)
"""The farmers of a card by the card that wins (U21, U22)."""

SECTION_POINTS: Final = np.array(
    [
        [
            [score_section(section, None if top < 0 else CARDS[top], own) for top in range(-1, 9)]
            for section, own in enumerate(farmers_by_section(farmers))
        ]
        for farmers in range(MOST_FARMERS + 1)
    ],
    np.int8,
)
"""The points of a section by the farmers of its seat, its number and 1 + the value on top (U27 to U30)."""

ORDERS_BY_SEATS: Final = {seats: np.array(list(permutations(range(seats)))) for seats in (2, 3, 4)}
COLOUR_SETS: Final = np.array([511 << (9 * colour) for colour in range(5)], np.uint64)
CARD_BITS: Final = np.uint64(1) << np.arange(45, dtype=np.uint64)
ONE_BIT: Final = np.uint64(1)


def unpack_cards(sets: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return sets of cards as 45 numbers of 0 or 1 each."""
    octets = sets.astype("<u8").view(np.uint8).reshape(*sets.shape, 8)
    return np.unpackbits(octets, axis=-1, count=45, bitorder="little")


def pick_cards(sets: NDArray[np.uint64], numbers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return one card of each set, by its number in the order of the cards, from 0. For an empty set it is no card."""
    for cleared in range(int(numbers.max(initial=0))):
        sets = np.where(numbers > cleared, sets & (sets - ONE_BIT), sets)
    cards: NDArray[np.uint8] = np.bitwise_count(~sets & (sets - ONE_BIT))
    return cards


class NumpyBatch:
    """Matches of UGO! side by side, in NumPy. See `seatwise.rl.batch.UgoBatch` for what each method does."""

    def __init__(self, deals: NDArray[np.uint8], seats: int) -> None:
        self._deals = check_batch_deals(deals, seats)
        self.count, self.rounds = self._deals.shape[:2]
        self.seats = seats
        self._all = np.arange(self.count)
        self._chance = np.random.default_rng(1)
        self._make_state()
        self._deal_round(self._all)

    def _make_state(self) -> None:
        count = self.count
        self._hand, self._played = np.zeros((2, count, 4), np.uint64)
        self._points = np.zeros((count, 4), np.int32)
        self._trick, self._won, self._opened, self._farmers = np.zeros((4, count, 4), np.int8)
        self._section, self._top = np.full((2, count, 4, 5), -1, np.int8)
        self._missing = np.zeros((count, 4), np.uint8)
        self._trick_size, self._leader, self._asked, self._supply, self._round = np.zeros((5, count), np.int8)
        self._is_laying, self._is_over = np.zeros((2, count), np.bool_)

    def _deal_round(self, rows: Rows) -> None:
        """Deal the next round at some tables (U4, U6 to U8)."""
        seats, number = self.seats, self._round[rows]
        cards = self._deals[rows, number][:, : 10 * seats].reshape(len(rows), seats, 10)
        self._hand[rows, :seats] = np.bitwise_or.reduce(CARD_BITS[cards], axis=2)
        for cleared in (self._played, self._missing, self._opened, self._farmers, self._trick_size):
            cleared[rows] = 0
        self._section[rows] = self._top[rows] = -1
        self._is_laying[rows] = False
        self._supply[rows] = 12 if seats == 2 else 36
        self._leader[rows] = self._asked[rows] = number % seats
        self._round[rows] = number + 1

    @property
    def asked(self) -> NDArray[np.int8]:
        return self._asked.copy()

    @property
    def is_over(self) -> NDArray[np.bool_]:
        return self._is_over.copy()

    @property
    def is_laying(self) -> NDArray[np.bool_]:
        return self._is_laying.copy()

    @property
    def points(self) -> NDArray[np.int32]:
        return self._points[:, : self.seats].copy()

    def read_field(self, name: str) -> NDArray[Any]:
        found: NDArray[Any] = getattr(self, f"_{name}")
        return found.copy()

    def mask(self) -> NDArray[np.bool_]:
        out = np.zeros((self.count, ACTION_COUNT), np.bool_)
        out[:, :CARD_ACTIONS] = unpack_cards(self._legal_cards())
        out[self._is_laying | self._is_over, :CARD_ACTIONS] = False
        last = CARD_ACTIONS + len(ORDERS_BY_SEATS[self.seats])
        out[self._is_laying, CARD_ACTIONS:last] = True
        return out

    def _legal_cards(self) -> NDArray[np.uint64]:
        """Return the cards that follow, or all if there are none (U9, U10)."""
        hand = self._hand[self._all, self._asked]
        following = hand & COLOUR_SETS[CARD_COLOURS[self._trick[:, 0]]]
        return np.where((self._trick_size > 0) & (following != 0), following, hand)

    def step(self, actions: NDArray[np.int64]) -> None:
        given = np.asarray(actions, np.int64)
        if given.shape != (self.count,):
            raise ValueError(
                f"actions: one for each of {self.count} tables, not an array of shape {given.shape}"
            )
        self._check_legal(given)
        laying = np.flatnonzero(self._is_laying)
        playing = np.flatnonzero(~self._is_laying & ~self._is_over)
        if len(laying):
            orders = ORDERS_BY_SEATS[self.seats][given[laying] - CARD_ACTIONS]
            self._lay_cards(laying, self._won[laying[:, None], orders])
        if len(playing):
            self._play_cards(playing, given[playing])

    def _check_legal(self, actions: NDArray[np.int64]) -> None:
        card = np.clip(actions, 0, CARD_ACTIONS - 1).astype(np.uint64)
        plays = (card == actions) & ((self._legal_cards() >> card & ONE_BIT) != 0)
        last = CARD_ACTIONS + len(ORDERS_BY_SEATS[self.seats])
        lays = (actions >= CARD_ACTIONS) & (actions < last)
        if not (np.where(self._is_laying, lays, plays) | self._is_over).all():
            refuse_illegal(first_illegal(self.mask(), actions, self._is_over), actions)

    def _play_cards(self, rows: Rows, cards: NDArray[np.int64]) -> None:
        asked, size = self._asked[rows], self._trick_size[rows]
        self._hand[rows, asked] ^= CARD_BITS[cards]
        self._played[rows, asked] |= CARD_BITS[cards]
        self._trick[rows, size] = cards
        led = CARD_COLOURS[self._trick[rows, 0]]
        self._missing[rows, asked] |= np.where(CARD_COLOURS[cards] != led, 1 << led, 0).astype(np.uint8)
        self._trick_size[rows] = size + 1
        self._asked[rows] = (asked + 1) % self.seats
        full = rows[size + 1 == self.seats]
        if len(full):
            self._end_tricks(full)

    def _end_tricks(self, rows: Rows) -> None:
        trick, each = self._trick[rows, : self.seats], np.arange(len(rows))
        place = TRICK_STRENGTH[CARD_COLOURS[trick[:, 0]][:, None], trick].argmax(axis=1).astype(np.int8)
        winner = (self._leader[rows] + place) % self.seats
        self._take_farmers(rows, winner, FARMERS_BROUGHT[trick[each, place][:, None], trick])
        won = self._won[rows, : self.seats] = self._in_default_order(trick)
        self._leader[rows] = self._asked[rows] = winner
        self._trick_size[rows] = 0
        has_choice = self._has_choice(rows, winner, CARD_COLOURS[won])
        self._is_laying[rows] = has_choice
        settled = ~has_choice
        if settled.any():
            self._lay_cards(rows[settled], won[settled])

    def _take_farmers(self, rows: Rows, winner: NDArray[np.int8], gain: NDArray[np.int8]) -> None:
        """Bring the farmers: the winner's first, then clockwise, while the supply lasts (U23 to U25)."""
        each, leader = np.arange(len(rows)), self._leader[rows]
        for turn in range(self.seats):
            seat = (winner + turn) % self.seats
            due = gain[each, (seat - leader) % self.seats]
            taken = np.minimum(np.minimum(due, MOST_FARMERS - self._farmers[rows, seat]), self._supply[rows])
            self._farmers[rows, seat] += taken
            self._supply[rows] -= taken

    def _in_default_order(self, trick: NDArray[np.int8]) -> NDArray[np.int8]:
        colour, value = CARD_COLOURS[trick], CARD_VALUES[trick]
        is_same = colour[:, :, None] == colour[:, None, :]
        top = np.where(is_same, value[:, None, :], -1).max(axis=2)
        order = ((8 - top).astype(np.int16) * 45 + trick).argsort(axis=1)
        return np.take_along_axis(trick, order, axis=1)

    def _has_choice(
        self, rows: Rows, winner: NDArray[np.int8], colours: NDArray[np.int8]
    ) -> NDArray[np.bool_]:
        """Return where the order matters: two new colours, or two cards of one colour (U18, U19)."""
        repeats = (colours[:, 1:] == colours[:, :-1]).any(axis=1)  # equal colours are side by side
        added = self._section[rows[:, None], winner[:, None], colours] < 0
        has_choice: NDArray[np.bool_] = repeats | (added.sum(axis=1) > 1)
        return has_choice

    def _lay_cards(self, rows: Rows, cards: NDArray[np.int8]) -> None:
        """Lay cards in this order, each on its colour or in the next section (U17, U18)."""
        winner = self._leader[rows]
        for card in cards.T:
            section = self._section[rows, winner, CARD_COLOURS[card]]
            opened = self._opened[rows, winner]
            self._opened[rows, winner] += section < 0
            section = np.where(section < 0, opened, section)
            self._section[rows, winner, CARD_COLOURS[card]] = section
            self._top[rows, winner, section] = CARD_VALUES[card]
        self._is_laying[rows] = False
        ended = rows[self._hand[rows, winner] == 0]
        if len(ended):
            self._end_rounds(ended)

    def _end_rounds(self, rows: Rows) -> None:
        seats = self.seats
        farmers, tops = self._farmers[rows, :seats, None], self._top[rows, :seats] + 1
        self._points[rows, :seats] += SECTION_POINTS[farmers, np.arange(5), tops].sum(axis=2, dtype=np.int32)
        is_last = self._round[rows] == self.rounds
        self._is_over[rows[is_last]] = True
        if not is_last.all():
            self._deal_round(rows[~is_last])

    def random_actions(self) -> NDArray[np.int64]:
        cards = self._legal_cards()
        chosen = (self._chance.random(self.count, np.float32) * np.bitwise_count(cards)).astype(np.uint8)
        actions = pick_cards(cards, chosen).astype(np.int64)
        orders = self._chance.integers(len(ORDERS_BY_SEATS[self.seats]), size=self.count)
        actions = np.where(self._is_laying, CARD_ACTIONS + orders, actions)
        return np.where(self._is_over, 0, actions)

    def seed(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed % (1 << 64))

    def observe(self, viewer: int | None = None) -> NDArray[np.int8]:
        seats, layout = self.seats, observation_layout(self.seats)
        me = self._asked if viewer is None else np.full(self.count, range(seats)[viewer], np.int8)
        out = np.zeros((self.count, observation_size(seats)), np.int8)
        out[:, layout["hand"]] = unpack_cards(self._hand[self._all, me])
        for place in range(seats):
            self._observe_place(out, layout, place, (me + place) % seats)
        self._observe_trick(out, layout, me)
        _set_one(out, self._all, layout["supply"], np.minimum(self._supply, 12))
        _set_one(out, self._all, layout["rounds_left"], self.rounds - self._round)
        _set_one(out, self._all, layout["leader"], (self._leader - me) % seats)
        going_on = np.flatnonzero(~self._is_over)
        _set_one(out, going_on, layout["asked"], ((self._asked - me) % seats)[going_on])
        out[:, layout["laying"].start] = self._is_laying
        return out

    def _observe_place(
        self, out: NDArray[np.int8], layout: dict[str, slice], place: int, seat: NDArray[np.int8]
    ) -> None:
        """Write what all see of one seat at each table."""
        rows = self._all
        out[:, layout[f"played/{place}"]] = unpack_cards(self._played[rows, seat])
        first, colours = layout[f"tops/{place}"].start, layout[f"colours/{place}"].start
        top, section = (field[rows, seat].astype(np.int64) for field in (self._top, self._section))
        for number in range(5):
            out[rows, first + 10 * number + top[:, number] + 1] = 1
            there = np.flatnonzero(section[:, number] >= 0)
            out[there, colours + 5 * section[there, number] + number] = 1
        _set_one(out, rows, layout[f"farmers/{place}"], self._farmers[rows, seat])
        missing = self._missing[rows, seat][:, None]
        out[:, layout[f"missing/{place}"]] = np.unpackbits(missing, axis=1, count=5, bitorder="little")
        out[:, layout[f"points/{place}"].start] = np.clip(self._points[rows, seat], -100, 100)

    def _observe_trick(self, out: NDArray[np.int8], layout: dict[str, slice], me: NDArray[np.int8]) -> None:
        for number in range(self.seats):
            there = np.flatnonzero(self._trick_size > number)
            place = (self._leader[there] + number - me[there]).astype(np.int64) % self.seats
            _set_one(out, there, layout["trick/0"], 45 * place + self._trick[there, number])
        laying = np.flatnonzero(self._is_laying)
        _set_one(out, laying[:, None], layout["won"], self._won[laying, : self.seats])

    def copy(self) -> NumpyBatch:
        other = NumpyBatch.__new__(NumpyBatch)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        other._chance = np.random.default_rng()
        other._chance.bit_generator.state = self._chance.bit_generator.state
        return other

    def deal_again(self, numbers: NDArray[np.int64], deals: NDArray[np.uint8]) -> None:
        self._deals[numbers] = check_batch_deals(deals, self.seats)
        self._points[numbers] = 0
        self._round[numbers] = 0
        self._is_over[numbers] = False
        self._deal_round(np.asarray(numbers, np.int64))

    def set_view(self, number: int, view: UgoView, hands: Sequence[int] | None = None) -> None:
        if (len(view.hand_sizes), view.rounds) != (self.seats, self.rounds):
            raise ValueError(
                f"the view is of a match with other seats or rounds than {self.seats} and {self.rounds}"
            )
        encoded = encode_view(view)
        row, layout = range(self.count)[number], observation_layout(self.seats)
        self._round[row], self._is_over[row] = view.round, len(view.points) == view.rounds
        self._supply[row], self._is_laying[row] = view.supply, view.arranger is not None
        self._leader[row] = view.leader if view.arranger is None else view.arranger
        self._asked[row] = (self._leader[row] + len(view.trick)) % self.seats
        self._trick_size[row] = len(view.trick)
        self._trick[row, : len(view.trick)] = view.trick
        self._won[row, : len(view.won_cards)] = default_order(view.won_cards)
        self._hand[row] = 0
        self._hand[row, view.seat] = _pack_cards(encoded[layout["hand"]])
        for seat, hand in enumerate(hands or ()):
            self._hand[row, seat] = hand
        for seat in range(self.seats):
            self._set_seat(row, seat, encoded, (seat - int(view.seat or 0)) % self.seats, view)

    def _set_seat(self, row: int, seat: int, encoded: NDArray[np.int8], place: int, view: UgoView) -> None:
        layout = observation_layout(self.seats)
        self._played[row, seat] = _pack_cards(encoded[layout[f"played/{place}"]])
        self._missing[row, seat] = _pack_cards(encoded[layout[f"missing/{place}"]])
        self._points[row, seat] = sum(points[seat] for points in view.points)
        sections, self._farmers[row, seat] = view.kingdoms[seat]
        self._opened[row, seat] = sum(map(bool, sections))
        self._section[row, seat] = self._top[row, seat] = -1
        for number, stack in enumerate(sections):
            if stack:
                self._section[row, seat, CARD_COLOURS[stack[-1]]] = number
                self._top[row, seat, number] = CARD_VALUES[stack[-1]]


def _set_one(out: NDArray[np.int8], rows: Rows, part: slice, places: NDArray[Any]) -> None:
    """Write 1 at these places of a part."""
    out[rows, part.start + places.astype(np.int64)] = 1


def _pack_cards(flags: NDArray[np.int8]) -> int:
    return sum(1 << number for number in map(int, np.flatnonzero(flags)))
