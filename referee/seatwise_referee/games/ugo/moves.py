"""The moves of UGO!: a card, or the order in which a seat lays the cards it has won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seatwise_referee.games.ugo.cards import BY_TEXT, CARDS, UgoCard, subset_reader

if TYPE_CHECKING:
    from seatwise_referee.game import Json


@dataclass(frozen=True, slots=True)
class Play:
    """Plays a card from the hand."""

    card: UgoCard


@dataclass(frozen=True, slots=True)
class Arrange:
    """Lays the won cards in this order: each on its colour's stack, or on the next free section."""

    cards: tuple[UgoCard, ...]


UgoMove: TypeAlias = Play | Arrange

PLAYS: Final = tuple(map(Play, CARDS))
"""The play of each card, by its number."""

plays_of: Final = subset_reader(PLAYS)
"""The plays of a set of cards, in the order of their numbers."""


def move_from_json(json: Json) -> UgoMove:
    """Return the move that was written so. Raises `ValueError` for anything else."""
    if type(json) is dict and len(json) == 1:  # nearly always; a pattern takes four times as long
        body: dict[str, Any] = json
        try:
            if "play" in body:
                return PLAYS[BY_TEXT[body["play"]]]
            if type(texts := body["arrange"]) is list:
                return Arrange(tuple([BY_TEXT[text] for text in texts]))
        except (KeyError, TypeError):
            pass  # the pattern says what is wrong
    match json:
        case {"play": str(text), **others} if not others:
            return PLAYS[UgoCard.parse(text)]
        case {"arrange": [*texts], **others} if not others:
            return Arrange(tuple(UgoCard.parse(text) for text in texts))  # type: ignore[arg-type]
    raise ValueError('a move is {"play": "R3"} or {"arrange": ["R3", "R4"]}, and no key besides')
