"""Hold'em with all that people see: the page of the rules, the drawing, a sentence for each move, and the house bots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from seatwise_holdem.bots import HOUSE_BOTS, KINDS, rate_hand
from seatwise_holdem.rules import DEALT, SEATS, STREETS, HoldemRules

NO_HOLES: Final = (None, None)
SIGNS: Final = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}

RULES: Final = """\
# Heads-up no-limit hold'em

Two seats play 100 hands. In each hand both have **20,000 chips**, and the blinds are **50 and 100**. The points are the chips that a
seat has won in all hands.

## A hand

1. The seat with the **button** pays the small blind of 50, the other one the big blind of 100. The button moves on after each hand.
2. Each seat is dealt two cards that only it sees.
3. There are four rounds of betting: before the flop, after the flop of three open cards, after the turn of a fourth, and after the
   river of a fifth. The button bets first before the flop, and last in each later round.
4. A round ends when both have bet the same. Any number of raises is allowed.
5. If a seat folds, the other one takes the pot. Otherwise both show their cards, and the best five of seven cards win. Equal hands share
   the pot.

From the lowest to the highest, the hands are: high card, a pair, two pairs, three of a kind, a straight, a flush, a full house, four of
a kind, a straight flush.

## Moves

- `fold` gives up the hand. It is legal only if there is a bet to call.
- `call` pays what is owed. It is a check if nothing is owed.
- `raise 250` raises the own bet of this round to 250 chips. The least is the last raise on top of the last bet, or 100, and the most is
  all chips. A view lists some amounts, and **any whole number between the least and the most is legal**.

## Options

- `hands`: 1 to 100 hands in a match.
"""


class Holdem(HoldemRules):
    """Hold'em, as a server hosts it."""

    rules = RULES
    house_bots = HOUSE_BOTS

    def draw(self, view: Any, seat: int | None) -> list[dict[str, Any]]:
        """Draw the open cards and the pot on the table, and at each seat its cards, bet, stack and points."""
        is_over = view["turn"] is None
        shown = view["last"][-1] if is_over else view
        drawn: list[dict[str, Any]] = [
            {"text": f"Hand {shown['number']} of {view['hands']}, {view['street']}"},
            {
                "zone": "Board",
                "cards": draw_cards(shown["board"]) + [{"face": "down"}] * (5 - len(shown["board"])),
            },
            {"counter": "Pot", "value": view["pot"]},
        ]
        before = None if is_over or not view["last"] else view["last"][-1]
        if before and before["board"]:
            drawn.append({"zone": "Board before", "cards": draw_cards(before["board"])})
        for each in range(SEATS):
            hole = view["hole"] if each == seat else (shown.get("holes") or NO_HOLES)[each]
            name = "Hand, button" if each == view["button"] else "Hand"
            drawn.append({"zone": name, "owner": each, "cards": draw_hole(hole)})
            drawn.append({"counter": "Bet", "owner": each, "value": view["bets"][each]})
            drawn.append({"counter": "Stack", "owner": each, "value": view["stacks"][each]})
            drawn.append({"counter": "Points", "owner": each, "value": view["points"][each]})
            if before:
                drawn.append(
                    {
                        "zone": "Hand before",
                        "owner": each,
                        "cards": draw_hole((before["holes"] or NO_HOLES)[each]),
                    }
                )
                drawn.append({"counter": "Won then", "owner": each, "value": before["net"][each]})
        return drawn

    def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> str:
        """Tell the move, and what came of it. All moves lie open, so the sentence needs no `move`."""
        is_over = after["number"] != before["number"] or after["turn"] is None
        hand = after["last"][-1] if is_over else after
        street = len(before["moves"]) - 1
        seat, made = hand["moves"][street][-1]
        said = f"{{{seat}}} {name_move(made, before)}."
        dealt = [name_card(card) for card in hand["board"][DEALT[street] :]]
        if dealt:
            said += (
                f" The {STREETS[street + 1] if len(dealt) < 4 - street else 'board'} is {' '.join(dealt)}."
            )
        return f"{said} {describe_last(hand)}" if is_over else said


def name_move(move: str, before: Any) -> str:
    """Return a move in words."""
    if move == "fold":
        return "folds"
    if move == "call":
        return f"calls {before['owed']}" if before["owed"] else "checks"
    amount = int(move.split()[1])
    all_in = " and is all in" if before["raises"] and amount == before["raises"][1] else ""
    return f"{'raises to' if max(before['bets']) else 'bets'} {amount}{all_in}"


def describe_last(hand: Any) -> str:
    """Return a sentence on the end of a hand."""
    won = max(hand["net"])
    if not won:
        return "Both share the pot."
    winner = hand["net"].index(won)
    if hand["holes"] is None:
        return f"{{{winner}}} wins {won}."
    kind = KINDS[rate_hand([*hand["holes"][winner], *hand["board"]])[0]]
    return f"{{{winner}}} wins {won} with {kind}."


def draw_hole(cards: Sequence[str] | None) -> list[dict[str, Any]]:
    """Draw two cards of a seat face up, or face down if they are not known."""
    return draw_cards(cards) if cards else [{"face": "down"}] * 2


def draw_cards(cards: Sequence[str]) -> list[dict[str, Any]]:
    """Draw cards face up."""
    return [{"text": name_card(card), "colour": "red" if card[1] in "dh" else "black"} for card in cards]


def name_card(card: str) -> str:
    """Return a card as people write it, as in "10♥"."""
    return f"{'10' if card[0] == 'T' else card[0]}{SIGNS[card[1]]}"
