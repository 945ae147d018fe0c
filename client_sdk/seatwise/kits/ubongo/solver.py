"""Finds layouts for a hand of Ubongo: seven cards that fit, or as many as possible.

    for layout in solve(view.hand):
        ...  # each has more cards than the one before; lay it

The search grows a layout card by card from a root card, which lies upright in the middle. The next card comes from a
list of candidates: placements that fit one laid card, and touch no other laid card wrongly. When all layouts with a
candidate have been searched, the candidate is given up, so that no layout is built twice. For hands of nine cards the
search is soon complete, and then the last layout is the best possible one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatwise.kits.ubongo.prices import fitting_beside, touch
from seatwise_referee.games.ubongo import (
    GOAL,
    HOUSE_DECK,
    Deck,
    Layout,
    Placement,
    Side,
    Touch,
    UbongoCard,
    deal_hands,
    deck_of_round,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


NODES = 20_000
"""The default of `nodes`: how many layouts a search looks at, at most. Hardly any hand needs a hundredth of it."""


def solve(hand: Sequence[Side], nodes: int = NODES, goal: int = GOAL) -> Iterator[Layout]:
    """Find layouts that fit, each with more cards than the one before.

    Args:
        hand: The sides in the hand, as in `view.hand`.
        nodes: The most layouts that the search looks at.
        goal: The number of cards at which the search stops.

    Yields:
        The layouts. The last one is the best that was found.
    """
    return Search(hand, nodes, goal).find_layouts()


class _Node(NamedTuple):
    """A layout, and the placements that may be added to it."""

    layout: Layout
    candidates: list[Placement]
    seen: frozenset[Placement]
    """All candidates so far, including those that were given up."""


class Search:
    """One search for one hand. It can be stopped at any time."""

    def __init__(self, hand: Sequence[Side], nodes: int = NODES, goal: int = GOAL) -> None:
        """Prepare a search for a hand. The arguments are those of `solve`."""
        self._symbols = dict(hand)
        self._goal = min(goal, len(hand))
        self._beside: dict[tuple[UbongoCard, int], list[Placement]] = {}
        self.nodes_left = nodes
        """Number of layouts that may still be looked at. If some are left at the end, no better layout exists."""

    def find_layouts(self) -> Iterator[Layout]:
        """Yield layouts, each with more cards than the one before. The last one is the best that was found."""
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

    def _with_root(self, card: UbongoCard, given_up: list[UbongoCard]) -> Iterator[Layout]:
        """Yield each layout that fits, has this card, and has none of the cards given up."""
        root = Placement(card, 0, 0, 0)
        beside = [each for each in self._fitting_cards(root) if each.card not in given_up]
        return self._grow_layout(_Node((root,), beside, frozenset(beside)), given_up)

    def _grow_layout(self, node: _Node, given_up: list[UbongoCard]) -> Iterator[Layout]:
        """Yield the node's layout, and all layouts that extend it."""
        if self.nodes_left <= 0:
            return
        self.nodes_left -= 1
        yield node.layout
        used = {*given_up, *(placement.card for placement in node.layout)}
        for number, placement in enumerate(node.candidates, start=1):
            left = [each for each in node.candidates[number:] if self._may_follow(each, placement)]
            fresh = [
                each
                for each in self._fitting_cards(placement)
                if each.card not in used
                and each not in node.seen
                and all(self._may_follow(each, other) for other in node.layout)
            ]
            layout = (*node.layout, placement)
            yield from self._grow_layout(_Node(layout, left + fresh, node.seen.union(fresh)), given_up)

    def _may_follow(self, placement: Placement, laid: Placement) -> bool:
        """Return whether both placements can be in one layout."""
        return placement.card != laid.card and touch(
            laid, self._symbols[laid.card], placement, self._symbols[placement.card]
        ) in (Touch.APART, Touch.FITTING)

    def _fitting_cards(self, placement: Placement) -> list[Placement]:
        """Return each placement of another card that fits this one."""
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


def hand_of(seed: bytes, round_number: int, deck: Deck = HOUSE_DECK) -> tuple[Side, ...]:
    """Return the hand of seat 0 in a round."""
    (hand,) = deal_hands(deck_of_round(round_number), 1, seed)
    return tuple(deck.side(card, round_number) for card in sorted(hand))
