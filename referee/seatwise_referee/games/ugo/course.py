"""How a match goes on: from a card to the trick, from the trick to the round, from the round to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.kingdoms import (
    FULL,
    Kingdom,
    default_order,
    has_choice,
    lay,
    score_kingdom,
    settle,
)
from seatwise_referee.games.ugo.state import Round, State, deal_round
from seatwise_referee.games.ugo.tricks import Trick, farmers_gained, winner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatwise_referee.games.ugo.cards import Card


def after_card(state: State, seat: Seat, card: Card) -> State:
    """The card lies on the table; the next seat is asked, or the trick is full (U9)."""
    _, prompt, hands, trick, table = state
    hands = (*hands[:seat], hands[seat] ^ 1 << card, *hands[seat + 1 :])
    trick = (*trick, card)
    if len(trick) == len(hands):
        return _after_trick(State(seat, prompt, hands, trick, table))
    return State(Seat((seat + 1) % len(hands)), prompt + 1, hands, trick, table)


def _after_trick(state: State) -> State:
    """The winner takes the cards and the farmers come, then he lays, at once or when asked how (U14, U15)."""
    _, prompt, hands, trick, table = state
    seats = len(hands)
    winner = Seat((table.leader + winner_of(trick)) % seats)
    kingdoms, supply = _settled(table, winner, farmers_gained(trick))
    table = table._replace(
        leader=winner,
        kingdoms=kingdoms,
        supply=supply,
        tricks=(*table.tricks, Trick(table.leader, trick, winner, ())),
        won=trick,
    )
    if has_choice(kingdoms[winner], trick):
        return State(winner, prompt + 1, hands, (), table)
    return after_laying(State(winner, prompt, hands, (), table), default_order(trick))


def _settled(table: Round, winner: Seat, gains: Sequence[int]) -> tuple[tuple[Kingdom, ...], int]:
    """The kingdoms with the farmers that the trick brought, and the supply without them.

    Nobody has more than nine (U24): of two that are due and one place free, one comes. The winner
    takes first, then the others clockwise from him, while the supply lasts (U25).
    """
    kingdoms, supply, seats = list(table.kingdoms), table.supply, len(gains)
    for seat in (*range(winner, seats), *range(winner)):
        gain = gains[seat - table.leader]  # in the order played; a negative index counts round the table
        if gain:
            farmers = min(gain, FULL - kingdoms[seat].farmers, supply)
            kingdoms[seat] = settle(kingdoms[seat], farmers)
            supply -= farmers
    return tuple(kingdoms), supply


def after_laying(state: State, cards: tuple[Card, ...]) -> State:
    """The won cards lie in the winner's kingdom; he leads, or the round is over (U14 to U20)."""
    _, prompt, hands, _, table = state
    winner = table.leader
    kingdoms = table.kingdoms
    trick = table.tricks[-1]
    table = table._replace(
        kingdoms=(*kingdoms[:winner], lay(kingdoms[winner], cards), *kingdoms[winner + 1 :]),
        tricks=(*table.tricks[:-1], Trick(trick.leader, trick.cards, winner, cards)),
        won=(),
    )
    if hands[winner]:
        return State(winner, prompt + 1, hands, (), table)
    return _after_round(State(winner, prompt, hands, (), table))


def _after_round(state: State) -> State:
    """The kingdoms are scored and the next round is dealt; after the last one they stay to be seen (U27 to U33)."""
    table = state.round
    points = (*table.points, tuple(map(score_kingdom, table.kingdoms)))
    if table.number == table.rounds:
        return State(None, state.prompt, state.hands, (), table._replace(points=points))
    return deal_round(
        table.number + 1,
        len(state.hands),
        table.seed,
        table.rounds,
        points=points,
        last_round=table.tricks,
        prompt=state.prompt + 1,
    )
