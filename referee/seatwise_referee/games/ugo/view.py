"""The view of one seat: all that it may know of a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatwise_referee.games.ugo.cards import UgoCard, cards_of
from seatwise_referee.games.ugo.state import UgoState, starter_of
from seatwise_referee.games.ugo.tricks import Trick, legal_mask

if TYPE_CHECKING:
    from seatwise_referee.game import Seat
    from seatwise_referee.games.ugo.kingdoms import Kingdom


@dataclass(frozen=True, slots=True)
class UgoView:
    """Everything that one seat may know. It has no field for another seat's cards."""

    seat: Seat | None
    """The viewer; `None` is a spectator."""

    round: int
    """The round being played, from 1; the last round if the match is over."""

    rounds: int
    """Number of rounds in the match."""

    starter: Seat
    """The seat that led the first trick of this round."""

    hand: tuple[UgoCard, ...]
    """The viewer's own cards, in the order of their numbers; empty for a spectator."""

    hand_sizes: tuple[int, ...]
    """Number of cards that each seat holds, by seat."""

    leader: Seat
    """The seat that led, or leads, the trick on the table."""

    trick: tuple[UgoCard, ...]
    """The cards on the table in the order played, the leader's first; empty between tricks."""

    legal_cards: tuple[UgoCard, ...]
    """The cards that the viewer may play now; empty if it is not asked for a card."""

    won_cards: tuple[UgoCard, ...]
    """The cards that the winner of the last trick must still lay; empty at all other times."""

    arranger: Seat | None
    """The seat that must lay `won_cards`; `None` at all other times."""

    kingdoms: tuple[Kingdom, ...]
    """The kingdom of each seat, by seat."""

    supply: int
    """Number of farmers left in the common supply."""

    points: tuple[tuple[int, ...], ...]
    """The points of each finished round: a tuple of rounds, each a tuple by seat."""

    tricks: tuple[Trick, ...]
    """The finished tricks of this round, oldest first."""

    last_round: tuple[Trick, ...]
    """The tricks of the round before, oldest first."""


def view_of(state: UgoState, seat: Seat | None) -> UgoView:
    """Return the view of a seat. `None` is a spectator, which sees only the open cards."""
    table, round_ = state.table, state.round
    hand = 0 if seat is None else state.hands[seat]
    is_asked_for_card = seat is not None and seat == state.asked and not table.won
    return UgoView(
        seat=seat,
        round=round_.number,
        rounds=round_.rounds,
        starter=starter_of(round_.number, len(state.hands)),
        hand=cards_of(hand),
        hand_sizes=tuple(map(int.bit_count, state.hands)),
        leader=table.leader,
        trick=state.trick,
        legal_cards=cards_of(legal_mask(hand, state.trick)) if is_asked_for_card else (),
        won_cards=table.won,
        arranger=table.leader if table.won else None,
        kingdoms=table.kingdoms,
        supply=table.supply,
        points=round_.points,
        tricks=table.tricks,
        last_round=round_.last_round,
    )
