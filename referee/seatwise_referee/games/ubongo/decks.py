"""Deck files: the symbols that are printed on the cards, read and checked.

The first line is `seatwise.ubongo-deck/1` and the deck's name. Each of the 108 cards has a line with its name and the
symbols of its two sides, the white side (odd rounds) first: `1-01 ABCDEA BCDEAB`. The six symbols of a side are written
row by row, three rows of two. A symbol is a letter from A to Z. Empty lines and lines that begin with # are ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from seatwise_referee.games.ubongo.cards import (
    BY_TEXT,
    CARDS,
    CARDS_PER_DECK,
    SYMBOLS_PER_SIDE,
    TEXTS,
    Side,
    Symbols,
    UbongoCard,
)
from seatwise_referee.games.ubongo.house_decks import HOUSE_SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DECK_FORMAT: Final = "seatwise.ubongo-deck/1"
MAX_CHARACTERS: Final = 64 * 1024

_DECK_NAME_FORM: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,31}")
_CARD_SYMBOLS: Final = re.compile(r"[A-Z]{6}")


class BadDeck(ValueError):
    """The text is no deck file. The message says where and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Deck:
    """The symbols on 108 cards. Equal decks have the same name and the same cards."""

    name: str
    sides: tuple[tuple[Symbols, Symbols], ...]
    """By card, the white side, then the black one."""

    digest: str
    """SHA-256 of the deck as canonical JSON, in hex: `{"cards": {"1-01": [white, black]}, "format", "name"}`."""

    @property
    def label(self) -> str:
        """The deck as options and records name it: `name:digest`."""
        return f"{self.name}:{self.digest}"

    def side(self, card: UbongoCard, round_number: int) -> Side:
        """Return the side of the card that is up in that round (K3, K4)."""
        return Side(card, self.sides[card][(round_number + 1) % 2])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deck) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def parse_deck(text: str) -> Deck:
    """Return the deck that the text of a deck file describes. Raises `BadDeck`."""
    if len(text) > MAX_CHARACTERS:
        raise BadDeck(f"a deck file has at most {MAX_CHARACTERS} characters")
    lines = _content_lines(text)
    name = _parse_name(*next(lines, (1, "")))
    sides: dict[UbongoCard, tuple[Symbols, Symbols]] = {}
    for number, line in lines:
        card, printed = _parse_card(number, line)
        if card in sides:
            raise BadDeck(f"line {number}: {card} a second time")
        sides[card] = printed
    _check_complete(sides)
    return _make_deck(name, sides)


def _content_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not ignored, with their numbers from 1."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _parse_name(number: int, line: str) -> str:
    match line.split():
        case [written, name] if written == DECK_FORMAT:
            if _DECK_NAME_FORM.fullmatch(name):
                return name
            raise BadDeck(f"line {number}: a name has up to 32 of a-z, 0-9, . and -, not {name!r:.40}")
    raise BadDeck(
        f"line {number}: a deck file begins with {DECK_FORMAT} and the deck's name, not with {line!r:.40}"
    )


def _parse_card(number: int, line: str) -> tuple[UbongoCard, tuple[Symbols, Symbols]]:
    match line.split():
        case [text, white, black]:
            if text not in BY_TEXT:
                raise BadDeck(f"line {number}: {text!r:.20} is no card: one of {TEXTS[0]} to {TEXTS[-1]}")
            for symbols in (white, black):
                if not _CARD_SYMBOLS.fullmatch(symbols):
                    raise BadDeck(f"line {number}: a side has six letters from A to Z, not {symbols!r:.20}")
            return BY_TEXT[text], (white, black)
    raise BadDeck(f"line {number}: a card and its two sides are wanted, like {TEXTS[0]} ABCDEA BCDEAB")


def _check_complete(sides: Mapping[UbongoCard, tuple[Symbols, Symbols]]) -> None:
    missing = [card for card in CARDS if card not in sides]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise BadDeck(
            f"cards are missing: {', '.join(map(str, missing[:3]))}{more}; there are 3 decks of {CARDS_PER_DECK}"
        )


def _make_deck(name: str, sides: Mapping[UbongoCard, tuple[Symbols, Symbols]]) -> Deck:
    cards = {str(card): list(sides[card]) for card in CARDS}
    written = json.dumps(
        {"cards": cards, "format": DECK_FORMAT, "name": name}, sort_keys=True, separators=(",", ":")
    )
    return Deck(name, tuple(sides[card] for card in CARDS), sha256(written.encode()).hexdigest())


def _make_house_deck(name: str) -> Deck:
    fronts, backs = "".join(HOUSE_SIDES[name][::2]), "".join(HOUSE_SIDES[name][1::2])
    cut = [slice(first, first + SYMBOLS_PER_SIDE) for first in range(0, len(fronts), SYMBOLS_PER_SIDE)]
    return _make_deck(name, {card: (fronts[at], backs[at]) for card, at in zip(CARDS, cut, strict=True)})


HOUSE_DECK: Final = _make_house_deck("house-1")
"""The house's first deck. Hardly any hand has no seven cards that fit."""

HOUSE_DECKS: Final = {
    "easy": HOUSE_DECK,
    "club": _make_house_deck("club-1"),
    "master": _make_house_deck("master-1"),
}
"""The house's decks by difficulty, the easiest first."""

DEFAULT_DIFFICULTY: Final = "club"
"""The difficulty of a match that names no deck. It tells the sample bots apart."""
