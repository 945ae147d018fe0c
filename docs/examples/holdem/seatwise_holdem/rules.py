"""The rules of heads-up no-limit hold'em: 100 hands of 20,000 chips, with blinds of 50 and 100.

Pokerkit plays each hand: its `NoLimitTexasHoldem` says who is to bet, which amounts are legal, and who wins the pot. "ACPC" names the
rules of the Annual Computer Poker Competition for this game, which OpenSpiel's `universal_poker` plays: the tests compare each
step with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pokerkit import Automation, NoLimitTexasHoldem

from seatwise.hosting import Chance, HostedGame, HostedOption

DECK: Final = tuple(rank + suit for rank in "23456789TJQKA" for suit in "cdhs")
SEATS: Final = 2
STACK: Final = 20_000
BLINDS: Final = (50, 100)
STREETS: Final = ("preflop", "flop", "turn", "river")
DEALT: Final = (0, 3, 4, 5)
"""The open cards on each street."""

LONGEST_HAND: Final = 2 + STACK // BLINDS[1] + 2 * len(STREETS)
"""The most moves of a hand: each raise adds a big blind or more, and each street can have two moves more."""

AUTOMATIONS: Final = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)
"""All that pokerkit does without being told. Cards are dealt, and bets made, by `play_hand`."""

RAISE: Final = re.compile(r"raise ([1-9][0-9]{0,4})")


class Deal(NamedTuple):
    """The cards of a hand, drawn before its first move: so a deal is the same for all matches with one seed, whatever is bet."""

    holes: tuple[tuple[str, ...], ...]
    """By seat."""
    board: tuple[str, ...]
    """All five cards; how many of them lie open is a matter of the street."""


class Hand(NamedTuple):
    """A hand after some moves, as pokerkit describes it."""

    button: int
    moves: tuple[tuple[str, ...], ...] = ((),)
    """By street."""
    movers: tuple[tuple[int, ...], ...] = ((),)
    """The seats that made them."""
    turn: int | None = None
    """The seat that is to move; None when the hand is over."""
    bets: tuple[int, ...] = (0, 0)
    """The chips that each seat has bet on this street."""
    stacks: tuple[int, ...] = (STACK, STACK)
    pot: int = 0
    """All chips that were bet in this hand."""
    owed: int = 0
    """The chips that it costs to call."""
    raises: tuple[int, int] | None = None
    """The least and the most that a bet may be raised to on this street; None if no raise is legal."""
    open_cards: int = 0
    net: tuple[int, ...] = ()
    """The chips that each seat has won, when the hand is over."""


class HoldemState(NamedTuple):
    """A state: never changed, always replaced."""

    hands: int
    """How many hands the match has."""
    deal: Deal
    hand: Hand
    results: tuple[tuple[int, ...], ...] = ()
    """The chips that each seat won in the hands that are over."""
    last: tuple[dict[str, Any], ...] = ()
    """The last two hands, as all may see them: a seat that is asked has been asked after the hand before them."""


class HoldemRules(HostedGame[HoldemState]):
    """Heads-up no-limit hold'em."""

    name = "holdem"
    title = "Heads-up no-limit hold'em"
    table_sizes = range(SEATS, SEATS + 1)
    most_moves = 100 * LONGEST_HAND
    options = {"hands": HostedOption(100, range(1, 101))}  # noqa: RUF012

    def start_match(self, seats: int, options: Mapping[str, Any], chance: Chance) -> HoldemState:
        """Deal the first hand. Seat 0 has the button."""
        return deal_hand(HoldemState(options["hands"], Deal((), ()), Hand(0)), chance)

    def find_turn(self, state: HoldemState) -> int | None:
        """The button bets first before the flop, and last after it (ACPC; pokerkit)."""
        return state.hand.turn

    def list_moves(self, state: HoldemState) -> list[str]:
        """List fold, call, and some raises: the least, half the pot, the pot, twice the pot, all chips.

        Any other amount between the least and the most is legal too. "fold" comes first where a seat must pay to stay, and
        "call" elsewhere, where it costs nothing and is a check. To fold without need is not legal (ACPC).
        """
        hand = state.hand
        moves = ["fold", "call"] if hand.owed else ["call"]
        if hand.raises is None:
            return moves
        least, most = hand.raises
        called, pot = max(hand.bets), hand.pot + hand.owed
        sizes = {min(max(called + share, least), most) for share in (0, pot // 2, pot, 2 * pot, STACK)}
        return moves + [f"raise {size}" for size in sorted(sizes)]

    def check_move(self, state: HoldemState, seat: int, move: Any) -> str:
        """A raise names the amount to which the bet of this street is raised: at least by as much as the last raise (pokerkit)."""
        if move in self.list_moves(state):
            return ""
        if state.hand.raises is None:
            return 'no raise is legal here: "call", or "fold" if there is a bet to call'
        least, most = state.hand.raises
        found = RAISE.fullmatch(move) if type(move) is str else None
        if found and least <= int(found[1]) <= most:
            return ""
        return f'"call", "fold" if there is a bet to call, or "raise N" with N from {least} to {most}'

    def play_move(self, state: HoldemState, move: str, chance: Chance) -> HoldemState:
        """Bet. When a hand is over, the chips are counted, the stacks are full again, and the button moves on."""
        before = state.hand
        assert before.turn is not None
        moves = (*before.moves[:-1], (*before.moves[-1], move))
        movers = (*before.movers[:-1], (*before.movers[-1], before.turn))
        hand = play_hand(state.deal, before.button, moves, movers)
        state = state._replace(hand=hand)
        if hand.turn is not None:
            return state
        number = len(state.results) + 1
        last = (*state.last, describe_hand(state, number))[-2:]
        state = state._replace(results=(*state.results, hand.net), last=last)
        return state if number == state.hands else deal_hand(state, chance)

    def show_state(self, state: HoldemState, seat: int | None) -> dict[str, Any]:
        """Show a seat its own cards. After a showdown both hands lie open in `last`; after a fold none does."""
        hand = state.hand
        shown: dict[str, Any] = {
            "number": len(state.results) + (hand.turn is not None),
            "hands": state.hands,
            "button": hand.button,
            "street": STREETS[len(hand.moves) - 1],
            "board": list(state.deal.board[: hand.open_cards]),
            "turn": hand.turn,
            "pot": hand.pot,
            "bets": list(hand.bets),
            "stacks": list(hand.stacks),
            "owed": hand.owed,
            "raises": list(hand.raises) if hand.raises else None,
            "moves": show_moves(hand),
            "points": self.count_points(state),
            "last": list(state.last),
        }
        if seat is not None:
            shown |= {"seat": seat, "hole": list(state.deal.holes[seat])}
        return shown

    def count_points(self, state: HoldemState) -> list[int]:
        """Count the chips that each seat has won."""
        return [sum(result[seat] for result in state.results) for seat in range(SEATS)]

    def resample_state(self, state: HoldemState, seat: int | None, chance: Chance) -> HoldemState:
        """Deal the other seat's cards and the cards that do not lie open again. A hand that is over keeps its result."""
        holes, board = state.deal
        known = {*board[: state.hand.open_cards], *(holes[seat] if seat is not None else ())}
        deck = iter(chance.shuffle_items(card for card in DECK if card not in known))
        drawn = tuple(hole if each == seat else (next(deck), next(deck)) for each, hole in enumerate(holes))
        board = tuple(card if card in known else next(deck) for card in board)
        return state._replace(deal=Deal(drawn, board))


def deal_hand(state: HoldemState, chance: Chance) -> HoldemState:
    """Deal the next hand with a new deck. The button moves from hand to hand (ACPC)."""
    deck = chance.shuffle_items(DECK)
    deal = Deal((tuple(deck[:2]), tuple(deck[2:4])), tuple(deck[4:9]))
    return state._replace(deal=deal, hand=play_hand(deal, len(state.results) % SEATS, ((),), ((),)))


def play_hand(
    deal: Deal, button: int, moves: tuple[tuple[str, ...], ...], movers: tuple[tuple[int, ...], ...]
) -> Hand:
    """Let pokerkit play a hand from its first move. Pokerkit's second player has the button, and pays the small blind."""
    order = (1 - button, button)
    game = NoLimitTexasHoldem.create_state(AUTOMATIONS, True, 0, BLINDS, BLINDS[1], STACK, SEATS)
    for seat in order:
        game.deal_hole("".join(deal.holes[seat]))
    open_cards = 0
    for move in (move for street in moves for move in street):
        if move == "fold":
            game.fold()
        elif move == "call":
            game.check_or_call()
        else:
            game.complete_bet_or_raise_to(int(move.removeprefix("raise ")))
        while game.can_burn_card():
            game.burn_card("??")
            upto = DEALT[DEALT.index(open_cards) + 1]
            game.deal_board("".join(deal.board[open_cards:upto]))
            open_cards = upto
    turn = None if game.actor_index is None else order[game.actor_index]
    if turn is not None and DEALT.index(open_cards) == len(moves):  # this move has ended the street
        moves, movers = (*moves, ()), (*movers, ())
    least, most = (
        game.min_completion_betting_or_raising_to_amount,
        game.max_completion_betting_or_raising_to_amount,
    )
    stacks = tuple(int(game.stacks[order.index(seat)]) for seat in range(SEATS))
    net = tuple(int(game.payoffs[order.index(seat)]) for seat in range(SEATS))
    return Hand(
        button, moves, movers, turn,
        bets=tuple(int(game.bets[order.index(seat)]) for seat in range(SEATS)),
        stacks=stacks,
        pot=int(game.total_pot_amount),
        owed=0 if turn is None else int(game.checking_or_calling_amount or 0),
        raises=None if least is None or most is None else (int(least), int(most)),
        open_cards=open_cards,
        net=() if turn is not None else net,
    )  # fmt: skip


def describe_hand(state: HoldemState, number: int) -> dict[str, Any]:
    """Return a hand that is over, as all may see it. The cards are open after a showdown alone."""
    is_folded = state.hand.moves[-1][-1] == "fold"
    return {
        "number": number,
        "button": state.hand.button,
        "moves": show_moves(state.hand),
        "board": list(state.deal.board[: state.hand.open_cards]),
        "holes": None if is_folded else [list(hole) for hole in state.deal.holes],
        "net": list(state.hand.net),
    }


def show_moves(hand: Hand) -> list[list[list[Any]]]:
    """Return by street the seats and their moves."""
    return [
        [[seat, move] for seat, move in zip(seats, moves, strict=True)]
        for seats, moves in zip(hand.movers, hand.moves, strict=True)
    ]
