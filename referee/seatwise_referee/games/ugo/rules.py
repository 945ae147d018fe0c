"""The rules of UGO! as a `Game`, which explains each method."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

from seatwise_referee.game import BadOptions, Json, Options, Outcome, Prompt, Seat, ranks_of
from seatwise_referee.games.ugo import moves
from seatwise_referee.games.ugo.cards import TEXTS, VALUES_PER_COLOUR, cards_of
from seatwise_referee.games.ugo.kingdoms import default_order
from seatwise_referee.games.ugo.moves import PLAYS, Arrange, Play, UgoMove, plays_of
from seatwise_referee.games.ugo.round_flow import (
    after_card,
    after_laying,
    card_to_play,
    cards_to_lay,
    first_state,
    refuse_unasked,
)
from seatwise_referee.games.ugo.state import ALL_FARMERS, UgoState, deal_hands, opened_hands, starter_of
from seatwise_referee.games.ugo.tricks import legal_mask
from seatwise_referee.games.ugo.view import UgoView, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ROUNDS: Final = 8


class Ugo:
    """UGO! by the leaflet of 2015. U1 to U33 in this package are the numbers of its rules."""

    name: Final = "ugo"
    rules_version: Final = "1"
    table_sizes: Final = range(2, 5)
    paces: Final[Mapping[str, int]] = {"card": 1000, "arrange": 1000}

    def complete_options(self, given: Options) -> Options:
        """Return `rounds`, from 1 to 8; without it 4, as printed (U5). Raises `BadOptions`.

        `farmers` may be 36, so that two have as many farmers as more do; without it they have 12, as printed (U4).
        """
        # a compiled build would complain of another type before the rules do
        unchecked: Mapping[str, object] = given
        for key in unchecked:
            if key not in ("rounds", "farmers"):
                raise BadOptions(f"{key}: UGO! has no such option, only rounds and farmers")
        rounds = unchecked.get("rounds", 4)
        if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:  # `type`, because a bool is an int
            raise BadOptions(f"rounds: must be a whole number from 1 to {MAX_ROUNDS}, not {rounds!r:.20}")
        if "farmers" not in unchecked:
            return {"rounds": rounds}
        farmers = unchecked["farmers"]
        if type(farmers) is not int or farmers != ALL_FARMERS:
            raise BadOptions(f"farmers: must be {ALL_FARMERS}, or not given, not {farmers!r:.20}")
        return {"rounds": rounds, "farmers": farmers}

    def deal(self, seats: int, seed: bytes, options: Options) -> UgoState:
        """Return the first round. Raises `BadOptions` for fewer than 2 or more than 4 seats (U1)."""
        given = self.complete_options(options)
        return first_state(self._check_seats(seats), seed, int(given["rounds"]), int(given.get("farmers", 0)))

    def deals_in_clear(self, seats: int, seed: bytes, options: Options) -> list[Json]:
        """Return the starter, the hands and the cards set aside of every round, in the order dealt."""
        return [
            _deal_in_clear(number, self._check_seats(seats), seed)
            for number in range(1, int(self.complete_options(options)["rounds"]) + 1)
        ]

    def prompt(self, state: UgoState) -> Prompt | None:
        """Return the question to the one seat that is asked: for a card, or for the order in which it lays cards it won."""
        if state.asked is None:
            return None
        key = (state.prompt, state.asked, bool(state.table.won))
        known = _PROMPTS.get(key)
        return _new_prompt(key) if known is None else known

    def legal_moves(self, state: UgoState, seat: Seat) -> Iterator[UgoMove]:
        """Yield cards in the order of their numbers; of the ways to lay, the default first."""
        if seat != state.asked:
            return iter(())
        if state.table.won:
            return map(Arrange, permutations(default_order(state.table.won)))
        return iter(plays_of(legal_mask(state.hands[seat], state.trick)))

    def play(self, state: UgoState, seat: Seat, move: UgoMove) -> UgoState:
        if seat != state.asked:
            refuse_unasked(state, seat)
        if state.table.won:
            return after_laying(state, state.prompt, cards_to_lay(state, move))
        return after_card(state, seat, card_to_play(state, seat, move))

    def default_move(self, state: UgoState, seat: Seat) -> UgoMove:
        """See `Game`.

        Asked for a card: the legal card with the lowest value. Asked for an order: the cards of each colour in
        rising order, so that the highest ends on top, and the colour with the highest top first. The order
        R, B, G, Y, K breaks ties.
        """
        if seat != state.asked:
            refuse_unasked(state, seat)
        if state.table.won:
            return Arrange(default_order(state.table.won))
        # In rising order, so that `min` takes the first colour.
        legal = cards_of(legal_mask(state.hands[seat], state.trick))
        return PLAYS[min(legal, key=lambda card: card % VALUES_PER_COLOUR)]

    def view(self, state: UgoState, seat: Seat | None) -> UgoView:
        return view_of(state, seat)

    def opened(self, state: UgoState) -> list[Json]:
        """Return the hands of the round that was finished last, in the order played. All its cards were played openly."""
        return opened_hands(state)

    def outcome(self, state: UgoState) -> Outcome | None:
        """Return the sums of all rounds. Equal points share a rank, because no rule breaks the tie (U31, U33)."""
        if state.asked is not None:
            return None
        rounds = state.round.points
        points = tuple(map(sum, zip(*rounds, strict=True)))
        return Outcome(points, ranks_of(points), rounds)

    def move_to_json(self, move: UgoMove) -> Json:
        """Return `{"play": "R3"}` or `{"arrange": ["R3", "R4"]}`."""
        if isinstance(move, Play):
            return {"play": TEXTS[move.card]}
        return {"arrange": [TEXTS[card] for card in move.cards]}

    def move_from_json(self, json: Json) -> UgoMove:
        return moves.move_from_json(json)

    def _check_seats(self, seats: int) -> int:
        if seats not in self.table_sizes:
            raise BadOptions(f"seats: UGO! is played by 2 to 4, not by {seats}")
        return seats


_PROMPTS: Final[dict[tuple[int, Seat, bool], Prompt]] = {}
"""All prompts of eight rounds are few thousand; to make one costs as much as to play a card."""


def _new_prompt(key: tuple[int, Seat, bool]) -> Prompt:
    number, seat, arranges = key
    prompt = _PROMPTS[key] = Prompt(number, frozenset((seat,)), "arrange" if arranges else "card")
    return prompt


def _deal_in_clear(number: int, seats: int, seed: bytes) -> Json:
    hands, aside = deal_hands(number, seats, seed)
    return {
        "round": number,
        "starter": starter_of(number, seats),
        "hands": [list(map(str, hand)) for hand in hands],
        "aside": list(map(str, aside)),
    }
