"""House bots for heads-up hold'em. Each level is a function: it gets the view of its seat, its listed moves, and chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from seatwise.hosting import Chance
from seatwise_holdem.rules import BLINDS, DECK

RANKS: Final = "23456789TJQKA"
KINDS: Final = (
    "high card", "a pair", "two pairs", "three of a kind", "a straight", "a flush", "a full house", "four of a kind",
    "a straight flush",
)  # fmt: skip
"""The kinds of hands, the weakest first."""

SAMPLES: Final = 60
"""How often `count_chances` deals the hidden cards for a move."""


def call_gladly(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "beginner": call, and at times raise for no reason."""
    is_glad: bool = chance.draw_outcome([(True, 1), (False, 5)])
    raises = [move for move in moves if move.startswith("raise")][:2]
    return raises[-1] if raises and is_glad else "call"


def bet_on_strength(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "club": raise with a strong hand, call with a fair one, fold any other. It never bluffs, and looks at no odds."""
    own, board = view["hole"], view["board"]
    if not board:
        worth = rate_hole(own)
        level = 2 if worth >= 9 else 1 if worth >= 5 else 0
    else:
        kind, *ranks = rate_hand([*own, *board])
        gain = kind - rate_hand(board)[0]
        is_high = kind == 1 and ranks[0] >= max(RANKS.index(card[0]) for card in board)
        level = 2 if gain and (kind > 1 or is_high) else 1 if gain else 0
    if level == 2:
        return pick_raise(view, moves, 1.0) if view["bets"][view["seat"]] < 40 * BLINDS[1] else "call"
    return "call" if not view["owed"] or (level == 1 and 2 * view["owed"] <= view["pot"]) else "fold"


def count_chances(view: Any, moves: Sequence[str], chance: Chance) -> str:
    """Level "master": estimate the chance to win against hands that fit the bets, and compare it with the price of each move."""
    share = estimate_share(view, chance)
    owed, pot = view["owed"], view["pot"]
    if share > 0.62 + 0.06 * count_raises(view):
        return pick_raise(view, moves, 1.0 if share > 0.8 else 0.6)
    if not owed:
        is_bluff = share < 0.35 and len(view["moves"]) > 1 and chance.draw_outcome([(True, 1), (False, 3)])
        return pick_raise(view, moves, 0.6) if is_bluff else "call"
    return "call" if share > owed / (pot + owed) + 0.04 else "fold"


def count_raises(view: Any) -> int:
    """Return how often the other seat has raised in this hand."""
    return sum(move != "call" and seat != view["seat"] for street in view["moves"] for seat, move in street)


def pick_raise(view: Any, moves: Sequence[str], share: float) -> str:
    """Return the listed raise that is nearest to this share of the pot; a call where none is listed."""
    wanted = max(view["bets"]) + share * (view["pot"] + view["owed"])
    raises = [move for move in moves if move.startswith("raise")]
    return min(raises, key=lambda move: abs(int(move.split()[1]) - wanted), default="call")


def estimate_share(view: Any, chance: Chance) -> float:
    """Return the share of the pot that these cards win on average, against hands that are as good as the bets say."""
    board = view["board"]
    known = {*view["hole"], *board}
    deck = [card for card in DECK if card not in known]
    least = (0, 4, 6, 7)[min(3, count_raises(view))]
    won, counted = 0.0, 0
    for _ in range(SAMPLES):
        left = list(deck)
        picks = [
            chance.draw_outcome((place, 1) for place in range(len(deck) - taken))
            for taken in range(7 - len(board))
        ]
        cards = [left.pop(place) for place in picks]
        hole, whole = cards[:2], [*board, *cards[2:]]
        own, other = rate_hand([*view["hole"], *whole]), rate_hand([*hole, *whole])
        weight = 4 if rate_hole(hole) >= least or fits_board(hole, board) else 1
        won += weight * (1.0 if own > other else 0.5 if own == other else 0.0)
        counted += weight
    return won / counted


def fits_board(hole: Sequence[str], board: Sequence[str]) -> bool:
    """Return whether a hole card pairs a card of the board."""
    return any(card[0] == other[0] for card in hole for other in board)


def rate_hole(hole: Sequence[str]) -> float:
    """Return what two hole cards are worth by Chen's formula: from -1 for 7-2 to 20 for two aces."""
    high, low = sorted((RANKS.index(card[0]) for card in hole), reverse=True)
    worth = {12: 10.0, 11: 8.0, 10: 7.0, 9: 6.0}.get(high, (high + 2) / 2)
    if high == low:
        return max(5.0, 2 * worth)
    gap = high - low - 1
    worth += 2 if hole[0][1] == hole[1][1] else 0
    return worth - (0, 1, 2, 4)[gap] + (gap < 2 and high < 10) if gap < 4 else worth - 5


def rate_hand(cards: Iterable[str]) -> tuple[int, ...]:
    """Return the kind of the best five cards and their ranks: the higher tuple wins. Pokerkit decides the pots, not this."""
    cards = list(cards)
    ranks = sorted((RANKS.index(card[0]) for card in cards), reverse=True)
    groups = sorted(((count, rank) for rank, count in Counter(ranks).items()), reverse=True)
    suit, count = Counter(card[1] for card in cards).most_common(1)[0]
    flush = (
        sorted((RANKS.index(card[0]) for card in cards if card[1] == suit), reverse=True) if count > 4 else []
    )
    if (top := find_straight(flush)) is not None:
        return 8, top
    if groups[0][0] == 4:
        return 7, groups[0][1], max(rank for rank in ranks if rank != groups[0][1]) if len(groups) > 1 else -1
    if groups[0][0] == 3 and len(groups) > 1 and groups[1][0] > 1:
        return 6, groups[0][1], max(rank for number, rank in groups[1:] if number > 1)
    if flush:
        return 5, *flush[:5]
    if (top := find_straight(ranks)) is not None:
        return 4, top
    if groups[0][0] == 2 and len(groups) > 1 and groups[1][0] == 2:
        pairs = [groups[0][1], groups[1][1]]
        return 2, *pairs, *[rank for rank in ranks if rank not in pairs][:1]
    kind = {3: 3, 2: 1, 1: 0}[groups[0][0]]
    others = [rank for rank in ranks if rank != groups[0][1]]
    return kind, groups[0][1], *others[: 5 - groups[0][0]]


def find_straight(ranks: Sequence[int]) -> int | None:
    """Return the highest rank of the best straight; None if there is none. The ace is low, too."""
    held = {*ranks, *([-1] if RANKS.index("A") in ranks else [])}
    return next((top for top in range(12, 2, -1) if all(top - step in held for step in range(5))), None)


HOUSE_BOTS: Final = {"beginner": call_gladly, "club": bet_on_strength, "master": count_chances}
"""The levels, the weakest first."""
