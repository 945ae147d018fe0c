"""Where a match stands, from the deal to the last scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import TEXTS, Card, mask_of
from seatwise_referee.games.ugo.kingdoms import EMPTY, Kingdom
from seatwise_referee.shuffle import shuffled

if TYPE_CHECKING:
    from seatwise_referee.games.ugo.tricks import Trick

TABLE_SIZES = range(2, 5)
HAND = 10
"""Cards dealt to each seat, and so tricks in a round (U5, U6)."""

SUPPLY_FOR_TWO = 12
SUPPLY = 36

# Both are named tuples: they hash and compare like frozen dataclasses, and are built three times as fast.


class Round(NamedTuple):
    """All that stands still while cards are played to a trick; one object for all states of that trick."""

    seed: bytes
    """The later rounds are dealt from it, so it is as secret as a hand."""

    rounds: int
    """How many the match has."""

    number: int
    """Of this round, from 1."""

    starter: Seat
    leader: Seat
    """Of the trick on the table, or of the next one."""

    kingdoms: tuple[Kingdom, ...]
    supply: int
    points: tuple[tuple[int, ...], ...]
    """Of each finished round, by seat."""

    tricks: tuple[Trick, ...]
    last_round: tuple[Trick, ...]
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

    round: Round


def first_state(seats: int, seed: bytes, rounds: int) -> State:
    """The first round dealt and its first card asked for."""
    return deal_round(1, seats, seed, rounds, points=(), last_round=(), prompt=1)


def deal_round(
    number: int,
    seats: int,
    seed: bytes,
    rounds: int,
    *,
    points: tuple[tuple[int, ...], ...],
    last_round: tuple[Trick, ...],
    prompt: int,
) -> State:
    """All cards back and ten to each, all kingdoms empty, all farmers in the supply (U4, U6, U32)."""
    hands, _ = dealt(number, seats, seed)
    starter = starter_of(number, seats)
    table = Round(
        seed=seed,
        rounds=rounds,
        number=number,
        starter=starter,
        leader=starter,
        kingdoms=(EMPTY,) * seats,
        supply=SUPPLY_FOR_TWO if seats == 2 else SUPPLY,
        points=points,
        tricks=(),
        last_round=last_round,
        won=(),
    )
    return State(starter, prompt, tuple(map(mask_of, hands)), (), table)


def starter_of(number: int, seats: int) -> Seat:
    """Seat 0 starts the first round, its left neighbour the next, and so on (U7, U8)."""
    return Seat((number - 1) % seats)


def dealt(number: int, seats: int, seed: bytes) -> tuple[list[list[Card]], list[Card]]:
    """The hands by seat and the cards set aside, in the order dealt (U6)."""
    cards = [Card.parse(text) for text in shuffled(TEXTS, seed, f"ugo/round/{number}")]
    hands = [cards[first : first + HAND] for first in range(0, seats * HAND, HAND)]
    return hands, cards[seats * HAND :]


def arranger(state: State) -> Seat | None:
    """The seat that has won cards to lay, if there is one."""
    return state.asked if state.round.won else None
