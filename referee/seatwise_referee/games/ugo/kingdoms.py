"""One seat's lands: how cards and farmers come to lie there, and what they are worth."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seatwise_referee.games.ugo.cards import VALUES, Card

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FARMER_PLACES: Final = (0, 0, 2, 3, 4)
"""By section, A to E (U23)."""

PRINTED_POINTS: Final = (0, 0, 1, 3, 5)
"""By section: what it is worth with all its farmers and no cards (U29)."""

FULL: Final = sum(FARMER_PLACES)
MISSING_FARMER: Final = -5


class Kingdom(NamedTuple):
    """One seat's lands."""

    sections: tuple[tuple[Card, ...], ...] = ((),) * 5
    """A to E in that order, each a stack of one colour from bottom to top (U3)."""

    farmers: int = 0
    """They fill C (2 places), then D (3), then E (4), before cards lie there or after (U23, U26)."""

    @property
    def tops(self) -> tuple[Card | None, ...]:
        """The card that counts in each section; `None` where none lies."""
        return tuple(stack[-1] if stack else None for stack in self.sections)


EMPTY: Final = Kingdom()


def lay(kingdom: Kingdom, cards: Iterable[Card]) -> Kingdom:
    """The kingdom after these cards were laid, one by one (U15 to U19).

    Each goes on top of its colour's stack, or opens the next free section from the left (U17, U18).
    Sections fill without gaps, so that is the first one of its colour or free.
    """
    sections = list(kingdom.sections)
    for card in cards:
        colour, place = card // VALUES, 0
        while sections[place] and sections[place][0] // VALUES != colour:
            place += 1
        sections[place] += (card,)
    return Kingdom(tuple(sections), kingdom.farmers)


def has_choice(kingdom: Kingdom, won: Sequence[Card]) -> bool:
    """Whether two orders of laying differ: two new colours, or two cards of one colour (U18, U19)."""
    colours = {card // VALUES for card in won}
    if len(colours) < len(won):
        return True
    colours.difference_update(stack[0] // VALUES for stack in kingdom.sections if stack)
    return len(colours) > 1


def default_order(won: Iterable[Card]) -> tuple[Card, ...]:
    """Highest on top, the colour with the highest top first, ties in the order of colours."""
    rising = sorted(won)
    top = {card // VALUES: card % VALUES for card in rising}  # the last of a colour stays: its highest
    return tuple(sorted(rising, key=lambda card: -top[card // VALUES]))  # stable, so colours stay together


@cache
def farmers_by_section(farmers: int) -> tuple[int, ...]:
    """Where they stand: always on the leftmost empty place (U23)."""
    standing = []
    for places in FARMER_PLACES:
        standing.append(min(farmers, places))
        farmers -= standing[-1]
    return tuple(standing)


def score_section(section: int, top: Card | None, farmers: int) -> int:
    """The points of section 0 to 4 with this top card and so many farmers on it (U27 to U30)."""
    missing = FARMER_PLACES[section] - farmers
    if top is None:
        return 0 if missing else PRINTED_POINTS[section]
    return MISSING_FARMER * missing if missing else top.value


def score_kingdom(kingdom: Kingdom) -> int:
    """The points of a round, possibly less than none (U27 to U31)."""
    return sum(map(score_section, range(5), kingdom.tops, farmers_by_section(kingdom.farmers)))
