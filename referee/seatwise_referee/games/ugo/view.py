"""The view of one seat: all that it may know of a match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatwise_referee.game import Seat
from seatwise_referee.games.ugo.cards import UgoCard, cards_of
from seatwise_referee.games.ugo.kingdoms import Kingdom
from seatwise_referee.games.ugo.state import UgoState, starter_of
from seatwise_referee.games.ugo.tricks import Trick, legal_mask
from seatwise_referee.value_type import value_type


@value_type
class UgoView:
    """Everything that one seat may know. It has no field for another seat's cards.

    Attributes:
        seat: The viewer; `None` is a spectator.
        round: The round being played, from 1; the last round if the match is over.
        rounds: Number of rounds in the match.
        starter: The seat that led the first trick of this round.
        hand: Your cards, in the order of their numbers; empty for a spectator.
        hand_sizes: Number of cards that each seat holds, by seat.
        leader: The seat that led, or leads, the trick on the table.
        trick: The cards on the table in the order played, the leader's first; empty between tricks.
        legal_cards: The cards that you may play now; empty if you are not asked for a card.
        won_cards: The cards that the winner of the last trick must still lay; empty at all other times.
        arranger: The seat that must lay them; `None` at all other times.
        kingdoms: By seat: `sections` (five stacks, from bottom to top), `tops` and `farmers`.
        supply: Number of farmers left for all.
        points: The points of each finished round: a tuple of rounds, each a tuple by seat.
        tricks: The finished tricks of this round, oldest first: `leader`, `cards`, `winner`, `laid`.
        last_round: The tricks of the round before, oldest first.

    `print(view)` shows it on one screen, with the stacks and the history shortened.
    """

    seat: Seat | None
    round: int
    rounds: int
    starter: Seat
    hand: tuple[UgoCard, ...]
    hand_sizes: tuple[int, ...]
    leader: Seat
    trick: tuple[UgoCard, ...]
    legal_cards: tuple[UgoCard, ...]
    won_cards: tuple[UgoCard, ...]
    arranger: Seat | None
    kingdoms: tuple[Kingdom, ...]
    supply: int
    points: tuple[tuple[int, ...], ...]
    tricks: tuple[Trick, ...]
    last_round: tuple[Trick, ...]

    def __repr__(self) -> str:
        """Return the view on one screen. It shortens stacks to their tops, and the history to the last trick."""
        lines = [
            f"UgoView(seat={self.seat}, round={self.round} of {self.rounds}, starter={self.starter}, leader={self.leader},",
            f"  hand=({_list_cards(self.hand)}), hand_sizes={self.hand_sizes},",
            f"  legal_cards=({_list_cards(self.legal_cards)}),",
            f"  trick=({_list_cards(self.trick)}), won_cards=({_list_cards(self.won_cards)}), arranger={self.arranger},",
            f"  supply={self.supply}, points={self.points},",
            *(f"  kingdoms[{seat}]: {_describe_kingdom(each)}" for seat, each in enumerate(self.kingdoms)),
            f"  tricks: {_describe_tricks(self.tricks)}; last_round: {len(self.last_round)} tricks)",
        ]
        return "\n".join(lines)


def _list_cards(cards: Iterable[UgoCard]) -> str:
    return " ".join(map(str, cards))


def _describe_kingdom(kingdom: Kingdom) -> str:
    stacks = (f"{cards[-1]} on {len(cards) - 1}" if cards else "-" for cards in kingdom.sections)
    return f"{', '.join(stacks)}; {kingdom.farmers} farmers"


def _describe_tricks(tricks: Sequence[Trick]) -> str:
    if not tricks:
        return "none finished"
    last = tricks[-1]
    return f"{len(tricks)} finished, the last {_list_cards(last.cards)} from seat {last.leader}, won by {last.winner}"


def view_of(state: UgoState, seat: Seat | None) -> UgoView:
    """Return the view of a seat. `None` is a spectator, which sees only the open cards."""
    table, round_ = state.table, state.round
    hand = 0 if seat is None else state.hands[seat]
    is_asked_for_card = seat is not None and seat == state.asked and not table.won
    cards, legal = cards_of(hand), legal_mask(hand, state.trick) if is_asked_for_card else 0
    return UgoView(  # in the order of the fields
        seat,
        round_.number,
        round_.rounds,
        starter_of(round_.number, len(state.hands)),
        cards,
        tuple([held.bit_count() for held in state.hands]),
        table.leader,
        state.trick,
        cards if legal == hand else tuple([card for card in cards if legal >> card & 1]),
        table.won,
        table.leader if table.won else None,
        table.kingdoms,
        table.supply,
        round_.points,
        table.tricks,
        round_.last_round,
    )
