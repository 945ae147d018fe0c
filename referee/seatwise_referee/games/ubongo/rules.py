"""The rules of Ubongo as a `RaceGame`, which explains each method."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from seatwise_referee.game import BadOptions, IllegalMove, Json, Options, Outcome, Prompt, Seat
from seatwise_referee.games.ubongo import moves, round_flow
from seatwise_referee.games.ubongo.cards import deck_of_round
from seatwise_referee.games.ubongo.decks import DEFAULT_DIFFICULTY, HOUSE_DECKS, BadDeck, Deck
from seatwise_referee.games.ubongo.moves import (
    STOP,
    Call,
    Lay,
    OfferEnd,
    Stop,
    UbongoMove,
    check_layout,
    list_moves,
    refuse_unasked,
)
from seatwise_referee.games.ubongo.round_flow import POINTS_OF_CALLER
from seatwise_referee.games.ubongo.state import (
    UbongoState,
    UbongoView,
    deal_hands,
    first_state,
    opened_hands,
    view_of,
    write_round,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ROUNDS: Final = 6
"""As printed. Three decks give no more rounds (K3)."""

FALSE_CALLS: Final = ("out", "ends")
"""After a false call the caller is out of the round and the others build on ("out"), or the round ends, as printed ("ends")."""

BUILD: Final = "build"


class Ubongo:
    """Ubongo - Das Kartenspiel by the leaflet of 2015. K1 to K15 in this package are the numbers of its rules.

    All seats build at the same time. The rules know no order of arrival. The referee tells them the layouts, and
    which seats call together (`call_together`), in the order of their charged times.
    """

    name: Final = "ubongo"
    rules_version: Final = "1"
    table_sizes: Final = range(2, 5)
    paces: Final[Mapping[str, int]] = {BUILD: 60_000}

    def __init__(self, decks: Iterable[Deck] = (), default_deck: str = DEFAULT_DIFFICULTY) -> None:
        """Know these decks of an operator besides the house's decks, and the deck of a match that names none.

        Raises `BadDeck` if two decks share a name, or no deck has the default's.
        """
        self._decks: dict[str, Deck] = {}
        for deck in (*HOUSE_DECKS.values(), *decks):
            if self._decks.setdefault(deck.name, deck) != deck:
                raise BadDeck(f"two decks here are called {deck.name}: give yours another name")
        try:
            self._default_deck = self._find_deck(default_deck)
        except BadOptions as bad:
            raise BadDeck(f"default {bad}") from None

    def complete_options(self, given: Options) -> Options:
        """Return `rounds`, `false_call` and `deck`, complete. Raises `BadOptions`.

        `rounds` is 1 to 6 and `false_call` is "out" or "ends". `deck` is given by name, digest or difficulty ("easy",
        "club" or "master"), and complete as `name:digest`.
        """
        for key in given:
            if key not in ("rounds", "false_call", "deck"):
                raise BadOptions(f"{key}: Ubongo has no such option, only rounds, false_call and deck")
        rounds = given.get("rounds", ROUNDS)
        if type(rounds) is not int or not 1 <= rounds <= ROUNDS:  # `type`, because a bool is an int
            raise BadOptions(f"rounds: must be a whole number from 1 to {ROUNDS}, not {rounds!r:.20}")
        false_call = given.get("false_call", FALSE_CALLS[0])
        if type(false_call) is not str or false_call not in FALSE_CALLS:
            raise BadOptions(f"false_call: must be {' or '.join(FALSE_CALLS)}, not {false_call!r:.20}")
        return {
            "rounds": rounds,
            "false_call": false_call,
            "deck": self._find_deck(given["deck"]).label if "deck" in given else self._default_deck.label,
        }

    def _find_deck(self, wanted: object) -> Deck:
        """Return the deck of that name, digest or label, or else of that difficulty."""
        for deck in self._decks.values():
            if wanted in (deck.name, deck.digest, deck.label):
                return deck
        for difficulty, deck in HOUSE_DECKS.items():
            if wanted == difficulty:
                return deck
        known = ", ".join((*HOUSE_DECKS, *self._decks))
        raise BadOptions(f"deck: must be the name or the digest of a deck here ({known}), not {wanted!r:.80}")

    def deal(self, seats: int, seed: bytes, options: Options) -> UbongoState:
        """Return the first round. Raises `BadOptions` for fewer than 2 or more than 4 seats."""
        given = self.complete_options(options)
        ends = given["false_call"] == "ends"
        deck = self._find_deck(given["deck"])
        return first_state(self._check_seats(seats), seed, int(given["rounds"]), deck, false_call_ends=ends)

    def deals_in_clear(self, seats: int, seed: bytes, options: Options) -> list[Json]:
        """Return the hands of every round, in the order dealt, and the symbols of the sides that are up."""
        given = self.complete_options(options)
        deck, seats = self._find_deck(given["deck"]), self._check_seats(seats)
        return [
            write_round(deck, number, deal_hands(deck_of_round(number), seats, seed))
            for number in range(1, int(given["rounds"]) + 1)
        ]

    def prompt(self, state: UbongoState) -> Prompt | None:
        """Return the one question of the round, to all seats that build."""
        return None if state.is_over else _cached_prompt(state.round.number, state.building)

    def legal_moves(self, state: UbongoState, seat: Seat) -> Iterator[UbongoMove]:
        """Yield some legal moves, likely ones first. `play` accepts every layout that can lie on a table."""
        return list_moves(state, seat) if seat in state.building else iter(())

    def play(self, state: UbongoState, seat: Seat, move: UbongoMove) -> UbongoState:
        if seat not in state.building:
            refuse_unasked(state, seat)
        match move:
            case Lay(layout):
                check_layout(state.round.hands[seat], layout)
                return round_flow.after_laying(state, seat, layout)
            case OfferEnd(bool(on)):
                return round_flow.after_offer(state, seat, on=on)
            case Call():
                return round_flow.call_together(state, frozenset((seat,)))
            case Stop():
                return round_flow.after_stopping(state, seat)
        raise IllegalMove("a layout is asked for: the move is Lay(layout), Call() or OfferEnd(on)")

    def default_move(self, state: UbongoState, seat: Seat) -> UbongoMove:
        """See `Game`: the layout of the seat stays, and it builds no more."""
        if seat not in state.building:
            refuse_unasked(state, seat)
        return STOP

    def view(self, state: UbongoState, seat: Seat | None) -> UbongoView:
        return view_of(state, seat)

    def opened(self, state: UbongoState) -> list[Json]:
        """Return the hands of the two rounds with the deck that left play last; of one, if the match ended after it.

        After an odd round the same cards are turned over and played again, so they stay closed (K4).
        """
        return opened_hands(state)

    def outcome(self, state: UbongoState) -> Outcome | None:
        """Return the sums of all rounds. More rounds with 10 points break a tie; else the rank is shared (K15)."""
        if not state.is_over:
            return None
        rounds = state.round.points
        by_seat = tuple(zip(*rounds, strict=True))
        points = tuple(map(sum, by_seat))
        worth = [
            (total, scored.count(POINTS_OF_CALLER)) for total, scored in zip(points, by_seat, strict=True)
        ]
        ranks = tuple(1 + sum(other > own for other in worth) for own in worth)
        return Outcome(points, ranks, rounds)

    def move_to_json(self, move: UbongoMove) -> Json:
        """Return `{"lay": [["1-01", 0, 0, 1]]}`, `{"call": true}`, `{"offer_end": true}` or `{"stop": true}`."""
        return moves.move_to_json(move)

    def move_from_json(self, json: Json) -> UbongoMove:
        return moves.move_from_json(json)

    # The race

    def is_lay(self, move: UbongoMove) -> bool:
        return isinstance(move, Lay)

    def is_offer(self, move: UbongoMove) -> bool:
        return isinstance(move, OfferEnd)

    def is_call(self, move: UbongoMove) -> bool:
        return isinstance(move, Call)

    def layouts(self, state: UbongoState) -> list[Json]:
        """Return the layouts by seat: `[[["1-01", 0, 0, 1]], []]`."""
        return list(map(moves.layout_to_json, state.layouts))

    def with_layouts(self, state: UbongoState, layouts: Sequence[Json]) -> UbongoState:
        return round_flow.with_layouts(state, list(map(moves.layout_from_json, layouts)))

    def call_together(self, state: UbongoState, callers: frozenset[Seat]) -> UbongoState:
        return round_flow.call_together(state, callers)

    def end_round(self, state: UbongoState) -> UbongoState:
        """Return the state after the round ended without a call: nobody scores 10."""
        return round_flow.end_round(state)

    def _check_seats(self, seats: int) -> int:
        if seats not in self.table_sizes:
            raise BadOptions(f"seats: Ubongo is played by 2 to 4, not by {seats}")
        return seats


@lru_cache(maxsize=128)  # all prompts of six rounds of four seats
def _cached_prompt(number: int, seats: frozenset[Seat]) -> Prompt:
    return Prompt(number, seats, BUILD, race=True, fault=False)
