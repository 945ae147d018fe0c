"""Counts the cards: thinks up deals that may be the true one, and plays each of them to its end.

A card that was played is gone, and who did not follow a colour has none of it; apart from that the others
may hold anything. Of some dozens of such deals the bot plays the rest of the round with each of its cards,
and takes the card that brings most points on average. So farmers, tops and what the others can still win
need no rules of thumb: they are counted at the end.

Everything is numbers in tables, for a move plays out about a hundred rounds: a card is 9 x colour + value.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from seatwise import Bot, Card
from seatwise.ugo import CARDS, View, farmers_by_section, farmers_gained, score_section

PLAN: Final = (8, 8, 16)
"""Deals to think up: eight to try all cards on, eight more for the better half of them, and so on."""

WHIM: Final = 7.0
"""How far the players of these deals stray from leading high and following low; 0 is not at all."""

COLOURS: Final = 5
COLOUR: Final = [card // 9 for card in CARDS]
VALUE: Final = [card % 9 for card in CARDS]

STRENGTH: Final = [[2 * card.value + (COLOUR[card] == led) for card in CARDS] for led in range(COLOURS)]
"""By the colour led: the strongest card takes the trick, of equals the first."""

GAIN: Final = [[farmers_gained((best, card), 0)[best is not card] for card in CARDS] for best in CARDS]
"""By the card that takes the trick: the farmers that each card brings its player."""

FULL: Final = 9
"""Nobody has more farmers."""

STANDING: Final = [farmers_by_section(farmers) for farmers in range(FULL + 1)]

STAFFED: Final = [
    sum(score_section(section, CARDS[1], own) == 1 for section, own in enumerate(farmers))
    for farmers in STANDING
]
"""By the number of farmers: so many sections, from the left, have all of theirs and score their tops."""

BESIDE_TOPS: Final = [
    [
        sum(
            score_section(section, CARDS[0] if section < opened else None, own)
            for section, own in enumerate(farmers)
        )
        for opened in range(COLOURS + 1)
    ]
    for farmers in STANDING
]
"""By the numbers of farmers and of sections with lands: all points but the tops', as -5 for a missing farmer."""


