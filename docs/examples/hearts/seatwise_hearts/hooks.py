"""Hearts with all that people see: the page of the rules, the drawing, a sentence for each move, and the house bots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from seatwise_hearts.bots import HOUSE_BOTS
from seatwise_hearts.rules import QUEEN, RANKS, SEATS, HeartsRules, Trick, count_taken, sort_cards

SIGNS: Final = {"C": "♣", "D": "♦", "H": "♥", "S": "♠"}
RANK_NAMES: Final = {"T": "ten", "J": "jack", "Q": "queen", "K": "king", "A": "ace"}
SUIT_NAMES: Final = {"C": "clubs", "D": "diamonds", "H": "hearts", "S": "spades"}
COUNTED: Final = {1: "a point", 0: "no points"}

RULES: Final = """\
# Hearts

Hearts is for four. Each card of hearts that you take costs a point, and the **queen of spades** costs 13. The fewest points win.

## A hand

1. Each seat is dealt 13 cards.
2. Each seat **passes three cards**: in the first hand to the left, in the second to the right, in the third across. In the fourth
   hand nobody passes, and then it begins again. All pass at the same time.
3. The **two of clubs** leads the first trick.
4. Follow suit if you can. Otherwise play any card, but no heart and no queen of spades on the first trick, unless you have nothing
   else.
5. The highest card of the suit that was led takes the trick and leads the next one. There is no trump.
6. **Lead no heart before hearts are broken**, unless you have nothing else. They are broken by the first heart that is played, and
   by the queen of spades.

## Points

- A heart costs 1 point, and the queen of spades 13: 26 in each hand.
- **Shooting the moon**: if you take all 26, they cost you nothing, and each other seat 26.

A match has four hands. Points are counted below zero, so the highest number wins.

## Moves

A move is a card: its rank, one of `23456789TJQKA`, and its suit, one of `CDHS`. To pass three cards takes three moves.

## Options

- `hands`: 1 to 8 hands in a match.
- `passing`: `rotate` as above, `drawn` by chance for each hand, or always `left`, `across`, `right` or `hold`.
- `queen_breaks_hearts`: `no` if only a heart breaks hearts.
- `jack_of_diamonds`: `yes` if the jack of diamonds gives its taker 10 points back.
"""


class Hearts(HeartsRules):
    """Hearts, as a server hosts it."""

    rules = RULES
    house_bots = HOUSE_BOTS

    def draw(self, view: Any, seat: int | None) -> list[dict[str, Any]]:
        """Draw the trick on the table, and at each seat its card of the trick, its hand and its points."""
        trick = find_trick(view)
        texts = [f"Hand {view['number']} of {view['options']['hands']}: {describe_phase(view)}"]
        drawn: list[dict[str, Any]] = [{"text": text} for text in texts]
        drawn.append({"zone": describe_zone(view), "cards": draw_trick(trick)})
        for each in range(SEATS):
            points = -view["penalties"][each] * (view["phase"] != "over") - sum(
                result[each] for result in view["results"]
            )
            drawn.append({"counter": "Points", "owner": each, "value": points})
            drawn.append({"counter": "Taken in this hand", "owner": each, "value": view["penalties"][each]})
            plays = [draw_card(trick.plays[each])] if each in trick.plays else []
            drawn.append({"zone": "Plays", "owner": each, "cards": plays})
            drawn.append({"zone": "Hand", "owner": each, "cards": draw_hand(view, each, seat)})
        return drawn

    def narrate(self, before: Any, move: Any, mover: int | None, after: Any) -> str:
        """Tell what was played and who took the trick. The view has the card, so the sentence needs no `move`."""
        if before["phase"] == "pass":
            return (
                f"All have passed three cards {name_direction(before)}." if after["phase"] == "play" else ""
            )
        trick = find_trick(after)
        said = f"{{{mover}}} plays the {name_card(trick.cards[-1])}"
        said += (
            "." if before["is_broken"] or not breaks(before, trick.cards[-1]) else ", and hearts are broken."
        )
        if len(trick.cards) < SEATS:
            return said
        cost = cost_of(trick, after)
        said += f" {{{trick.winner}}} takes the trick and {COUNTED.get(cost, f'{cost} points')}."
        if len(after["results"]) > len(before["results"]):
            said += " " + describe_result(before, after["results"][-1], trick)
        return said


def find_trick(view: Any) -> Trick:
    """Return the newest trick: that of this hand, or the last one of the hand before."""
    shown = view["tricks"][-1] if view["tricks"] else view["last"]
    return Trick(shown["leader"], tuple(shown["cards"])) if shown else Trick(0, ())


def cost_of(trick: Trick, view: Any) -> int:
    """Return the penalty points in a trick."""
    return sum(count_taken([trick], -10 if view["options"]["jack_of_diamonds"] == "yes" else 0))


def breaks(view: Any, card: str) -> bool:
    """Return whether a card breaks hearts."""
    return card[1] == "H" or (card == QUEEN and view["options"]["queen_breaks_hearts"] == "yes")


def describe_phase(view: Any) -> str:
    """Return a sentence on where the hand stands."""
    if view["phase"] == "over":
        return "the match is over."
    if view["phase"] == "pass":
        return f"each seat passes three cards {name_direction(view)}."
    return "hearts are broken." if view["is_broken"] else "hearts are not broken."


def name_direction(view: Any) -> str:
    """Return where the cards are passed, in words."""
    return "across" if view["direction"] == "across" else f"to the {view['direction']}"


def describe_zone(view: Any) -> str:
    """Return the name of the trick on the table."""
    return f"Trick {len(view['tricks'])}" if view["tricks"] else "Last trick of the hand before"


def draw_trick(trick: Trick) -> list[dict[str, Any]]:
    """Draw the cards in the order of play, and mark the one that takes them."""
    return [
        {**draw_card(card), "marked": True} if trick.plays[trick.winner] == card else draw_card(card)
        for card in trick.cards
    ]


def draw_hand(view: Any, owner: int, seat: int | None) -> list[dict[str, Any]]:
    """Draw the audience's own hand with the cards marked that it passes, and the backs of any other hand."""
    if owner != seat:
        return [{"face": "down"}] * int(view["cards"][owner])
    marked = view["passed"] if view["phase"] == "pass" else view["received"] if not view["tricks"] else []
    return [
        draw_card(card) | ({"marked": True} if card in marked else {}) for card in sort_cards(view["hand"])
    ]


def draw_card(card: str) -> dict[str, Any]:
    """Draw one card face up."""
    rank = "10" if card[0] == "T" else card[0]
    colour = "red" if card[1] in "DH" else "black"
    return {"text": rank + SIGNS[card[1]], "colour": colour, "rank": RANKS.index(card[0])}


def name_card(card: str) -> str:
    """Return a card in words, as in "queen of spades"."""
    return f"{RANK_NAMES.get(card[0], card[0])} of {SUIT_NAMES[card[1]]}"


def describe_result(before: Any, result: Sequence[int], trick: Trick) -> str:
    """Return a sentence on the result of a hand: the view before the last trick has what was taken until then."""
    taken = list(before["penalties"])
    taken[trick.winner] += cost_of(trick, before)
    shooters = [seat for seat in range(SEATS) if result[seat] < taken[seat]]
    if shooters:
        return f"{{{shooters[0]}}} shoots the moon!"
    return f"The hand costs {', '.join(list_costs(result))}."


def list_costs(result: Sequence[int]) -> Iterator[str]:
    """Yield what the hand costs each seat that pays."""
    for seat, cost in enumerate(result):
        if cost:
            yield f"{{{seat}}} {cost}"
