"""One seat's kingdom: how cards and farmers get there, and what they are worth."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.games.ugo.cards import VALUES_PER_COLOUR, UgoCard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FARMER_PLACES: Final = (0, 0, 2, 3, 4)
"""The places for farmers in the sections A to E (U23)."""

PRINTED_POINTS: Final = (0, 0, 1, 3, 5)
"""The points of each section with all its farmers and no cards (U29)."""

MOST_FARMERS: Final = sum(FARMER_PLACES)
"""How many farmers a kingdom has room for."""
MISSING_FARMER: Final = -5
"""The points for each empty place in a section that has cards."""


class Kingdom(NamedTuple):
    """The cards that one seat has laid, and its farmers."""

    sections: tuple[tuple[UgoCard, ...], ...] = ((),) * 5
    """The sections A to E, each a stack of one colour from bottom to top (U3)."""

    farmers: int = 0
    """Number of farmers. They fill C (2 places), then D (3), then E (4), whether cards lie there or not (U23, U26)."""

    @property
    def tops(self) -> tuple[UgoCard | None, ...]:
        """The top card of each section, which counts; `None` for an empty section."""
        return tuple(stack[-1] if stack else None for stack in self.sections)


EMPTY_KINGDOM: Final = Kingdom()


def lay(kingdom: Kingdom, cards: Iterable[UgoCard]) -> Kingdom:
    """Lay cards in a kingdom, one by one (U15 to U19).

    Each card goes on top of its colour's stack, or opens the next free section from the left (U17, U18). Sections fill
    without gaps, so this is the first section that has its colour or is free.

    Args:
        kingdom: The kingdom before.
        cards: The cards in the order in which they are laid.

    Returns:
        The kingdom after. The given one is unchanged.

    Example:
        >>> from seatwise.ugo import Card
        >>> lay(Kingdom(), [Card(3), Card(4), Card(10)]).tops
        (R4, B1, None, None, None)
    """
    sections = list(kingdom.sections)
    for card in cards:
        colour, place = card // VALUES_PER_COLOUR, 0
        while sections[place] and sections[place][0] // VALUES_PER_COLOUR != colour:
            place += 1
        sections[place] += (card,)
    return Kingdom(tuple(sections), kingdom.farmers)


def has_choice(kingdom: Kingdom, won: Sequence[UgoCard]) -> bool:
    """Return whether the order of laying matters: two new colours, or two cards of one colour (U18, U19).

    Args:
        kingdom: The kingdom of the winner.
        won: The cards of the trick that it has won.

    Returns:
        True if two orders give different kingdoms. Only then is the winner asked for an order.

    Example:
        >>> from seatwise.ugo import Card
        >>> has_choice(Kingdom(), [Card.parse("R3"), Card.parse("B5")])
        True
    """
    colours = {card // VALUES_PER_COLOUR for card in won}
    if len(colours) < len(won):
        return True
    colours.difference_update(stack[0] // VALUES_PER_COLOUR for stack in kingdom.sections if stack)
    return len(colours) > 1


def default_order(won: Iterable[UgoCard]) -> tuple[UgoCard, ...]:
    """Return the order in which the referee lays cards by default.

    The highest card of each colour goes on top. The colour with the highest top comes first; the order of colours
    breaks ties.

    Args:
        won: The cards to lay, in any order.

    Returns:
        The same cards in the order in which they are laid.

    Example:
        >>> from seatwise.ugo import Card
        >>> default_order([Card.parse(text) for text in ("K0", "R4", "K6", "B4")])
        (K0, K6, R4, B4)
    """
    rising = sorted(won)
    # The highest card of each colour stays, because it comes last. The sort is stable, so colours stay together.
    top = {card // VALUES_PER_COLOUR: card % VALUES_PER_COLOUR for card in rising}
    return tuple(sorted(rising, key=lambda card: -top[card // VALUES_PER_COLOUR]))


@cache
def farmers_by_section(farmers: int) -> tuple[int, ...]:
    """Return how many farmers each section has: they fill the places from the left (U23).

    Args:
        farmers: The number of farmers of a seat, 0 to 9.

    Returns:
        The number of farmers in each of the sections A to E.

    Example:
        >>> farmers_by_section(4)
        (0, 0, 2, 2, 0)
    """
    standing = []
    for places in FARMER_PLACES:
        standing.append(min(farmers, places))
        farmers -= standing[-1]
    return tuple(standing)


def score_section(section: int, top: UgoCard | None, farmers: int) -> int:
    """Return the points of one section (U27 to U30).

    Args:
        section: The section, 0 for A to 4 for E.
        top: Its top card; `None` if it is empty.
        farmers: The number of farmers in it.

    Returns:
        The points, which may be negative.

    Example:
        >>> from seatwise.ugo import Card
        >>> score_section(2, Card.parse("R7"), farmers=2), score_section(2, Card.parse("R7"), farmers=0)
        (7, -10)
    """
    missing = FARMER_PLACES[section] - farmers
    if top is None:
        return 0 if missing else PRINTED_POINTS[section]
    return MISSING_FARMER * missing if missing else top.value


def score_kingdom(kingdom: Kingdom) -> int:
    """Return the points of a kingdom at the end of a round (U27 to U31).

    Args:
        kingdom: The kingdom.

    Returns:
        The points, which may be negative.

    Example:
        >>> from seatwise.ugo import Card
        >>> score_kingdom(Kingdom((((Card.parse("R7")),), (), (), (), ()), farmers=9))
        16
    """
    return sum(map(score_section, range(5), kingdom.tops, farmers_by_section(kingdom.farmers)))
