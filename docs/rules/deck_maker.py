"""Makes the house's decks. Every run makes the same decks.

    .venv/bin/python docs/rules/deck_maker.py > referee/seatwise_referee/games/ubongo/house_decks.py

The published rule of `club-1` and `master-1`, for the 36 sides of one round:

1. A side has six different symbols: those that the sides before it have least often. A shuffle decides between equals.
   So each kind of symbol is there equally often, to within one.
2. A second shuffle puts them into their places. If the side equals one before it, also after a half turn, both shuffles
   are done again with the next attempt.
3. This makes one candidate. Of 200 candidates the one is taken whose cards are most even: the number of ways in which a
   card fits beside the others has the least variance, as a part of its squared mean. Of equal ones the first is taken.

All shuffles follow from the deck's name and from labels that anybody can read here. Without the third step, one card
in a deck may lead to seven cards twice as often as another.

`house-1` is older and has one candidate: its symbols are drawn without a look at the sides before, and one of them is there twice
where there are only five kinds. Different symbols on a side leave less to the luck of the deal. With eight kinds, 86 hands in 100 can
be solved. It is 72 if the symbols of a side are drawn independently (means of ten decks of each sort).
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from itertools import combinations, count
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.games.ubongo.cards import CARDS, SYMBOLS_PER_SIDE, Symbols, deck_of_round, texts_of_deck
from seatwise_referee.games.ubongo.geometry import Placement, fitting_beside
from seatwise_referee.shuffle import shuffle_items

if TYPE_CHECKING:
    from collections.abc import Sequence

CANDIDATES: Final = 200
"""The number of candidates for each round."""


class DeckRecipe(NamedTuple):
    """All that decides a deck."""

    name: str

    kinds: tuple[int, ...]
    """The number of kinds of symbols in each round. More kinds fit less often."""

    chosen: tuple[int, ...]
    """The number of the candidate that step 3 takes, by round, from 1; empty for `house-1`."""

    @property
    def seed(self) -> bytes:
        """The seed of all shuffles."""
        return sha256(f"seatwise ubongo {self.name}".encode()).digest()


HOUSE_1: Final = DeckRecipe("house-1", kinds=(5, 5, 6, 6, 7, 8), chosen=())
RECIPES: Final = (
    DeckRecipe("club-1", kinds=(8, 8, 8, 9, 9, 9), chosen=(77, 166, 142, 51, 186, 143)),
    DeckRecipe("master-1", kinds=(9, 9, 9, 10, 10, 10), chosen=(92, 106, 123, 132, 196, 93)),
)


def make_candidate(recipe: DeckRecipe, round_number: int, candidate: int | None) -> list[Symbols]:
    """Return the 36 sides of a candidate for a round (steps 1 and 2); without a number, of `house-1`."""
    sides: list[Symbols] = []
    uses: Counter[str] = Counter()
    path = f"{round_number}" if candidate is None else f"{round_number}/{candidate}"
    for card in texts_of_deck(deck_of_round(round_number)):
        tries = (_make_side(recipe, round_number, f"{path}/{card}/{attempt}", uses) for attempt in count(1))
        sides.append(next(side for side in tries if side not in sides and side[::-1] not in sides))
        if candidate is not None:
            uses.update(sides[-1])
    return sides


def _make_side(recipe: DeckRecipe, round_number: int, label: str, uses: Counter[str]) -> Symbols:
    kinds = ascii_uppercase[: recipe.kinds[round_number - 1]]
    order = sorted(shuffle_items(kinds, recipe.seed, f"symbols/{label}"), key=uses.__getitem__)
    pieces = order[:SYMBOLS_PER_SIDE]
    if not recipe.chosen:  # a symbol may be there twice
        pieces = [f"{symbol}{place}" for place, symbol in enumerate((order * 2)[:SYMBOLS_PER_SIDE])]
    return "".join(piece[0] for piece in shuffle_items(pieces, recipe.seed, f"places/{label}"))


def count_fits(sides: Sequence[Symbols]) -> list[int]:
    """Return for each side in how many ways it fits beside the other sides."""
    fits = [0] * len(sides)
    for one, other in combinations(range(len(sides)), 2):
        middle = Placement(CARDS[one], 0, 0, 0)
        ways = sum(1 for _ in fitting_beside(middle, sides[one], CARDS[other], sides[other]))
        fits[one] += ways
        fits[other] += ways
    return fits


def choose_candidate(recipe: DeckRecipe, round_number: int) -> int:
    """Return the number of the candidate whose cards are most even (step 3). Takes seconds."""
    return min(
        range(1, CANDIDATES + 1),
        key=lambda candidate: _unevenness(count_fits(make_candidate(recipe, round_number, candidate))),
    )


def _unevenness(numbers: Sequence[int]) -> float:
    """Return the mean square of the numbers, divided by their squared mean."""
    return len(numbers) * sum(number**2 for number in numbers) / sum(numbers) ** 2


def make_sides(recipe: DeckRecipe) -> list[list[Symbols]]:
    """Return the sides of a deck by round."""
    chosen = recipe.chosen or (None,) * len(recipe.kinds)
    return [make_candidate(recipe, number, candidate) for number, candidate in enumerate(chosen, start=1)]


def module_text() -> str:
    """Return the text of the module that holds the decks."""
    lines = [
        '"""The sides of the house\'s decks, as `docs/rules/deck_maker.py` writes them; do not edit."""',
        "",
        "from typing import Final",
        "",
        "HOUSE_SIDES: Final = {",
    ]
    for recipe in (HOUSE_1, *RECIPES):
        lines.append(f'    "{recipe.name}": (')
        for sides in make_sides(recipe):
            text = "".join(sides)
            lines += [f'        "{text[first : first + 72]}"' for first in range(0, len(text), 72)]
            lines[-1] += ","
        lines.append("    ),")
    return "\n".join([*lines, "}", '"""By deck and round, the 36 sides with six symbols each."""', ""])


if __name__ == "__main__":
    print(module_text(), end="")
