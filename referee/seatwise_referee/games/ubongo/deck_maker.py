"""Makes the house's deck. Every run makes the same deck.

    python -m seatwise_referee.games.ubongo.deck_maker > house_deck.py

A side has six different symbols, or one of them twice where there are only five kinds. The symbols and their places
are shuffled like cards, with a seed and labels that anybody can read here. If a side equals one before it, the label of
the next attempt is taken.

The symbols of a side are different because that leaves less to the luck of the deal. With eight kinds, 86 hands in 100
can be solved. It is 72 if the symbols of a side are drawn independently (means of ten decks of each sort).
"""

from __future__ import annotations

from hashlib import sha256
from itertools import count
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final

from seatwise_referee.games.ubongo.cards import DECKS, SYMBOLS_PER_SIDE, Symbols, deck_of_round, texts_of_deck
from seatwise_referee.shuffle import shuffle_items

if TYPE_CHECKING:
    from collections.abc import Iterator

DECK_NAME: Final = "house-1"
DECK_SEED: Final = sha256(b"seatwise ubongo house-1").digest()

SYMBOL_KINDS: Final = (5, 5, 6, 6, 7, 8)
"""The number of kinds of symbols in each round. Fewer kinds fit more often, so the rounds get harder."""

HANDS_SEARCHED: Final = 1000
SOLVABLE_HANDS: Final = (1000, 1000, 997, 1000, 991, 834)
"""How many of the searched hands of nine have a fitting layout of seven, by round.

`python -m seatwise.kits.ubongo.solver` counts them: the hands that seat 0 is dealt from the seeds 0 to 999, each as
32 bytes, big-endian. Every hand was searched to the end, so these numbers are exact.
"""


def faces_of_round(round_number: int) -> list[Symbols]:
    """Return the 36 sides of that round. No two are equal, not even after a half turn."""
    sides: list[Symbols] = []
    for card in texts_of_deck(deck_of_round(round_number)):
        tries = (
            _make_side(SYMBOL_KINDS[round_number - 1], f"{round_number}/{card}/{attempt}")
            for attempt in count(1)
        )
        sides.append(next(side for side in tries if side not in sides and side[::-1] not in sides))
    return sides


def _make_side(kinds: int, label: str) -> Symbols:
    """Return a side with as many different symbols as there can be."""
    order = shuffle_items(ascii_uppercase[:kinds], DECK_SEED, f"symbols/{label}")
    pieces = [f"{symbol}{place}" for place, symbol in enumerate((order * 2)[:SYMBOLS_PER_SIDE])]
    return "".join(piece[0] for piece in shuffle_items(pieces, DECK_SEED, f"places/{label}"))


def deck_text() -> str:
    """Return the text of the deck file."""
    return "\n".join((f"seatwise.ubongo-deck/1 {DECK_NAME}", *_header_lines(), *_card_lines())) + "\n"


def _header_lines() -> Iterator[str]:
    yield "# House data: the printed cards are not public, so these are our own."
    yield f"# Of {HANDS_SEARCHED} hands of nine cards, so many have a fitting layout of seven (each searched to the end):"
    for number, (kinds, solvable) in enumerate(zip(SYMBOL_KINDS, SOLVABLE_HANDS, strict=True), start=1):
        yield f"# round {number}: {kinds} kinds of symbols, {100 * solvable / HANDS_SEARCHED:5.1f} %"


def _card_lines() -> Iterator[str]:
    for deck in range(1, DECKS + 1):
        fronts, backs = faces_of_round(2 * deck - 1), faces_of_round(2 * deck)
        for text, front, back in zip(texts_of_deck(deck), fronts, backs, strict=True):
            yield f"{text} {front} {back}"


def module_text() -> str:
    """Return the text of the module that holds the deck file."""
    return f'''"""The house's deck, as `deck_maker` writes it; do not edit."""

from typing import Final

HOUSE_DECK_TEXT: Final = """\\
{deck_text()}"""
'''


if __name__ == "__main__":
    print(module_text(), end="")
