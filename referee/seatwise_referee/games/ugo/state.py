"""Where a match stands, from the deal to the last scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import BY_TEXT, TEXTS, Card, mask_of
from seatwise_referee.games.ugo.kingdoms import EMPTY, Kingdom
from seatwise_referee.shuffle import shuffle_items

if TYPE_CHECKING:
    from seatwise_referee.games.ugo.tricks import Trick

HAND: Final = 10
"""Cards dealt to each seat, and so the tricks of a round (U5, U6)."""

SUPPLY: Final = {2: 12, 3: 36, 4: 36}
"""Farmers for all seats together, by how many they are (U4)."""

# Named tuples hash and compare like frozen dataclasses and are built in half the time (measured; that is
# why tricks and kingdoms are such too). A state is three of them, one in the other, so that a move builds
# anew only what it changes.


class Round(NamedTuple):
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


class Table(NamedTuple):
    """What stands still while cards are played to a trick; all of it lies open."""

    leader: Seat
    """Of the trick being played; once it is finished, its winner, for he leads the next."""

    kingdoms: tuple[Kingdom, ...]
    supply: int
    tricks: tuple[Trick, ...]
    """The finished ones of this round."""

    won: tuple[Card, ...]
    """The cards that the leader has still to lay before he leads."""


class State(NamedTuple):
    """A position; immutable and hashable."""

    asked: Seat | None
    """Whose answer is awaited; nobody's when the match is over."""

    prompt: int
    """The number of the question."""

    hands: tuple[int, ...]
    """By seat, each a set of cards as 45 bits."""

    trick: tuple[Card, ...]
    """The cards on the table in the order played."""

    table: Table
    round: Round


def deal_round(round_: Round, seats: int, prompt: int) -> State:
    """Ten cards to each, all kingdoms empty, all farmers in the supply, and the starter asked (U4, U6, U32)."""
    hands, _ = dealt(round_.number, seats, round_.seed)
    starter = starter_of(round_.number, seats)
    table = Table(starter, (EMPTY,) * seats, SUPPLY[seats], (), ())
    return State(starter, prompt, tuple(map(mask_of, hands)), (), table, round_)


def starter_of(number: int, seats: int) -> Seat:
    """Seat 0 starts the first round, its left neighbour the next, and so on (U7, U8)."""
    return Seat((number - 1) % seats)


def dealt(number: int, seats: int, seed: bytes) -> tuple[list[list[Card]], list[Card]]:
    """The hands by seat and the cards set aside, in the order dealt (U6)."""
    cards = [BY_TEXT[text] for text in shuffle_items(TEXTS, seed, f"ugo/round/{number}")]
    hands = [cards[first : first + HAND] for first in range(0, seats * HAND, HAND)]
    return hands, cards[seats * HAND :]
