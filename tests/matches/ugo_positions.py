"""UGO! positions made by hand and played on, for tests that say cards as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Arrange, Card, Kingdom, Play, Round, State, Table, Ugo

if TYPE_CHECKING:
    import random

SEED = bytes(range(32))
UGO = Ugo()


def cards(text: str) -> tuple[Card, ...]:
    return tuple(map(Card.parse, text.split()))


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
) -> State:
    """A state made by hand; the asked seat follows from the leader and the trick."""
    table = Table(Seat(leader), kingdoms or (Kingdom(),) * len(hands), supply, (), ())
    asked = Seat((leader + len(cards(trick))) % len(hands))
    return State(asked, 1, tuple(map(hand_of, hands)), cards(trick), table, Round(SEED, 1, 1, (), ()))


def play(state: State, *moves: str) -> State:
    """Each text is a card to play, or after ">" the cards to lay, by whoever is asked."""
    for text in moves:
        assert state.asked is not None
        move = Arrange(cards(text[1:])) if text.startswith(">") else Play(*cards(text))
        state = UGO.play(state, state.asked, move)
    return state


def defaulted(state: State) -> State:
    """The asked seat gives no answer, and its default move is played."""
    assert state.asked is not None
    return UGO.play(state, state.asked, UGO.default_move(state, state.asked))


def play_to_the_end(state: State, chance: random.Random) -> State:
    while state.asked is not None:
        state = UGO.play(state, state.asked, chance.choice(list(UGO.legal_moves(state, state.asked))))
    return state


def farmers(state: State) -> list[int]:
    return [kingdom.farmers for kingdom in state.table.kingdoms]


def pace(state: State) -> str | None:
    prompt = UGO.prompt(state)
    return prompt and prompt.pace
