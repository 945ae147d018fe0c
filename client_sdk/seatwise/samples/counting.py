"""Counts cards and farmers: deals what it has not seen to the others, many times, and plays each deal on.

Three steps for each question: what can the others hold (`Others`), how may the round go on (`play_on`),
and what is the kingdom worth then (`worth`). A card is as good as the mean of its kingdoms. Everything is plain numbers here, for speed: a card is 9 x colour + value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seatwise import Bot, Card
from seatwise.ugo import CARDS, View

DEALS = 40
"""How many deals it thinks up for each card; twice as many take twice the time and win little more."""

FARMERS_OF_WINNER = (0, 0, 0, 2, 2, 2, 1, 1, 0)
"""By the value of the winning card."""
FARMERS_OF_LOSER = (0, 2, 1, 0, 0, 0, 0, 0, 0)
"""By the value of the lost card, if it has another colour than the winning card."""
NEEDED = (0, 0, 2, 3, 4)
"""Farmers of a section, A to E."""
UNTILLED = (0, 0, 1, 3, 5)
"""Points of a section that has all its farmers and no lands."""
MOST_FARMERS = 9


class Counting(Bot):
    """Plays the card whose imagined rounds end best for its own kingdom."""

    def choose(self, view: View) -> Card:
        """Each legal card is tried on the same deals, so that luck favours none."""
        if len(view.legal_cards) == 1:
            return view.legal_cards[0]
        gained = dict.fromkeys(view.legal_cards, 0)
        others, draw = Others(view), self.chance.random
        for _ in range(DEALS):
            hands = others.deal(draw)
            for card in view.legal_cards:
                gained[card] += play_on(view, hands, card, draw)
        return max(view.legal_cards, key=lambda card: gained[card])


# What the others can hold


class Others:
    """What is known of the cards that the bot has not seen."""

    def __init__(self, view: View) -> None:
        seen = {*view.hand, *view.trick, *(card for trick in view.tricks for card in trick.cards)}
        self._unseen = [int(card) for card in CARDS if card not in seen]
        self._hand = list(map(int, view.hand))
        self._sizes = view.hand_sizes
        self._voids = voids(view)
        others = [seat for seat in range(len(self._sizes)) if seat != view.seat]
        self._most_known_first = sorted(others, key=lambda seat: -len(self._voids[seat]))

    def deal(self, draw: Callable[[], float]) -> list[list[int]]:
        """One way in which the unseen cards may lie, by seat."""
        pool = sorted(self._unseen, key=lambda _: draw())
        hands = [self._hand] * len(self._sizes)
        for seat in self._most_known_first:
            empty = self._voids[seat]
            fitting = [card for card in pool if card // 9 not in empty]
            if len(fitting) < self._sizes[seat]:  # a rare dead end: what is left does not fit
                fitting += [card for card in pool if card // 9 in empty]
            hands[seat] = fitting[: self._sizes[seat]]
            pool = [card for card in pool if card not in hands[seat]]
        return hands


def voids(view: View) -> list[set[int]]:
    """By seat, the colours that it cannot have: it did not follow them in this round."""
    empty: list[set[int]] = [set() for _ in view.hand_sizes]
    tricks = [(trick.leader, trick.cards) for trick in view.tricks]
    for leader, cards in (*tricks, (view.leader, view.trick)):
        for place, card in enumerate(cards):
            if card.colour is not cards[0].colour:
                empty[(leader + place) % len(empty)].add(cards[0] // 9)
    return empty


# How the round may go on


@dataclass(slots=True)
class Own:
    """What becomes of the bot's own kingdom."""

    seat: int
    farmers: int
    supply: int
    colours: list[int] = field(default_factory=list)
    """In the order of the sections."""
    tops: dict[int, int] = field(default_factory=dict)
    """Value of the top card, by colour."""


def play_on(view: View, hands: list[list[int]], card: int, draw: Callable[[], float]) -> int:
    """Plays the card, then the round to its end, everybody at random; what the own kingdom is worth then."""
    seat = view.seat or 0
    own = own_kingdom(view, seat)
    hands = [list(hand) for hand in hands]
    hands[seat].remove(card)
    leader, trick = int(view.leader), [*map(int, view.trick), card]
    while True:
        complete(trick, leader, hands, draw)
        leader = take(own, trick, leader, len(hands))
        if not hands[seat]:
            return worth(own)
        trick = []


def own_kingdom(view: View, seat: int) -> Own:
    """The kingdom as it lies now."""
    sections, farmers = view.kingdoms[seat]
    tops = {stack[-1] // 9: stack[-1] % 9 for stack in sections if stack}
    return Own(seat, farmers, view.supply, list(tops), tops)


def complete(trick: list[int], leader: int, hands: list[list[int]], draw: Callable[[], float]) -> None:
    """The other seats play any card that follows, and any card at all where none does."""
    while len(trick) < len(hands):
        hand = hands[(leader + len(trick)) % len(hands)]
        led = trick[0] // 9 if trick else -1
        legal = [card for card in hand if card // 9 == led] or hand
        card = legal[int(draw() * len(legal))]
        hand.remove(card)
        trick.append(card)


def take(own: Own, trick: Sequence[int], leader: int, seats: int) -> int:
    """Who takes the trick; lands and farmers of the own kingdom are as they are after it."""
    led = trick[0] // 9
    strengths = [card % 9 * 2 + (card // 9 == led) for card in trick]
    best = strengths.index(max(strengths))
    place, colour = (own.seat - leader) % seats, trick[best] // 9
    gains = [farmers_of_loser(card, colour) for card in trick]
    gains[best] = FARMERS_OF_WINNER[trick[best] % 9]
    if seats == 2:  # the supply may run short, and the winner takes first
        gains[best] = min(gains[best], own.supply)
        gains[1 - best] = min(gains[1 - best], own.supply - gains[best])
        own.supply -= gains[0] + gains[1]
    own.farmers = min(MOST_FARMERS, own.farmers + gains[place])
    if place == best:
        lay(own, trick)
    return (leader + best) % seats


def farmers_of_loser(card: int, winning_colour: int) -> int:
    """A lost 1 or 2 brings one less where it has the colour of the winning card."""
    most = FARMERS_OF_LOSER[card % 9]
    return most - (card // 9 == winning_colour) if most else 0


def lay(own: Own, trick: Sequence[int]) -> None:
    """The highest of each colour ends on top; new colours open sections, the highest first."""
    highest: dict[int, int] = {}
    for card in trick:
        highest[card // 9] = max(highest.get(card // 9, 0), card % 9)
    new = [colour for colour in highest if colour not in own.tops]
    own.colours += sorted(new, key=highest.__getitem__, reverse=True)
    own.tops.update(highest)


def worth(own: Own) -> int:
    """The points of the round."""
    points, farmers = 0, own.farmers
    for section, needed in enumerate(NEEDED):
        missing = max(0, needed - farmers)
        farmers -= needed - missing
        if section < len(own.colours):
            points += -5 * missing if missing else own.tops[own.colours[section]]
        elif not missing:
            points += UNTILLED[section]
    return points
