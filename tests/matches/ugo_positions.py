"""UGO! positions made by hand and played on, for tests that say cards as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Arrange, Kingdom, Play, Ugo, UgoCard, UgoRound, UgoState, UgoTable

if TYPE_CHECKING:
    import random

SEED = bytes(range(32))
UGO = Ugo()


def cards(text: str) -> tuple[UgoCard, ...]:
    return tuple(map(UgoCard.parse, text.split()))


def hand_of(text: str) -> int:
    return sum(1 << card for card in cards(text))


def kingdom_of(*stacks: str, farmers: int = 0) -> Kingdom:
    return Kingdom(tuple(map(cards, (*stacks, "", "", "", "", "")[:5])), farmers)


def position(
    *hands: str,
    leader: int = 0,
    trick: str = "",
    kingdoms: tuple[Kingdom, ...] | None = None,
    supply: int = 36,
) -> UgoState:
    """A state made by hand; the asked seat follows from the leader and the trick."""
    table = UgoTable(Seat(leader), kingdoms or (Kingdom(),) * len(hands), supply, (), ())
    asked = Seat((leader + len(cards(trick))) % len(hands))
    return UgoState(asked, 1, tuple(map(hand_of, hands)), cards(trick), table, UgoRound(SEED, 1, 1, (), ()))


def play(state: UgoState, *moves: str) -> UgoState:
    """Each text is a card to play, or after ">" the cards to lay, by whoever is asked."""
    for text in moves:
        assert state.asked is not None
        move = Arrange(cards(text[1:])) if text.startswith(">") else Play(*cards(text))
        state = UGO.play(state, state.asked, move)
    return state


def defaulted(state: UgoState) -> UgoState:
    """The asked seat gives no answer, and its default move is played."""
    assert state.asked is not None
    return UGO.play(state, state.asked, UGO.default_move(state, state.asked))


def play_to_the_end(state: UgoState, chance: random.Random) -> UgoState:
    while state.asked is not None:
        state = UGO.play(state, state.asked, chance.choice(list(UGO.legal_moves(state, state.asked))))
    return state


def farmers(state: UgoState) -> list[int]:
    return [kingdom.farmers for kingdom in state.table.kingdoms]


def pace(state: UgoState) -> str | None:
    prompt = UGO.prompt(state)
    return prompt and prompt.pace
