"""Measures decks of Ubongo: how often a hand has seven cards that fit, by side of the deck and by card.

    python -m seatwise.kits.ubongo.figures club master --hands 500

A hand counts for a method if the method finds seven cards. `first-fit` lays the first card that fits and never takes
one back. The solver is stopped after 10 ms, or after 1 s of processor time. For each card there is the share of the hands
with it that have seven. The lowest and the highest share are in brackets. The spread, for the solver of 1 s, is how far the
cards lie apart beyond what the choice of hands explains, as a standard deviation.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from math import sqrt
from time import thread_time
from typing import Final, NamedTuple

from seatwise.kits.ubongo.samples import lay_first_fits
from seatwise.kits.ubongo.solver import Search, hand_of
from seatwise_referee.games.ubongo import GOAL, HOUSE_DECKS, ROUNDS, Deck, Side, UbongoCard

BRIEF_SEARCH_MS: Final = 10.0
LONG_SEARCH_MS: Final = 1000.0
MOST_SEARCH_NODES: Final = 10**6
"""More than a search can look at in a second."""


class SideFigures(NamedTuple):
    """How often hands of one side of a deck have seven cards that fit, with one method."""

    deck: str
    round: int
    method: str
    hands: int
    solved: int
    lowest_card: float
    """The least share of solved hands among those with a certain card."""

    highest_card: float
    spread: float
    """The standard deviation of the cards' shares, less what the choice of hands explains."""


def measure_side(deck: Deck, round_number: int, hands: int) -> list[SideFigures]:
    """Measure each method on the hands that seat 0 is dealt from the seeds 0, 1, 2 and so on, each as 32 bytes."""
    drawn = [hand_of(number.to_bytes(32, "big"), round_number, deck) for number in range(hands)]
    times = [time_to_solve(hand) for hand in drawn]
    solved = {
        "first-fit": [max(map(len, lay_first_fits(hand))) >= GOAL for hand in drawn],
        "solver, 10 ms": [ms <= BRIEF_SEARCH_MS for ms in times],
        "solver, 1 s": [ms <= LONG_SEARCH_MS for ms in times],
    }
    return [
        SideFigures(deck.name, round_number, method, hands, sum(found), *compare_cards(drawn, found))
        for method, found in solved.items()
    ]


def time_to_solve(hand: Sequence[Side], clock: Callable[[], float] = thread_time) -> float:
    """Return the milliseconds until the solver has seven cards; infinity if it finds none within a second."""
    begun = clock()
    for layout in Search(hand, MOST_SEARCH_NODES).find_layouts():
        if len(layout) >= GOAL:
            return 1000 * (clock() - begun)
    return float("inf")


def compare_cards(hands: Iterable[Sequence[Side]], solved: Sequence[bool]) -> tuple[float, float, float]:
    """Return the lowest and the highest share of a card, and the spread between cards."""
    drawn = list(hands)
    dealt = _count_cards(drawn)
    lucky = _count_cards(compress(drawn, solved))
    mean = sum(solved) / len(drawn)
    shares = [lucky.get(card, 0) / times for card, times in dealt.items()]
    by_chance = sum(mean * (1 - mean) / times for times in dealt.values()) / len(dealt)
    observed = sum((share - mean) ** 2 for share in shares) / len(shares)
    return min(shares), max(shares), sqrt(max(0.0, observed - by_chance))


def _count_cards(hands: Iterable[Sequence[Side]]) -> dict[UbongoCard, int]:
    counts: dict[UbongoCard, int] = {}
    for hand in hands:
        for side in hand:
            counts[side.card] = counts.get(side.card, 0) + 1
    return counts


def table_lines(decks: Sequence[str], hands: int) -> Iterator[str]:
    """Yield the lines of a table in Markdown. Each deck takes some seconds."""
    yield "| deck | round | first-fit | solver, 10 ms | solver, 1 s | spread of the cards |"
    yield "|---|---|---|---|---|---|"
    for name in decks:
        for number in range(1, ROUNDS + 1):
            figures = measure_side(HOUSE_DECKS[name], number, hands)
            shares = " | ".join(map(_describe_share, figures))
            yield f"| {name} | {number} | {shares} | {figures[-1].spread:.1%} |"


def _describe_share(each: SideFigures) -> str:
    return f"{each.solved / each.hands:.1%} ({each.lowest_card:.0%} to {each.highest_card:.0%})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of some of the house's decks."""
    parser = ArgumentParser(description="Measure the house's decks of Ubongo.")
    parser.add_argument(
        "decks", nargs="*", metavar="DECK", help=f"of {', '.join(HOUSE_DECKS)} (default: all)"
    )
    parser.add_argument(
        "--hands", type=int, default=500, metavar="N", help="hands of each side (default: 500)"
    )
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.decks if name not in HOUSE_DECKS]:
        parser.error(f"there is no deck {unknown[0]!r}: name one of {', '.join(HOUSE_DECKS)}")
    for line in table_lines(given.decks or list(HOUSE_DECKS), given.hands):
        print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
