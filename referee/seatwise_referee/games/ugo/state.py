"""Where a match stands, from the deal to the last scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import BY_TEXT, TEXTS, UgoCard, mask_of
from seatwise_referee.games.ugo.kingdoms import EMPTY_KINGDOM, Kingdom
from seatwise_referee.shuffle import shuffle_items

if TYPE_CHECKING:
    from seatwise_referee.games.ugo.tricks import Trick

HAND_SIZE: Final = 10
"""Cards dealt to each seat, and so the tricks of a round (U5, U6)."""

FARMER_SUPPLY: Final = {2: 12, 3: 36, 4: 36}
"""Farmers for all seats together, by how many they are (U4)."""

# Named tuples hash and compare like frozen dataclasses and are built in half the time (measured; that is
# why tricks and kingdoms are such too). A state is three of them, one in the other, so that a move builds
# anew only what it changes.


class UgoRound(NamedTuple):
    """What stands still for a whole round."""

    seed: bytes
    """The later rounds are dealt from it, so it is as secret as a hand."""

    rounds: int
    """How many the match has."""

    number: int
    """Of this round, from 1."""

    points: tuple[tuple[int, ...], ...]
    """Of each finished round, by seat."""

    last_round: tuple[Trick, ...]
    """The tricks of the round before."""


class UgoTable(NamedTuple):
    """What stands still while cards are played to a trick; all of it lies open."""

    leader: Seat
    """Of the trick being played; once it is finished, its winner, for he leads the next."""

    kingdoms: tuple[Kingdom, ...]
    supply: int
    tricks: tuple[Trick, ...]
    """The finished ones of this round."""

    won: tuple[UgoCard, ...]
    """The cards that the leader has still to lay before he leads."""


class UgoState(NamedTuple):
    """A position; immutable and hashable."""

    asked: Seat | None
    """Whose answer is awaited; nobody's when the match is over."""

    prompt: int
    """The number of the question."""

    hands: tuple[int, ...]
    """By seat, each a set of cards as 45 bits."""

    trick: tuple[UgoCard, ...]
    """The cards on the table in the order played."""

    table: UgoTable
    round: UgoRound


def deal_round(round_: UgoRound, seats: int, prompt: int) -> UgoState:
    """Ten cards to each, all kingdoms empty, all farmers in the supply, and the starter asked (U4, U6, U32)."""
    hands, _ = deal_hands(round_.number, seats, round_.seed)
    starter = starter_of(round_.number, seats)
    table = UgoTable(starter, (EMPTY_KINGDOM,) * seats, FARMER_SUPPLY[seats], (), ())
    return UgoState(starter, prompt, tuple(map(mask_of, hands)), (), table, round_)


def starter_of(number: int, seats: int) -> Seat:
    """Seat 0 starts the first round, its left neighbour the next, and so on (U7, U8)."""
    return Seat((number - 1) % seats)


def deal_hands(number: int, seats: int, seed: bytes) -> tuple[list[list[UgoCard]], list[UgoCard]]:
    """The hands by seat and the cards set aside, in the order dealt (U6)."""
    cards = [BY_TEXT[text] for text in shuffle_items(TEXTS, seed, f"ugo/round/{number}")]
    hands = [cards[first : first + HAND_SIZE] for first in range(0, seats * HAND_SIZE, HAND_SIZE)]
    return hands, cards[seats * HAND_SIZE :]
