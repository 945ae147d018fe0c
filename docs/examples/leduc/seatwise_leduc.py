"""Leduc hold'em, a small poker for two seats: an example of a game from outside.

The deck has two jacks, two queens and two kings. Each seat antes one chip and gets one card. After a round of betting one
card is laid open, and a second round follows. A pair with the open card wins, else the higher card.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from seatwise.hosting import Chance, HostedGame

DECK = "JJQQKK"
RANKS = "JQK"
RAISES = (2, 4)  # what a raise adds, by round of betting
MOST_RAISES = 2  # in one round of betting


class LeducState(NamedTuple):
    """A state: never changed, always replaced."""

    hands: tuple[str, str]
    board: str  # the open card; empty in the first round of betting
    paid: tuple[int, int]  # the chips that each seat has put into the pot
    rounds: tuple[tuple[str, ...], ...]  # the moves of each round of betting
    folded: int | None = None


def call_or_raise(view: Any, moves: list[Any], chance: Chance) -> Any:
    """Raise with a king or a pair, else call."""
    return moves[-1] if view["hand"] in ("K", view["board"]) else "call"


class Leduc(HostedGame[LeducState]):
    """The rules of Leduc hold'em."""

    name = "leduc"
    title = "Leduc hold'em"
    rules_version = "1"
    table_sizes = range(2, 3)
    free_ms = 1000
    house_bots: ClassVar = {"bold": call_or_raise}
    rules = """The deck has two jacks, two queens and two kings. Each seat antes one chip and gets one card.

After a round of betting one card is laid open, and a second round follows. A raise adds 2 chips in the first round and 4 in the second,
at most twice. A pair with the open card wins, else the higher card."""

    def start_match(self, seats: int, options: Any, chance: Chance) -> LeducState:
        """Deal one card to each seat."""
        first, second, *_ = chance.shuffle_items(DECK)
        return LeducState((first, second), "", (1, 1), ((),))

    def find_turn(self, state: LeducState) -> int | None:
        """The first seat opens each round of betting."""
        if state.folded is not None or (state.board and is_round_over(state.rounds[-1])):
            return None
        return len(state.rounds[-1]) % 2

    def list_moves(self, state: LeducState) -> list[str]:
        """A seat folds only when it must pay to stay, so the default move costs no chips."""
        fold = ["fold"] if state.paid[0] != state.paid[1] else []
        can_raise = state.rounds[-1].count("raise") < MOST_RAISES
        return [*fold, "call", *(["raise"] if can_raise else [])]

    def play_move(self, state: LeducState, move: str, chance: Chance) -> LeducState:
        """Move chips, and lay the open card when the first round of betting is over."""
        seat = self.find_turn(state)
        assert seat is not None
        if move == "fold":
            return state._replace(folded=seat)
        owed = max(state.paid) + (RAISES[len(state.rounds) - 1] if move == "raise" else 0)
        paid = (owed, state.paid[1]) if seat == 0 else (state.paid[0], owed)
        moves = (*state.rounds[-1], move)
        state = state._replace(paid=paid, rounds=(*state.rounds[:-1], moves))
        if not state.board and is_round_over(moves):
            board = chance.draw_outcome((rank, DECK.count(rank) - state.hands.count(rank)) for rank in RANKS)
            return state._replace(board=board, rounds=(moves, ()))
        return state

    def show_state(self, state: LeducState, seat: int | None) -> dict[str, Any]:
        """Show a seat its own card. A showdown shows both cards to everyone."""
        return {
            "hand": None if seat is None else state.hands[seat],
            "board": state.board,
            "paid": list(state.paid),
            "rounds": [list(moves) for moves in state.rounds],
            "showdown": list(state.hands) if self.is_showdown(state) else None,
        }

    def count_points(self, state: LeducState) -> list[int]:
        """The winner gets the other seat's chips; equal cards share."""
        worth = [strength_of(hand, state.board) for hand in state.hands]
        if state.folded is None and worth[0] == worth[1]:
            return [0, 0]
        loser = state.folded if state.folded is not None else worth.index(min(worth))
        lost = state.paid[loser]
        return [-lost, lost] if loser == 0 else [lost, -lost]

    def resample_state(self, state: LeducState, seat: int | None, chance: Chance) -> LeducState:
        """Draw again each card that the seat does not see."""
        if self.is_showdown(state):
            return state
        left = list(DECK)
        for seen in (state.board, *([] if seat is None else [state.hands[seat]])):
            if seen:
                left.remove(seen)
        drawn = iter(chance.shuffle_items(left))
        first, second = (hand if each == seat else next(drawn) for each, hand in enumerate(state.hands))
        return state._replace(hands=(first, second))

    def draw(self, view: Any, seat: int | None) -> list[dict[str, Any]]:
        """Draw each hand at its seat, and the pot and the open card between them."""
        hands = view["showdown"] or [view["hand"] if each == seat else None for each in (0, 1)]
        items: list[dict[str, Any]] = [
            {"zone": "Hand", "owner": each, "cards": [{"text": card} if card else {"face": "down"}]}
            for each, card in enumerate(hands)
        ]
        items += [{"counter": "Paid", "owner": each, "value": paid} for each, paid in enumerate(view["paid"])]
        opened = [{"text": view["board"], "colour": "red"}] if view["board"] else []
        return [
            {"zone": "Open card", "cards": opened},
            {"counter": "Pot", "value": sum(view["paid"])},
            *items,
        ]

    def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> str:
        """All moves lie open in the view, so the sentence needs no more than that."""
        betting = len(before["rounds"]) - 1
        said = {"fold": "folds", "raise": f"raises to {max(after['paid'])}", "call": "calls"}
        moves = after["rounds"][betting]
        opened = f" The open card is {after['board']}." if after["board"] != before["board"] else ""
        played = moves[-1] if len(moves) > len(before["rounds"][betting]) else "fold"
        return f"{{{mover}}} {said[played]}.{opened}"

    def is_showdown(self, state: LeducState) -> bool:
        """Return whether both cards are open."""
        return state.folded is None and self.find_turn(state) is None


def is_round_over(moves: tuple[str, ...]) -> bool:
    """Return whether both seats have moved, and the last one has called."""
    return len(moves) > 1 and moves[-1] == "call"


def strength_of(hand: str, board: str) -> int:
    """Return a higher number for a better hand."""
    return len(RANKS) if hand == board else RANKS.index(hand)
