"""The state of a match of UGO!, from the deal to the last scoring."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import BY_TEXT, TEXTS, UgoCard, mask_of
from seatwise_referee.games.ugo.kingdoms import EMPTY_KINGDOM, Kingdom
from seatwise_referee.games.ugo.tricks import Trick
from seatwise_referee.shuffle import shuffle_items

if TYPE_CHECKING:
    from seatwise_referee.game import Json

HAND_SIZE: Final = 10
"""How many cards each seat is dealt. A round has as many tricks (U5, U6)."""

ALL_FARMERS: Final = 36
"""All farmers of the box."""

FARMER_SUPPLY: Final = {2: 12, 3: ALL_FARMERS, 4: ALL_FARMERS}
"""How many farmers there are for all seats together, by the number of seats (U4)."""

# Named tuples hash and compare like frozen dataclasses, and are made in half the time (measured); so tricks and
# kingdoms are named tuples too. A state is three of them, one in the other, so that a move makes only what it
# changes.


class UgoRound(NamedTuple):
    """The part of a state that changes only from round to round."""

    seed: bytes
    """The later rounds are dealt from it, so it is as secret as a hand."""

    rounds: int
    number: int
    """The number of this round, from 1."""

    points: tuple[tuple[int, ...], ...]
    """The points of each finished round, by seat."""

    last_round: tuple[Trick, ...]
    """The tricks of the round before."""

    supply: int = 0
    """The farmers that the supply has at the beginning of each round; 0 for as many as are printed (U4)."""


class UgoTable(NamedTuple):
    """The part of a state that changes only from trick to trick. All seats see it."""

    leader: Seat
    """The seat that leads the trick. When the trick is finished it is the winner, which leads the next one."""

    kingdoms: tuple[Kingdom, ...]
    supply: int
    tricks: tuple[Trick, ...]
    """The finished tricks of this round."""

    won: tuple[UgoCard, ...]
    """The cards that the leader must lay before it leads."""


class UgoState(NamedTuple):
    """The state of a match; immutable and hashable."""

    asked: Seat | None
    """The seat that is asked; `None` when the match is over."""

    prompt: int
    hands: tuple[int, ...]
    """The hands by seat, each a set of cards as 45 bits."""

    trick: tuple[UgoCard, ...]
    """The cards on the table in the order played."""

    table: UgoTable
    round: UgoRound


def deal_round(round_: UgoRound, seats: int, prompt: int) -> UgoState:
    """Return a new round: ten cards each, empty kingdoms, all farmers in the supply, the starter asked (U4, U6, U32)."""
    hands, _ = deal_hands(round_.number, seats, round_.seed)
    starter = starter_of(round_.number, seats)
    table = UgoTable(starter, (EMPTY_KINGDOM,) * seats, round_.supply or FARMER_SUPPLY[seats], (), ())
    return UgoState(starter, prompt, tuple(map(mask_of, hands)), (), table, round_)


def starter_of(number: int, seats: int) -> Seat:
    """Return the seat that starts a round: seat 0 the first, its left neighbour the next, and so on (U7, U8)."""
    return Seat((number - 1) % seats)


def opened_hands(state: UgoState) -> list[Json]:
    """Return the hands of the round that was finished last, by seat in the order played; nothing in the first round."""
    is_over = state.asked is None
    seats, tricks = len(state.hands), state.table.tricks if is_over else state.round.last_round
    if not tricks:
        return []
    hands: list[Json] = [
        [str(trick.cards[(seat - trick.leader) % seats]) for trick in tricks] for seat in range(seats)
    ]
    return [{"round": state.round.number - (not is_over), "hands": hands}]


def deal_hands(number: int, seats: int, seed: bytes) -> tuple[list[list[UgoCard]], list[UgoCard]]:
    """Return the hands by seat and the cards set aside, in the order dealt (U6)."""
    cards = _shuffled_deck(number, seed)
    hands = [list(cards[first : first + HAND_SIZE]) for first in range(0, seats * HAND_SIZE, HAND_SIZE)]
    return hands, list(cards[seats * HAND_SIZE :])


@lru_cache(maxsize=32)  # the record and its verification deal the rounds of a match again at once
def _shuffled_deck(number: int, seed: bytes) -> tuple[UgoCard, ...]:
    return tuple(BY_TEXT[text] for text in shuffle_items(TEXTS, seed, f"ugo/round/{number}"))
