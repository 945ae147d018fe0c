"""House bots for hearts. Each level is a function: it gets the view of its seat, its legal moves, and chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from seatwise.hosting import Chance
from seatwise_hearts.rules import (
    DECK,
    DIRECTIONS,
    FIRST,
    JACK,
    PENALTIES,
    QUEEN,
    RANKS,
    SEATS,
    HeartsState,
    Trick,
    deal_hidden,
    find_limits,
)

RANK: Final = {card: RANKS.index(card[0]) for card in DECK}
WORLDS: Final = 8
"""How often `count_chances` deals the hidden cards for each of its moves."""


def play_anything(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "beginner": any legal card."""
    return chance.draw_outcome((move, 1) for move in moves)


def play_safely(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "club": pass the dangerous cards, stay below the trick if possible, and throw away what hurts."""
    if view["phase"] == "pass":
        return max(moves, key=lambda card: rate_danger(card, view["hand"]))
    gone = {card for trick in view["tricks"] for card in trick["cards"]}
    return choose_card(moves, open_trick(view).cards, QUEEN in gone)


def count_chances(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "master": deal the hidden cards some times, let all play each deal safely, and take the card that costs least."""
    if view["phase"] == "pass" or len(moves) == 1:
        return play_safely(view, moves, chance)
    costs = dict.fromkeys(moves, 0)
    for _ in range(WORLDS):
        hands = deal_world(view, chance)
        for move in moves:
            taken = Playout(view, [list(hand) for hand in hands]).finish(move)
            costs[move] += 3 * taken[view["seat"]] - sum(taken)
    return min(moves, key=lambda move: (costs[move], RANK[move]))


def rate_danger(card: str, hand: Sequence[str]) -> int:
    """Return how gladly a card is passed. High spades are dangerous only with few small ones to guard them."""
    spades = sum(each[1] == "S" for each in hand)
    if card[1] == "S":
        return 60 + RANK[card] if RANK[card] >= RANK[QUEEN] and spades < 6 else -20
    few = sum(each[1] == card[1] for each in hand)
    return 2 * RANK[card] + (6 if card[1] == "H" else 0) + (8 - 2 * few if few < 4 else 0)


def choose_card(legal: Sequence[str], trick: Sequence[str], queen_gone: bool) -> str:
    """Return the card that is safe by rules of thumb."""
    if len(legal) == 1:
        return legal[0]
    if not trick:
        return min(legal, key=lambda card: RANK[card] + lead_risk(card, queen_gone))
    led = trick[0][1]
    if legal[0][1] != led:
        return max(legal, key=lambda card: RANK[card] + discard_worth(card, queen_gone))
    high = max(RANK[card] for card in trick if card[1] == led)
    below = [card for card in legal if RANK[card] < high]
    if QUEEN in below:
        return QUEEN
    if below:
        return max(below, key=RANK.__getitem__)
    others = [card for card in legal if card != QUEEN]
    if len(trick) == SEATS - 1 or (len(trick) > 1 and not any(card in PENALTIES for card in trick)):
        return max(others, key=RANK.__getitem__)
    return min(others, key=RANK.__getitem__)


def lead_risk(card: str, queen_gone: bool) -> int:
    """Return what makes a card worse to lead than its rank says."""
    if card == QUEEN:
        return 40
    return 30 if card[1] == "S" and RANK[card] > RANK[QUEEN] and not queen_gone else 0


def discard_worth(card: str, queen_gone: bool) -> int:
    """Return what makes a card better to throw away than its rank says."""
    if card == QUEEN:
        return 40
    if card[1] == "S" and RANK[card] > RANK[QUEEN] and not queen_gone:
        return 25
    return 12 if card[1] == "H" else 0


def open_trick(view: Any) -> Trick:
    """Return the trick that is being played; one without cards if the seat is to lead."""
    if view["tricks"] and view["tricks"][-1]["winner"] is None:
        return Trick(view["tricks"][-1]["leader"], tuple(view["tricks"][-1]["cards"]))
    return Trick(view["seat"], ())


def deal_world(view: Any, chance: Chance) -> list[list[str]]:
    """Return hands of all seats that could be the true ones."""
    seat, tricks = view["seat"], tuple(Trick(each["leader"], tuple(each["cards"])) for each in view["tricks"])
    state = HeartsState(view["options"], view["direction"], (), tricks=tricks)
    played = {card for trick in tricks for card in trick.cards}
    known: list[list[str]] = [[] for _ in range(SEATS)]
    known[(seat + DIRECTIONS[view["direction"]]) % SEATS] = [
        card for card in view["passed"] if card not in played
    ]
    known[seat] = view["hand"]
    seen = played.union(*known)
    hidden = chance.shuffle_items(card for card in DECK if card not in seen)
    sizes = [count - len(cards) for count, cards in zip(view["cards"], known, strict=True)]
    dealt = deal_hidden(hidden, sizes, find_limits(state))
    return [[*cards, *drawn] for cards, drawn in zip(known, dealt, strict=True)]


class Playout:
    """The rest of one hand, played by `choose_card` at all seats. It is quicker than the rules, and no part of them."""

    def __init__(self, view: Any, hands: list[list[str]]) -> None:
        """Begin where the view stands, with these hands."""
        self.hands = hands
        trick = open_trick(view)
        self.leader, self.cards = trick.leader, list(trick.cards)
        played = [card for each in view["tricks"] for card in each["cards"]]
        self.count, self.is_broken, self.queen_gone = len(played), view["is_broken"], QUEEN in played
        self.queen_breaks = view["options"]["queen_breaks_hearts"] == "yes"
        self.worth = dict(PENALTIES) | ({JACK: -10} if view["options"]["jack_of_diamonds"] == "yes" else {})
        self.taken = list(view["penalties"])

    def finish(self, move: str) -> list[int]:
        """Play this card and all others; return the penalty points by seat."""
        self.play(move)
        while self.count < len(DECK):
            hand = self.hands[(self.leader + len(self.cards)) % SEATS]
            self.play(choose_card(self.list_legal(hand), self.cards, self.queen_gone))
        whole = sum(PENALTIES.values())
        if whole in self.taken:
            return [0 if each == whole else whole for each in self.taken]
        return self.taken

    def list_legal(self, hand: list[str]) -> list[str]:
        """Return the cards that may be played from a hand."""
        if self.cards:
            return [card for card in hand if card[1] == self.cards[0][1]] or (
                [card for card in hand if card not in PENALTIES] or hand if self.count < SEATS else hand
            )
        if self.count == 0:
            return [FIRST]
        return hand if self.is_broken else [card for card in hand if card[1] != "H"] or hand

    def play(self, card: str) -> None:
        """Play one card."""
        self.hands[(self.leader + len(self.cards)) % SEATS].remove(card)
        self.cards.append(card)
        self.count += 1
        if card[1] == "H" or (card == QUEEN and self.queen_breaks):
            self.is_broken = True
        self.queen_gone = self.queen_gone or card == QUEEN
        if len(self.cards) == SEATS:
            self.leader = Trick(self.leader, tuple(self.cards)).winner
            self.taken[self.leader] += sum(self.worth.get(each, 0) for each in self.cards)
            self.cards = []


HOUSE_BOTS: Final = {"beginner": play_anything, "club": play_safely, "master": count_chances}
"""The levels, the weakest first."""
