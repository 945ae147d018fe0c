"""The sample bots of UGO!, from a random one to those that search with the compiled rules of `seatwise_fast`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import Any, ClassVar, Final

from seatwise import Bot, Card
from seatwise.kits.game_kit import is_search_installed
from seatwise.kits.search_limit import SEARCH_LIMIT
from seatwise.ugo import (
    CARDS,
    MOST_FARMERS,
    Kingdom,
    View,
    default_order,
    farmers_by_section,
    farmers_gained,
    lay,
    score_kingdom,
    score_section,
    winner_of,
)


class RandomCard(Bot):
    """Plays a random legal card. This is the smallest possible bot."""

    def choose(self, view: View) -> Card:
        """Choose at random. `self.chance` makes the choice repeatable with a seed."""
        return self.chance.choice(view.legal_cards)


class Greedy(Bot):
    """Plays the card that is best in the current trick, as if the round ended with it.

    It uses no random numbers. Leagues measure the luck of a deal with this bot, so its play must never change.
    """

    def choose(self, view: View) -> Card:
        """Choose the legal card after which the kingdom scores most; of equal cards the lowest."""
        return max(view.legal_cards, key=lambda card: (worth_of_card(view, card), -card.value))


def worth_of_card(view: View, card: Card) -> int:
    """Return the points of the own kingdom if the trick ended with this card."""
    trick = (*view.trick, card)
    own, winner = len(view.trick), winner_of(trick)  # indexes in the order played
    sections, farmers = view.kingdoms[view.seat or 0]
    gained = min(farmers_gained(trick, winner)[own], view.supply)
    kingdom = Kingdom(sections, min(MOST_FARMERS, farmers + gained))
    if winner == own:
        kingdom = lay(kingdom, default_order(trick))
    return score_kingdom(kingdom)


class HalfGreedy(Greedy):
    """Plays as `greedy` does in half of all moves, and a random legal card in the others."""

    def choose(self, view: View) -> Card:
        """Choose at random in half of the moves."""
        if self.chance.random() < 0.5:
            return self.chance.choice(view.legal_cards)
        return super().choose(view)


PLAN: Final = (8, 8, 16)
"""Number of deals: eight for all legal cards, eight more for the better half of them, and so on."""

WHIM: Final = 7.0
"""How much the simulated players deviate from leading high and following low; 0 means not at all."""

COLOUR_COUNT: Final = 5
HAND_SIZE: Final = 10
COLOUR: Final = [card // 9 for card in CARDS]
VALUE: Final = [card % 9 for card in CARDS]

STRENGTH: Final = [[2 * card.value + (COLOUR[card] == led) for card in CARDS] for led in range(COLOUR_COUNT)]
"""The strength of each card, by the colour led. The strongest card wins the trick, of equal ones the first."""

FARMERS: Final = [[farmers_gained((best, card), 0)[best is not card] for card in CARDS] for best in CARDS]
"""The farmers that each card brings its player, by the card that wins the trick."""

STANDING: Final = [farmers_by_section(farmers) for farmers in range(MOST_FARMERS + 1)]

STAFFED: Final = [
    sum(score_section(section, CARDS[1], own) == 1 for section, own in enumerate(farmers))
    for farmers in STANDING
]
"""Number of sections, from the left, that have all their farmers and score their tops, by the number of farmers."""

BESIDE_TOPS: Final = [
    [
        sum(
            score_section(section, CARDS[0] if section < opened else None, own)
            for section, own in enumerate(farmers)
        )
        for opened in range(COLOUR_COUNT + 1)
    ]
    for farmers in STANDING
]
"""The points without the tops (as -5 for a missing farmer), by the numbers of farmers and of sections with cards."""


class Counting(Bot):
    """Plays the card that is best on average over many sampled deals that are consistent with its view.

    A played card is gone, and a seat that did not follow a colour has none of it. Apart from that the other seats may hold
    any cards. In each of some dozens of such deals the bot plays the rest of the round with each of its legal cards. So it
    needs no rules of thumb for farmers, tops and tricks to come: the points at the end of the round include them.

    A move plays about a hundred rounds, so everything is numbers in tables. A card is 9 x colour + value. Where
    `seatwise_fast` is compiled, it plays the same deals, ten times as fast.
    """

    def choose(self, view: View) -> Card:
        """Choose the card with the most points. After each part of the plan the worse half of the cards drops out."""
        points = dict.fromkeys(view.legal_cards, 0)
        table = self.model_round(view)
        for deals in PLAN:
            if len(points) == 1:
                break
            for card, gained in zip(points, table.play_deals(deals, tuple(points)), strict=True):
                points[card] += gained
            best_first = sorted(points, key=points.__getitem__, reverse=True)
            points = {card: points[card] for card in best_first[: max(2, (len(points) + 1) // 2)]}
        table.close()
        return max(points, key=points.__getitem__)

    def model_round(self, view: View) -> RoundModel:
        """Return the model in which the deals are played out."""
        return RoundModel(view, self.chance)


class RoundModel:
    """The round as one seat knows it, and simulations of its rest."""

    def __init__(self, view: View, chance: Random) -> None:
        self._chance = chance
        self._view = view
        self._compiled: Any = None
        self._seat = view.seat or 0
        self._lands = Lands(view, self._seat)
        self._missing = missing_colours(view)
        seen = {*view.hand, *view.trick, *(card for trick in view.tricks for card in trick.cards)}
        self._unseen = [card for card in CARDS if card not in seen]
        others = [seat for seat in range(len(view.hand_sizes)) if seat != self._seat]
        self._others = sorted(others, key=lambda seat: -len(self._missing[seat]))
        """The other seats. Those with the most missing colours are dealt first, before others take the cards that fit."""

    def play_deals(self, deals: int, cards: Sequence[Card]) -> list[int]:
        """Sample so many deals, and return what each card is worth in all of them."""
        if self._compiled is None and type(self._chance) is Random and is_sound(self._view):
            compiled = find_compiled_deals()
            self._compiled = compiled and compiled(
                self._view, self._others, self._unseen, self._chance, sum(PLAN)
            )
        if self._compiled:
            return [self.worth_of(points) for points in self._compiled.play(deals, cards, WHIM)]
        worth = dict.fromkeys(cards, 0)
        for _ in range(deals):
            hands = self.sample_hands()
            for card in cards:
                worth[card] += self.play_out(hands, card)
        return list(worth.values())

    def worth_of(self, points: Sequence[int]) -> int:
        """Return what the points by seat are worth to the own seat."""
        return points[self._seat]

    def close(self) -> None:
        """End the deals, so that the random numbers go on behind them."""
        if self._compiled:
            self._compiled.close()

    def sample_hands(self) -> list[list[Card]]:
        """Sample the hands by seat. Each hand is sorted from the card that it follows with first."""
        hands = [list(self._view.hand)] * len(self._view.hand_sizes)
        pool = self._unseen
        self._chance.shuffle(pool)
        for seat in self._others:
            size, missing = self._view.hand_sizes[seat], self._missing[seat]
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

    def may_hold(self, hands: Sequence[list[Card]]) -> bool:
        """Return whether no hand has a colour that its seat has shown to miss. A sampled one may at a dead end."""
        return all(COLOUR[card] not in self._missing[seat] for seat in self._others for card in hands[seat])

    def play_out(self, hands: Sequence[list[Card]], card: Card) -> int:
        """Return the points of the round for the own seat if it plays this card now and all seats have these hands."""
        me, leader, lands = self._seat, int(self._view.leader), self._lands.copy()
        hands = [hand.copy() for hand in hands]
        hands[me].remove(card)
        trick = [*self._view.trick, card]
        while True:
            complete_trick(trick, leader, hands)
            best = max(trick, key=STRENGTH[COLOUR[trick[0]]].__getitem__)
            mine = trick[me - leader]  # a negative index counts from the end, as seats do
            lands.farmers += FARMERS[best][mine]
            leader = (leader + trick.index(best)) % len(hands)
            if leader == me:
                lands.lay_trick(trick)
            if not hands[leader]:
                return lands.score_round()
            trick = [hands[leader].pop()]


@cache
def find_compiled_deals() -> Any:
    """Return the class that plays deals compiled; `None` where it is not there, or older than this module."""
    if sys.byteorder != "little" or not is_search_installed():
        return None
    try:
        return import_module("seatwise_fast.counted_deals").CountedDeals
    except ImportError:
        return None


def is_sound(view: View) -> bool:
    """Return whether the hands of a view fit together. The compiled part takes no others, because it checks nothing."""
    seats, played = len(view.hand_sizes), len(view.trick)
    sizes = [view.hand_sizes[(view.leader + place) % seats] for place in range(seats)]
    size = len(view.hand)
    return (
        (view.leader + played) % seats == view.seat
        and size <= HAND_SIZE
        and sizes == [size - 1] * played + [size] * (seats - played)
        and set(view.legal_cards) <= set(view.hand)
    )


def complete_trick(trick: list[Card], leader: int, hands: Sequence[list[Card]]) -> None:
    """Let all other seats play to the trick: the first card that follows, or else the first card of all."""
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
    """Return by seat the colours that it cannot have, because it did not follow them in this round."""
    missing: list[set[int]] = [set() for _ in view.hand_sizes]
    tricks = [(trick.leader, trick.cards) for trick in view.tricks]
    for leader, cards in (*tricks, (view.leader, view.trick)):
        for place, card in enumerate(cards):
            if card.colour is not cards[0].colour:
                missing[(leader + place) % len(missing)].add(COLOUR[cards[0]])
    return missing


class Lands:
    """The parts of a kingdom that score: its tops and its farmers."""

    __slots__ = ("farmers", "most", "section", "tops")

    def __init__(self, view: View, seat: int) -> None:
        sections, self.farmers = view.kingdoms[seat]
        self.most = min(MOST_FARMERS, self.farmers + view.supply)
        self.tops = [VALUE[stack[-1]] for stack in sections if stack]
        self.section = [-1] * COLOUR_COUNT
        """The section of each colour; -1 if it has none."""
        for number, stack in enumerate(sections):
            if stack:
                self.section[COLOUR[stack[0]]] = number

    def copy(self) -> Lands:
        """Return a copy for another simulation."""
        other = Lands.__new__(Lands)
        other.farmers, other.most = self.farmers, self.most
        other.tops, other.section = self.tops.copy(), self.section.copy()
        return other

    def lay_trick(self, trick: list[Card]) -> None:
        """Lay a trick: the highest card of each colour on top, the colour with the highest top first."""
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

    def score_round(self) -> int:
        """Return the points of the round if it ended now."""
        farmers = min(self.farmers, self.most)
        return sum(self.tops[: STAFFED[farmers]]) + BESIDE_TOPS[farmers][len(self.tops)]


class CountingAhead(Counting):
    """Plays the card with the largest lead on average: its own points, less the mean of the other seats."""

    def model_round(self, view: View) -> RoundModel:
        """Return a model that keeps the lands of every seat."""
        return LeadModel(view, self.chance)


class LeadModel(RoundModel):
    """The round as one seat knows it, and simulations of its rest that score every seat."""

    def __init__(self, view: View, chance: Random) -> None:
        super().__init__(view, chance)
        self._all_lands = [Lands(view, seat) for seat in range(len(view.hand_sizes))]

    def play_out(self, hands: Sequence[list[Card]], card: Card) -> int:
        """Return the lead at the end of the round, times the number of the other seats, so that it is a whole number."""
        return self.worth_of(self.play_out_all(hands, card))

    def worth_of(self, points: Sequence[int]) -> int:
        """Return the lead that these points by seat are, times the number of the other seats."""
        return points[self._seat] * len(points) - sum(points)

    def play_out_all(self, hands: Sequence[list[Card]], card: Card) -> list[int]:
        """Return the points of the round by seat if the own seat plays this card now and all seats have these hands."""
        leader, lands = int(self._view.leader), [each.copy() for each in self._all_lands]
        hands = [hand.copy() for hand in hands]
        hands[self._seat].remove(card)
        trick = [*self._view.trick, card]
        while True:
            complete_trick(trick, leader, hands)
            best = max(trick, key=STRENGTH[COLOUR[trick[0]]].__getitem__)
            gains = FARMERS[best]
            for place, played in enumerate(trick, start=leader - len(hands)):
                lands[place].farmers += gains[played]
            leader = (leader + trick.index(best)) % len(hands)
            lands[leader].lay_trick(trick)
            if not hands[leader]:
                return [each.score_round() for each in lands]
            trick = [hands[leader].pop()]


HOME_LIMIT_MS = 1000
"""The time limit of `search-time` at a local table, where no time runs out: that of a casual queue."""


class Searching(Greedy):
    """Plays the card that a search with the compiled rules prefers (IS-MCTS over deals that the view allows); if other searches leave it no time, the one that `greedy` prefers."""

    iterations: ClassVar[int | None] = None
    """The number of iterations; `None` searches for half of the time limit."""

    def choose(self, view: View) -> Card:
        """Search, as far as time allows."""
        if len(view.legal_cards) == 1:
            return view.legal_cards[0]
        seed = self.chance.getrandbits(64)
        with SEARCH_LIMIT.take_slot(self.longest_s()) as seconds:
            if seconds is None:
                return super().choose(view)
            return self.search(view, seconds, seed)

    def longest_s(self) -> float:
        """Return half of the time limit, in seconds; 0 if there is none."""
        limit_ms = self.time.move_ms or (HOME_LIMIT_MS if self.iterations is None else 0)
        return limit_ms / 2000

    def search(self, view: View, seconds: float, seed: int) -> Card:
        """Search for at most so many seconds; 0 for no limit."""
        from seatwise_fast import search_card

        return search_card(view, self.iterations, seconds, seed).card


class Search500(Searching):
    """Searches with 500 iterations."""

    iterations = 500


class Search2000(Searching):
    """Searches with 2,000 iterations."""

    iterations = 2000


class SearchTime(Searching):
    """Searches for half of the time limit."""
