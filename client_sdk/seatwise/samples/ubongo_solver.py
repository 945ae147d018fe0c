"""Finds layouts for a hand of Ubongo: seven cards that fit, or as many as there can be.

    for layout in solve(view.hand):
        ...  # each has more cards than the one before; lay it

A layout is grown card by card from a root that lies upright in the middle. What may follow is a list of
candidates: cards that fit to one that lies, and are not wrong for any other. After all that can be built
with a candidate has been searched, it is given up for good, so that nothing is built twice. For hands of
nine cards this soon has seen everything, and then the last layout is the best there is.

`python -m seatwise.samples.ubongo_solver` counts, for every side of the house's deck, how many hands have a
fitting layout of seven, and says how long it took to find it or to know that there is none.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from seatwise_referee.games.ubongo import (
    GOAL,
    HOUSE,
    ROUNDS,
    Card,
    Deck,
    Layout,
    Placement,
    Side,
    Touch,
    dealt,
    deck_of_round,
    fitting_beside,
    touch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NODES = 20_000
"""As many layouts are looked at, if not told otherwise; hardly a hand needs a hundredth of it."""


def solve(hand: Sequence[Side], nodes: int = NODES, goal: int = GOAL) -> Iterator[Layout]:
    """Layouts that fit, each with more cards than the one before, until one has `goal` or all are searched."""
    return Search(hand, nodes, goal).layouts()


class _Node(NamedTuple):
    """A layout, and the placements that may follow it."""

    layout: Layout
    candidates: list[Placement]
    seen: frozenset[Placement]
    """The candidates, and those that were given up."""


class Search:
    """One search for one hand; it can be left at any time."""

    def __init__(self, hand: Sequence[Side], nodes: int = NODES, goal: int = GOAL) -> None:
        """For that hand, looking at so many layouts at most."""
        self._symbols = dict(hand)
        self._goal = min(goal, len(hand))
        self._beside: dict[tuple[Card, int], list[Placement]] = {}
        self.nodes_left = nodes
        """How many layouts may still be looked at. If some are left in the end, no better layout exists."""

    def layouts(self) -> Iterator[Layout]:
        """Each has more cards than the one before; the last one is the best that was found."""
        best, cards = 0, list(self._symbols)
        for number, card in enumerate(cards):
            if best >= min(self._goal, len(cards) - number):
                return
            for layout in self._with_root(card, given_up=cards[:number]):
                if len(layout) > best:
                    best = len(layout)
                    yield layout
                if best >= self._goal:
                    return

    def _with_root(self, card: Card, given_up: list[Card]) -> Iterator[Layout]:
        """Every layout that fits and holds this card, but none of those given up; each once."""
        root = Placement(card, 0, 0, 0)
        beside = [each for each in self._fitting(root) if each.card not in given_up]
        return self._grown(_Node((root,), beside, frozenset(beside)), given_up)

    def _grown(self, node: _Node, given_up: list[Card]) -> Iterator[Layout]:
        """The node's layout, and all that can be built on it."""
        if self.nodes_left <= 0:
            return
        self.nodes_left -= 1
        yield node.layout
        used = {*given_up, *(placement.card for placement in node.layout)}
        for number, placement in enumerate(node.candidates, start=1):
            left = [each for each in node.candidates[number:] if self._may_follow(each, placement)]
            fresh = [
                each
                for each in self._fitting(placement)
                if each.card not in used
                and each not in node.seen
                and all(self._may_follow(each, other) for other in node.layout)
            ]
            layout = (*node.layout, placement)
            yield from self._grown(_Node(layout, left + fresh, node.seen.union(fresh)), given_up)

    def _may_follow(self, placement: Placement, laid: Placement) -> bool:
        """Whether both can be in one layout."""
        return placement.card != laid.card and touch(
            laid, self._symbols[laid.card], placement, self._symbols[placement.card]
        ) in (Touch.APART, Touch.FITTING)

    def _fitting(self, placement: Placement) -> list[Placement]:
        """Every other card wherever it fits to this one."""
        card, x, y, turn = placement
        if (card, turn) not in self._beside:
            middle = Placement(card, 0, 0, turn)
            self._beside[card, turn] = [
                each
                for other, symbols in self._symbols.items()
                if other != card
                for each in fitting_beside(middle, self._symbols[card], other, symbols)
            ]
        return [Placement(other, x + dx, y + dy, turns) for other, dx, dy, turns in self._beside[card, turn]]


# --- Figures -------------------------------------------------------------------------------------------


class Figures(NamedTuple):
    """How the solver fares with many hands of one side of a deck."""

    round: int
    hands: int
    solved: int
    """Hands with a fitting layout of seven."""

    given_up: int
    """Hands in which none was found before the nodes ran out; if 0, `solved` is exact."""

    median_ms: float
    p95_ms: float


def measure(round_number: int, hands: int = 200, deck: Deck = HOUSE, nodes: int = NODES) -> Figures:
    """The hands are those that seat 0 is dealt from the seeds 0, 1, 2 and so on, each as 32 bytes."""
    solved = given_up = 0
    times = []
    for number in range(hands):
        search = Search(hand_of(number.to_bytes(32, "big"), round_number, deck), nodes)
        begun = perf_counter()
        best = max(search.layouts(), key=len)
        times.append(1000 * (perf_counter() - begun))
        solved += len(best) >= GOAL
        given_up += len(best) < GOAL and search.nodes_left == 0
    times.sort()
    return Figures(round_number, hands, solved, given_up, times[hands // 2], times[hands * 95 // 100])


def hand_of(seed: bytes, round_number: int, deck: Deck = HOUSE) -> tuple[Side, ...]:
    """What seat 0 is dealt for that round."""
    (hand,) = dealt(deck_of_round(round_number), 1, seed)
    return tuple(deck.side(card, round_number) for card in sorted(hand))


def main() -> None:
    """Prints the figures of the house's deck."""
    print("round   hands with seven   median ms   p95 ms")
    for figures in (measure(number, hands=1000) for number in range(1, ROUNDS + 1)):
        open_end = f" or up to {figures.given_up} more" if figures.given_up else ""
        print(
            f"{figures.round:5}   {figures.solved:6} of {figures.hands:5}{open_end}"
            f"   {figures.median_ms:9.2f}   {figures.p95_ms:6.2f}"
        )


if __name__ == "__main__":
    main()