class Counting(Bot):
    """Plays the card that does best on average over many deals that may be the true one."""

    def choose(self, view: View) -> Card:
        """After each part of the plan the worse half of the cards drops out; the best keep their points."""
        points = dict.fromkeys(view.legal_cards, 0)
        table = Table(view, self.chance)
        for deals in PLAN:
            if len(points) == 1:
                break
            for _ in range(deals):
                hands = table.deal()
                for card in points:
                    points[card] += table.play_out(hands, card)
            best_first = sorted(points, key=points.__getitem__, reverse=True)
            points = {card: points[card] for card in best_first[: max(2, (len(points) + 1) // 2)]}
        return max(points, key=points.__getitem__)


class Table:
    """The round as one seat knows it, and as it may go on."""

    def __init__(self, view: View, chance: Random) -> None:
        self._chance = chance
        self._seat = view.seat or 0
        self._hand = view.hand
        self._hand_sizes = view.hand_sizes
        self._leader = view.leader
        self._trick = view.trick
        self._lands = Lands(view, self._seat)
        self._missing = missing_colours(view)
        seen = {*view.hand, *view.trick, *(card for trick in view.tricks for card in trick.cards)}
        self._unseen = [card for card in CARDS if card not in seen]
        others = [seat for seat in range(len(view.hand_sizes)) if seat != self._seat]
        self._others = sorted(others, key=lambda seat: -len(self._missing[seat]))
        """Those who can hold least come first, so that the others do not take it from them."""

    def deal(self) -> list[list[Card]]:
        """One way in which the cards may lie, by seat; each hand from what it would rather follow with."""
        hands = [list(self._hand)] * len(self._hand_sizes)
        pool = self._unseen
        self._chance.shuffle(pool)
        for seat in self._others:
            size, missing = self._hand_sizes[seat], self._missing[seat]
            if missing:
                fitting = [card for card in pool if COLOUR[card] not in missing]
                others = [card for card in pool if COLOUR[card] in missing]  # if at a dead end, which is rare
                hands[seat] = (fitting + others)[:size]
                pool = [card for card in pool if card not in hands[seat]]
            else:
                hands[seat], pool = pool[:size], pool[size:]
        random = self._chance.random
        wish = [value + WHIM * random() for value in VALUE]
        for hand in hands:
            hand.sort(key=wish.__getitem__)
        return hands

    def play_out(self, hands: Sequence[list[Card]], card: Card) -> int:
        """What the round is worth for the seat if it plays this card now, and all go on with these hands."""
        me, leader, lands = self._seat, int(self._leader), self._lands.copy()
        hands = [hand.copy() for hand in hands]
        hands[me].remove(card)
        trick = [*self._trick, card]
        while True:
            follow(trick, leader, hands)
            best = max(trick, key=STRENGTH[COLOUR[trick[0]]].__getitem__)
            mine = trick[me - leader]  # a negative place counts from the end, as seats go round
            lands.farmers += GAIN[best][mine]
            leader = (leader + trick.index(best)) % len(hands)
            if leader == me:
                lands.lay(trick)
            if not hands[leader]:
                return lands.points()
            trick = [hands[leader].pop()]


def follow(trick: list[Card], leader: int, hands: Sequence[list[Card]]) -> None:
    """All others play to the trick: the first of their cards that follows, or else the first of all."""
    led = COLOUR[trick[0]]
    while len(trick) < len(hands):
        hand = hands[(leader + len(trick)) % len(hands)]
        for card in hand:
            if COLOUR[card] == led:
                hand.remove(card)
                break
        else:
            card = hand.pop(0)
        trick.append(card)


def missing_colours(view: View) -> list[set[int]]:
    """By seat, what it has shown in this round not to have: it did not follow."""
    missing: list[set[int]] = [set() for _ in view.hand_sizes]
    tricks = [(trick.leader, trick.cards) for trick in view.tricks]
    for leader, cards in (*tricks, (view.leader, view.trick)):
        for place, card in enumerate(cards):
            if card.colour is not cards[0].colour:
                missing[(leader + place) % len(missing)].add(COLOUR[cards[0]])
    return missing


class Lands:
    """What scores of a kingdom: its tops and its farmers."""

    __slots__ = ("farmers", "most", "section", "tops")

    def __init__(self, view: View, seat: int) -> None:
        sections, self.farmers = view.kingdoms[seat]
        self.most = min(FULL, self.farmers + view.supply)
        self.tops = [VALUE[stack[-1]] for stack in sections if stack]
        self.section = [-1] * COLOURS
        """By colour; -1 where none is open."""
        for number, stack in enumerate(sections):
            if stack:
                self.section[COLOUR[stack[0]]] = number

    def copy(self) -> Lands:
        """For one more way in which the round may go on."""
        other = Lands.__new__(Lands)
        other.farmers, other.most = self.farmers, self.most
        other.tops, other.section = self.tops.copy(), self.section.copy()
        return other

    def lay(self, trick: list[Card]) -> None:
        """The highest of each colour ends on top, and the colour with the highest opens the next section."""
        trick.sort(key=VALUE.__getitem__, reverse=True)
        laid = set()
        for card in trick:
            colour = COLOUR[card]
            if colour in laid:
                continue
            laid.add(colour)
            if self.section[colour] < 0:
                self.section[colour] = len(self.tops)
                self.tops.append(VALUE[card])
            else:
                self.tops[self.section[colour]] = VALUE[card]

    def points(self) -> int:
        """As the round would be scored now."""
        farmers = min(self.farmers, self.most)
        return sum(self.tops[: STAFFED[farmers]]) + BESIDE_TOPS[farmers][len(self.tops)]
