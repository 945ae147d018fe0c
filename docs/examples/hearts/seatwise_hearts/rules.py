"""The rules of hearts for four seats.

"Rules" names https://hearts-online.org/rules.html, where each sentence can be read. "OpenSpiel" names the game `hearts` of
OpenSpiel and its parameters: the tests compare each hand with it, and where players differ, this game does as it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from seatwise.hosting import Chance, HostedGame, HostedOption

SUITS: Final = "CDHS"
RANKS: Final = "23456789TJQKA"
DECK: Final = tuple(rank + suit for rank in RANKS for suit in SUITS)
ORDER: Final = {card: (SUITS.index(card[1]), RANKS.index(card[0])) for card in DECK}
"""Where a card stands in a sorted hand."""

SEATS, PASSED = 4, 3
FIRST, QUEEN, JACK = "2C", "QS", "JD"

PENALTIES: Final = {**{rank + "H": 1 for rank in RANKS}, QUEEN: 13}
"""A heart is one point, the queen of spades 13 (Rules, "Scoring")."""

DIRECTIONS: Final = {"hold": 0, "left": 1, "across": 2, "right": 3}
"""To which seat the cards are passed, counted from the own one. Play goes to the left: to the next higher seat."""

ROTATION: Final = ("left", "right", "across", "hold")
"""The directions of four hands in turn (Rules, "Passing cards")."""


class Trick(NamedTuple):
    """The cards of a trick, in the order of play."""

    leader: int
    cards: tuple[str, ...]

    @property
    def winner(self) -> int:
        """The seat with the highest card of the suit that was led takes the trick (Rules, "Taking a trick")."""
        led = [card for card in self.cards if card[1] == self.cards[0][1]]
        return (self.leader + self.cards.index(max(led, key=ORDER.__getitem__))) % SEATS

    @property
    def plays(self) -> dict[int, str]:
        """The cards by seat."""
        return {(self.leader + place) % SEATS: card for place, card in enumerate(self.cards)}


class HeartsState(NamedTuple):
    """A state: never changed, always replaced."""

    options: Mapping[str, Any]
    direction: str
    """Where the cards of this hand are passed."""
    hands: tuple[tuple[str, ...], ...]
    passed: tuple[tuple[str, ...], ...] = ((),) * SEATS
    """The cards that each seat passes in this hand. They stay in its hand until all have chosen."""
    tricks: tuple[Trick, ...] = ()
    """The tricks of this hand; the last one may be incomplete."""
    results: tuple[tuple[int, ...], ...] = ()
    """The penalty points of the hands that are over, by seat."""
    last: Trick | None = None
    """The last trick of the hand before."""

    @property
    def is_over(self) -> bool:
        """Whether all hands are over."""
        return bool(len(self.results) == self.options["hands"])

    @property
    def jack(self) -> int:
        """The penalty points for the jack of diamonds (OpenSpiel, `jd_bonus`)."""
        return -10 if self.options["jack_of_diamonds"] == "yes" else 0

    @property
    def is_passing(self) -> bool:
        """Whether the seats choose cards to pass."""
        return self.direction != "hold" and len(self.passed[0]) < PASSED

    @property
    def is_broken(self) -> bool:
        """Hearts are broken by a heart, and by the queen of spades too unless an option says no (OpenSpiel, `qs_breaks_hearts`)."""
        queen_breaks = self.options["queen_breaks_hearts"] == "yes"
        played = (card for trick in self.tricks for card in trick.cards)
        return any(card[1] == "H" or (queen_breaks and card == QUEEN) for card in played)


class HeartsRules(HostedGame[HeartsState]):
    """Hearts: who takes the fewest penalty points wins."""

    name = "hearts"
    title = "Hearts"
    table_sizes = range(SEATS, SEATS + 1)
    options = {  # noqa: RUF012
        "hands": HostedOption(4, range(1, 9)),
        "passing": HostedOption("rotate", ("rotate", "drawn", "left", "across", "right", "hold")),
        "queen_breaks_hearts": HostedOption("yes", ("yes", "no")),
        "jack_of_diamonds": HostedOption("no", ("no", "yes")),
    }

    def start_match(self, seats: int, options: Mapping[str, Any], chance: Chance) -> HeartsState:
        """Deal the first hand."""
        return deal_hand(HeartsState(dict(options), "hold", ()), chance)

    def find_turn(self, state: HeartsState) -> int | list[int] | None:
        """All pass at once. The holder of the two of clubs leads first, then the winner of each trick (Rules)."""
        if state.is_over:
            return None
        if state.is_passing:
            return list(range(SEATS))
        if not state.tricks:
            return next(seat for seat, hand in enumerate(state.hands) if FIRST in hand)
        trick = state.tricks[-1]
        return trick.winner if len(trick.cards) == SEATS else (trick.leader + len(trick.cards)) % SEATS

    def list_choices(self, state: HeartsState, seat: int) -> list[str]:
        """A seat passes three of its cards, one after the other (OpenSpiel), so that a move is always a card."""
        return list(without(state.hands[seat], *state.passed[seat]))

    def list_moves(self, state: HeartsState) -> list[str]:
        """Return the cards that may be played.

        - The two of clubs opens the hand (Rules, "Starting a hand").
        - Follow the suit that was led if you can (Rules, "Starting a hand").
        - No heart and no queen of spades goes on the first trick (Rules, "Starting a hand"), unless there is nothing else
          (OpenSpiel, `no_pts_on_first_trick`).
        - Lead no heart before hearts are broken, unless there is nothing else (Rules, "Broken hearts").
        """
        seat = self.find_turn(state)
        assert isinstance(seat, int)
        hand = list(state.hands[seat])
        trick = state.tricks[-1] if state.tricks else None
        if trick is None:
            return [FIRST]
        if len(trick.cards) == SEATS:
            return hand if state.is_broken else [card for card in hand if card[1] != "H"] or hand
        if following := [card for card in hand if card[1] == trick.cards[0][1]]:
            return following
        if len(state.tricks) == 1:
            return [card for card in hand if card[1] != "H" and card != QUEEN] or hand
        return hand

    def play_choices(self, state: HeartsState, moves: Mapping[int, str], chance: Chance) -> HeartsState:
        """Lay a card of each seat aside. The third ones complete the pass, and the seats take up what they get."""
        passed = tuple((*cards, moves[seat]) for seat, cards in enumerate(state.passed))
        state = state._replace(passed=passed)
        if state.is_passing:
            return state
        kept = [without(hand, *aside) for hand, aside in zip(state.hands, passed, strict=True)]
        came = [passed[seat - DIRECTIONS[state.direction]] for seat in range(SEATS)]
        return state._replace(hands=tuple(sort_cards(kept[seat] + came[seat]) for seat in range(SEATS)))

    def play_move(self, state: HeartsState, move: str, chance: Chance) -> HeartsState:
        """Play a card. The last one of a hand counts the points, and deals the next hand."""
        seat = next(seat for seat, hand in enumerate(state.hands) if move in hand)
        hands = tuple(without(hand, move) for hand in state.hands)
        if not state.tricks or len(state.tricks[-1].cards) == SEATS:
            tricks = (*state.tricks, Trick(seat, (move,)))
        else:
            *before, trick = state.tricks
            tricks = (*before, Trick(trick.leader, (*trick.cards, move)))
        state = state._replace(hands=hands, tricks=tricks)
        if any(hands):
            return state
        state = state._replace(results=(*state.results, score_hand(tricks, state.jack)))
        return state if state.is_over else deal_hand(state, chance)

    def show_state(self, state: HeartsState, seat: int | None) -> dict[str, Any]:
        """Show a seat its own hand, and the cards that it has passed and received. The tricks are open to all."""
        shown: dict[str, Any] = {
            "phase": "over" if state.is_over else "pass" if state.is_passing else "play",
            "number": min(len(state.results) + 1, state.options["hands"]),
            "options": dict(state.options),
            "direction": state.direction,
            "cards": [len(hand) for hand in state.hands],
            "tricks": [show_trick(trick) for trick in state.tricks],
            "last": None if state.last is None else show_trick(state.last),
            "is_broken": state.is_broken,
            "penalties": list(count_taken(state.tricks, state.jack)),
            "results": [list(result) for result in state.results],
        }
        if seat is not None:
            received = () if state.is_passing else state.passed[seat - DIRECTIONS[state.direction]]
            shown |= {"seat": seat, "hand": list(state.hands[seat])}
            shown |= {"passed": list(sort_cards(state.passed[seat])), "received": list(sort_cards(received))}
        return shown

    def count_points(self, state: HeartsState) -> list[int]:
        """A penalty point is a point lost."""
        return [-sum(result[seat] for result in state.results) for seat in range(SEATS)]

    def resample_state(self, state: HeartsState, seat: int | None, chance: Chance) -> HeartsState:
        """Deal the hidden cards again, so that no seat has a card that its plays exclude."""
        known = [{*hand} if each == seat else set() for each, hand in enumerate(state.hands)]
        if seat is not None and not state.is_passing:
            taker = (seat + DIRECTIONS[state.direction]) % SEATS
            known[taker] |= {*state.hands[taker]} & {*state.passed[seat]}
        if not state.tricks and not state.is_passing:  # the holder is to lead, so everybody knows it
            known = [seen | ({*hand} & {FIRST}) for seen, hand in zip(known, state.hands, strict=True)]
        hidden = [{*hand} - seen for hand, seen in zip(state.hands, known, strict=True)]
        deck = chance.shuffle_items(sort_cards(card for cards in hidden for card in cards))
        dealt = deal_hidden(deck, [len(cards) for cards in hidden], find_limits(state))
        hands = [(*sort_cards(seen), *drawn) for seen, drawn in zip(known, dealt, strict=True)]
        passed = list(state.passed)
        for giver in range(SEATS):
            taker = (giver + DIRECTIONS[state.direction]) % SEATS
            if giver != seat and (state.is_passing or taker != seat) and passed[giver]:
                played = [trick.plays[taker] for trick in state.tricks if taker in trick.plays]
                drawn = [*hands[giver]] if state.is_passing else [*played, *hands[taker]]
                passed[giver] = tuple(drawn[-len(passed[giver]) :])
        return state._replace(hands=tuple(map(sort_cards, hands)), passed=tuple(passed))


def deal_hand(state: HeartsState, chance: Chance) -> HeartsState:
    """Deal thirteen cards to each seat. "drawn" draws the direction, as OpenSpiel does."""
    passing = state.options["passing"]
    if passing == "drawn":
        passing = chance.draw_outcome((direction, 1) for direction in DIRECTIONS)
    elif passing == "rotate":
        passing = ROTATION[len(state.results) % len(ROTATION)]
    deck = chance.shuffle_items(DECK)
    hands = tuple(sort_cards(deck[seat::SEATS]) for seat in range(SEATS))
    last = state.tricks[-1] if state.tricks else None
    return HeartsState(state.options, passing, hands, results=state.results, last=last)


def count_taken(tricks: Iterable[Trick], jack: int) -> tuple[int, ...]:
    """Return the penalty points that each seat has taken in the complete tricks."""
    taken = [0] * SEATS
    for trick in tricks:
        if len(trick.cards) == SEATS:
            taken[trick.winner] += sum(
                PENALTIES.get(card, jack if card == JACK else 0) for card in trick.cards
            )
    return tuple(taken)


def score_hand(tricks: tuple[Trick, ...], jack: int) -> tuple[int, ...]:
    """A seat that takes all hearts and the queen shoots the moon: 26 points off for it, 26 more for the others (Rules)."""
    taken, plain, whole = count_taken(tricks, jack), count_taken(tricks, 0), sum(PENALTIES.values())
    if whole not in plain:
        return taken
    return tuple(each + (-whole if plain[seat] else whole) for seat, each in enumerate(taken))


def find_limits(state: HeartsState) -> list[set[str]]:
    """Return the cards that each seat may still have, by what it has played."""
    limits = [set(DECK) for _ in range(SEATS)]
    for number, trick in enumerate(state.tricks):
        led = trick.cards[0][1]
        if led == "H" and not state._replace(tricks=state.tricks[:number]).is_broken:
            limits[trick.leader] &= {card for card in DECK if card[1] == "H"}
        for seat, card in trick.plays.items():
            if card[1] != led:
                limits[seat] -= {other for other in DECK if other[1] == led}
                if number == 0 and (card[1] == "H" or card == QUEEN):
                    limits[seat] &= {other for other in DECK if other[1] == "H" or other == QUEEN}
    return limits


def deal_hidden(cards: list[str], sizes: list[int], limits: list[set[str]]) -> list[list[str]]:
    """Give each seat so many of the cards within its limits. A card that fits nowhere takes the place of another, which moves on."""
    dealt: list[list[str]] = [[] for _ in sizes]

    def place(card: str, tried: set[int]) -> bool:
        fitting = [seat for seat in range(SEATS) if card in limits[seat] and seat not in tried]
        for seat in fitting:
            if len(dealt[seat]) < sizes[seat]:
                dealt[seat].append(card)
                return True
        for seat in fitting:
            for other in dealt[seat]:
                if place(other, tried | {seat}):
                    dealt[seat][dealt[seat].index(other)] = card
                    return True
        return False

    for card in cards:
        if not place(card, set()):
            raise ValueError(f"no seat can hold {card}")
    return dealt


def show_trick(trick: Trick) -> dict[str, Any]:
    """Return a trick as JSON; its winner is None while it is incomplete."""
    winner = trick.winner if len(trick.cards) == SEATS else None
    return {"leader": trick.leader, "cards": list(trick.cards), "winner": winner}


def sort_cards(cards: Iterable[str]) -> tuple[str, ...]:
    """Return the cards by suit, then by rank."""
    return tuple(sorted(cards, key=ORDER.__getitem__))


def without(hand: tuple[str, ...], *cards: str) -> tuple[str, ...]:
    """Return the hand without these cards."""
    return tuple(card for card in hand if card not in cards)
