"""A search for the best card of a view, and deals that a seat cannot tell from the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_fast.compiled import ffi, lib, new_table
from seatwise_referee.games.ugo import CARDS

if TYPE_CHECKING:
    from seatwise_referee.games.ugo import UgoCard, UgoView

NO_MEMORY: Final = -1
MOST_ITERATIONS: Final = 2**31 - 1
_SEEDS: Final = 1 << 64


class SearchReport(NamedTuple):
    """The result of a search."""

    card: UgoCard
    iterations: int


def search_card(
    view: UgoView, iterations: int | None = None, seconds: float = 0.0, seed: int = 0
) -> SearchReport:
    """Search for the card that brings most points more than the others get, on average over the deals that fit.

    The search is IS-MCTS with one tree. Each iteration plays in another deal; all deals that the view allows have the
    same probability. Other threads run meanwhile.

    Args:
        view: The view of a seat that is asked for a card.
        iterations: The number of iterations; the same number and seed give the same card.
        seconds: A time limit; 0 for none. One of the two must be given.
        seed: Of its random numbers.

    Returns:
        The card, and how many iterations there were (0 if only one card is legal).

    Raises:
        ValueError: Neither limit is given, the seat is not asked for a card, or no deal fits the view.
        MemoryError: There is not enough memory for the tree.
    """
    if not view.legal_cards:
        raise ValueError(f"seat {view.seat} is not asked for a card in this view")
    if iterations is None and seconds <= 0:
        raise ValueError("give a number of iterations, or a number of seconds above 0")
    if iterations is not None and not 1 <= iterations <= MOST_ITERATIONS:
        raise ValueError(f"iterations: 1 to {MOST_ITERATIONS}, not {iterations}")
    done = ffi.new("int *")
    most = MOST_ITERATIONS if iterations is None else iterations
    card = lib.ugo_search(new_table(view), most, seconds, seed % _SEEDS, done)
    _check_answer(card)
    return SearchReport(CARDS[card], done[0])


def sample_worlds(view: UgoView, count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Deal the cards that a seat has not seen, each possible way with the same probability.

    Possible is what keeps to the sizes of the hands, and to the colours that seats have shown not to hold.

    Args:
        view: The view of a seat.
        count: The number of deals.
        seed: Of the random numbers.

    Returns:
        For each deal the hands by seat, each as 45 bits.

    Raises:
        ValueError: It is the view of a spectator, or no deal fits it.
        MemoryError: There is not enough memory.
    """
    table = new_table(view)
    worlds = ffi.new("ugo_table[]", max(1, count))
    _check_answer(lib.ugo_worlds(table, view.seat, count, seed % _SEEDS, worlds))
    return [tuple(worlds[number].hand[0 : table.seats]) for number in range(count)]


def _check_answer(answer: int) -> None:
    if answer == NO_MEMORY:
        raise MemoryError("not enough memory for a search")
    if answer < 0:
        raise ValueError("no deal fits this view: a seat has shown to lack more colours than its hand allows")
