"""The sample bots of Ubongo, from a random builder to one that looks at the open cards of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatwise import Bot
from seatwise.kits.ubongo.solver import NODES, Search, solve
from seatwise.ubongo import (
    GOAL,
    Call,
    Card,
    Layout,
    OfferEnd,
    Placement,
    Side,
    Symbols,
    Thought,
    View,
    fitting_beside,
    fitting_places,
)
from seatwise_referee.games.ubongo import HOUSE_DECKS, Deck

TRIES = 3
"""The number of layouts that it starts. After that it keeps its best one."""


class RandomBuilder(Bot):
    """Lays random cards wherever they fit, starts again when none fits, and keeps its best layout.

    It offers to end the round after its last try.
    """

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield each layout that has more cards than all before, and call with seven cards."""
        best = 0
        for _ in range(TRIES):
            for layout in self._grow_layout(view.hand):
                if len(layout) > best:
                    best = len(layout)
                    yield layout
                if best >= GOAL:
                    yield Call()
                    return
        yield OfferEnd(on=True)

    def _grow_layout(self, hand: tuple[Side, ...]) -> Iterator[Layout]:
        layout: Layout = ()
        left, symbols = [side.card for side in hand], dict(hand)
        while left:
            card = self.chance.choice(left)
            left.remove(card)
            if places := list(fitting_places(layout, card, symbols)):
                layout = (*layout, self.chance.choice(places))
            yield layout


class FirstFit(Bot):
    """Lays the first card of the hand that fits, in the first place where it fits. It never takes one back."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield a layout after each card, then a call or an offer to end the round."""
        laid = 0
        for layout in lay_first_fits(view.hand):
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)


def lay_first_fits(hand: Sequence[Side]) -> Iterator[Layout]:
    """Yield layouts, each with one card more, up to seven cards or until no card fits."""
    layout: Layout = ()
    left, symbols = [side.card for side in hand], dict(hand)
    while len(layout) < GOAL:
        places = (next(fitting_places(layout, card, symbols), None) for card in left)
        place = next(filter(None, places), None)
        if place is None:
            return
        left.remove(place.card)
        layout = (*layout, place)
        yield layout


SHORTEST_LOOK_MS, LONGEST_LOOK_MS = 6_000, 14_000
"""It thinks so long before each card, in milliseconds: a round takes it about 70 s."""
LOOK_STEP_MS = 500
"""It thinks in steps of so many milliseconds, so that it stops soon when the round is over."""


class PatientBuilder(Bot):
    """Lays the cards of the best layout one by one, every ten seconds or so, as slowly as a person. A server lets it think as long as it declares."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd | Thought]:
        """Yield layouts, each with one card more, then a call or an offer to end the round."""
        best: Layout
        *_, best = ((), *solve(view.hand))
        for laid in range(1, len(best) + 1):
            for _ in range(self.chance.randint(SHORTEST_LOOK_MS, LONGEST_LOOK_MS) // LOOK_STEP_MS):
                yield Thought(LOOK_STEP_MS)
            yield best[:laid]
        yield Call() if len(best) >= GOAL else OfferEnd(on=True)


WIDTH = 2
"""The number of layouts of each size that it keeps."""


class Beam(Bot):
    """Keeps a few layouts of each size, and adds a card to each of them: a beam search.

    It may lose the only way to seven cards.
    """

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield a layout of each size, then a call or an offer to end the round."""
        laid = 0
        for layout in widen_layouts(view.hand):
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)


def widen_layouts(hand: Sequence[Side], width: int = WIDTH) -> Iterator[Layout]:
    """Yield a layout of each size, up to seven cards or until no layout can grow.

    It keeps the layouts of the cards that fit the fewest others, so that the cards that fit many are left for later.
    """
    symbols = dict(hand)
    fits = {card: _count_fits(card, symbols) for card in symbols}
    grown: list[Layout] = [(Placement(card, 0, 0, 0),) for card in symbols]
    while grown:
        kept = sorted(grown, key=lambda layout: sum(fits[placed.card] for placed in layout))[:width]
        yield kept[0]
        if len(kept[0]) == GOAL:
            return
        larger = ((*layout, place) for layout in kept for place in _places_to_add(layout, symbols))
        grown = list({frozenset(layout): layout for layout in larger}.values())


def _count_fits(card: Card, symbols: Mapping[Card, Symbols]) -> int:
    """Return in how many ways the card fits beside the others."""
    middle = Placement(card, 0, 0, 0)
    others = (other for other in symbols if other != card)
    return sum(1 for other in others for _ in fitting_beside(middle, symbols[card], other, symbols[other]))


def _places_to_add(layout: Layout, symbols: Mapping[Card, Symbols]) -> Iterator[Placement]:
    laid = {placed.card for placed in layout}
    for card in symbols:
        if card not in laid:
            yield from fitting_places(layout, card, symbols)


class Solver(Bot):
    """Searches for seven cards that fit, and lays the best layout found so far.

    It looks at a fixed number of layouts at most, so that it plays the same on every machine.
    """

    nodes = NODES
    """The most layouts that it looks at."""

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield layouts, each with more cards than the one before, then a call or an offer to end the round."""
        laid = 0
        for layout in Search(view.hand, self.nodes).find_layouts():
            laid = len(layout)
            yield layout
        yield Call() if laid >= GOAL else OfferEnd(on=True)


BRIEF_NODES = 30
"""The layouts that a brief search looks at, at most, in its own hand and in the open cards of another seat."""


class LookAhead(Bot):
    """Searches all layouts of its hand, and some of the cards that others lay open, and lays only its best layout.

    Each layout costs time, and in most hands the whole search is over before anybody can call. So it lays nothing until then.
    Only a hard hand takes longer. In the rounds 2, 4 and 6 it knows cards of the others: those that they laid in the round
    before, which are turned over now. If another seat soon has seven of these that fit, it may call first. Then this bot lays
    the best layout found so far, and searches on.
    """

    def build(self, view: View) -> Iterator[Layout | Call | OfferEnd]:
        """Yield the best layout, in hard hands an early one before it, then a call or an offer to end the round."""
        brief = Search(view.hand, BRIEF_NODES)
        *_, best = brief.find_layouts()
        if len(best) < GOAL and brief.nodes_left == 0:
            if another_may_call(view):
                yield best
            *_, best = Search(view.hand, NODES).find_layouts()
        yield best
        yield Call() if len(best) >= GOAL else OfferEnd(on=True)


def another_may_call(view: View) -> bool:
    """Return whether a brief search finds seven cards that fit among the known cards of another seat."""
    return any(
        len(layout) >= GOAL
        for cards in turned_cards(view)
        for layout in Search(cards, BRIEF_NODES).find_layouts()
    )


def turned_cards(view: View) -> Iterator[tuple[Side, ...]]:
    """Yield the cards of each other seat that lay open at the end of the round before, with the sides that are up now.

    It yields nothing in the rounds 1, 3 and 5, in which new cards are dealt, and for a deck that it does not know.
    """
    deck = find_deck(view)
    if deck is None or view.round % 2:
        return
    for seat, built in enumerate(view.last_round):
        if seat != view.seat:
            yield tuple(deck.side(side.card, view.round) for side in built.sides)


def find_deck(view: View) -> Deck | None:
    """Return the deck of the house that has all sides of the hand."""
    for deck in HOUSE_DECKS.values():
        if all(deck.side(side.card, view.round) == side for side in view.hand):
            return deck
    return None
