"""What a builder may do in Ubongo, how moves are written, and what is refused in which words."""

from __future__ import annotations

import json
import pickle
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matches.effort import examples
from matches.ubongo_positions import PLAIN, SEED, UBONGO, cards_of, column, dealt, laid, wrong

from seatwise_referee.game import BadOptions, IllegalMove, Seat
from seatwise_referee.games.ubongo import (
    BOUND,
    CALL,
    CARDS,
    HOUSE_DECK,
    Call,
    Lay,
    OfferEnd,
    Placement,
    Stop,
    UbongoCard,
    UbongoState,
    call_together,
    end_round,
    is_layout_fitting,
    with_layouts,
)

A, B, C = map(Seat, range(3))
BUILDING = laid(dealt(3), 7, 3, -7)
OWN, OTHERS = cards_of(BUILDING, A), cards_of(BUILDING, B)
HELD = ", ".join(map(str, OWN))


def refusal(state: UbongoState, seat: int, move: Any) -> str:
    before = pickle.dumps(state)
    with pytest.raises(IllegalMove) as refused:
        UBONGO.play(state, Seat(seat), move)
    assert pickle.loads(before) == state
    assert len(str(refused.value)) < 200
    return str(refused.value)


def one(card: UbongoCard, x: Any = 0, y: Any = 0, turn: Any = 0) -> Lay:
    return Lay((Placement(card, x, y, turn),))


# --- What is refused -----------------------------------------------------------------------------------


def test_a_card_of_another_hand_is_refused_with_ones_own() -> None:
    assert refusal(BUILDING, A, one(OTHERS[0])) == f"you do not hold {OTHERS[0]}; you hold {HELD}"


def test_a_card_of_another_deck_is_refused() -> None:
    assert refusal(BUILDING, A, one(UbongoCard.parse("2-01"))) == f"you do not hold 2-01; you hold {HELD}"


def test_a_card_in_two_places_is_refused() -> None:
    twice = (*column(OWN[:3]), Placement(OWN[1], 10, 10, 0))
    assert refusal(BUILDING, A, Lay(twice)) == f"{OWN[1]} is laid twice"


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 2, 0), (-1, -1, 1), (0, 2, 3)])
def test_cards_on_one_another_are_refused(place: tuple[int, int, int]) -> None:
    overlap = (*column(OWN[:1]), Placement(OWN[2], *place))
    assert refusal(BUILDING, A, Lay(overlap)) == f"{OWN[0]} and {OWN[2]} overlap"


@pytest.mark.parametrize("place", [(-31, 0), (31, 0), (0, -31), (0, 31), (10**30, 0), (0, -(10**5000))])
def test_a_card_beyond_the_bounds_is_refused_with_the_bounds(place: tuple[int, int]) -> None:
    assert (
        refusal(BUILDING, A, one(OWN[0], *place)) == f"{OWN[0]} is out of bounds: x and y go from -30 to 30"
    )


@pytest.mark.parametrize("turn", [-1, 4, 90, 10**5000], ids=["-1", "4", "90", "huge"])
def test_an_unknown_turn_is_refused(turn: int) -> None:
    assert (
        refusal(BUILDING, A, one(OWN[0], 0, 0, turn))
        == f"{OWN[0]} is turned in an unknown way: turn goes from 0 to 3"
    )


@pytest.mark.parametrize("junk", [True, 1.0, "1", None, [], (1,), float("nan")])
def test_other_things_than_whole_numbers_are_refused(junk: Any) -> None:
    for move in (one(OWN[0], junk), one(OWN[0], 0, junk), one(OWN[0], 0, 0, junk)):
        assert refusal(BUILDING, A, move) == f"{OWN[0]}: x, y and turn are whole numbers"


@pytest.mark.parametrize("layout", [(None,), (OWN[0],), ((OWN[0], 0, 0, 0),), ((),), ("1-01",), (object(),)])
def test_other_things_than_placements_are_refused(layout: Any) -> None:
    assert "something that is no placement" in refusal(BUILDING, A, Lay(layout))


@pytest.mark.parametrize(
    "card", [None, 0, True, "1-01", -1, [], 10**5000], ids=lambda card: type(card).__name__
)
def test_other_things_than_cards_are_refused(card: Any) -> None:
    assert "something that is no placement" in refusal(BUILDING, A, one(card))


@pytest.mark.parametrize("layout", [None, [], [*column(OWN[:2])], "1-01", 3, {}, column(OWN[:1])[0]])
def test_a_layout_is_a_tuple(layout: Any) -> None:
    assert refusal(BUILDING, A, Lay(layout)) == "a layout is a tuple of placements"


@pytest.mark.parametrize("count", [10, 10_000])
def test_more_cards_than_a_hand_are_refused_at_once(count: int) -> None:
    assert (
        refusal(BUILDING, A, Lay(column(OWN[:1]) * count))
        == f"you hold 9 cards, and the layout names {count}"
    )


@pytest.mark.parametrize("count", range(7))
def test_a_call_with_fewer_than_seven_cards_is_refused(count: int) -> None:
    state = laid(dealt(2), count, 7)
    assert refusal(state, A, CALL) == f"you call with 7 fitting cards; you have laid {count}"


def test_a_call_together_with_one_that_is_refused_changes_nothing() -> None:
    state = laid(dealt(2), 7, 6)
    with pytest.raises(IllegalMove, match="you have laid 6"):
        call_together(state, frozenset({A, B}))


MOVES = [CALL, OfferEnd(on=True), OfferEnd(on=False), Stop(), Lay(()), Lay(column(OWN))]


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_after_a_false_call_of_ones_own_no_move_is_taken(move: Any) -> None:
    state = call_together(BUILDING, frozenset({C}))
    assert (
        refusal(state, C, move)
        == "you called in this round, and your cards did not fit: wait for the next round"
    )


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_after_stopping_no_move_is_taken(move: Any) -> None:
    state = UBONGO.play(BUILDING, B, Stop())
    assert refusal(state, B, move) == "you build no more in this round: wait for the next"


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_nothing_is_laid_or_called_when_the_match_is_over(move: Any) -> None:
    over = end_round(dealt(2, rounds=1))
    assert refusal(over, A, move) == "the match is over"


@pytest.mark.parametrize("seat", [-1, 3, 10**30])
def test_a_seat_that_does_not_exist_is_refused(seat: int) -> None:
    assert refusal(BUILDING, seat, CALL) == f"there is no seat {seat} at this table"


JUNK: list[Any] = [
    None, 3, "call", (), object(), Call, Lay, OfferEnd(None), OfferEnd(1), OfferEnd("yes"), {"call": True},  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("move", JUNK, ids=lambda move: "object" if type(move) is object else f"{move!r:.20}")
def test_junk_is_refused(move: Any) -> None:
    assert refusal(BUILDING, A, move).startswith("a layout is asked for: ")


def test_layouts_of_a_journal_are_checked_as_moves_are() -> None:
    state = dealt(2)
    for layouts in ((column(cards_of(state, B)[:1]), ()), ((), column(cards_of(state, A)[:1]))):
        with pytest.raises(IllegalMove, match="you do not hold"):
            with_layouts(state, layouts)
    with pytest.raises(IllegalMove, match="there are 2 seats, not 3"):
        with_layouts(state, ((), (), ()))
    stopped = UBONGO.play(laid(state, 2, 0), A, Stop())
    with pytest.raises(IllegalMove, match="seat 0 builds no more"):
        with_layouts(stopped, ((), ()))
    assert with_layouts(stopped, (stopped.layouts[A], column(cards_of(state, B)[:1]))).layouts[B]


def test_a_refusal_names_no_card_but_those_that_one_holds_or_names() -> None:
    for card in CARDS:
        if card not in OWN:
            said = refusal(BUILDING, A, one(card))
            assert {other for other in CARDS if str(other) in said} == {*OWN, card}


# --- What is taken -------------------------------------------------------------------------------------


def test_layouts_that_do_not_fit_may_lie() -> None:
    """Who refuses them deletes K11, and tells a builder what it should find out itself."""
    for layout in (wrong(OWN[:4]), (*column(OWN[:2]), Placement(OWN[5], 20, 20, 3))):
        state = UBONGO.play(BUILDING, A, Lay(layout))
        assert state.layouts[A] == layout
        assert not is_layout_fitting(state, A)


def test_cards_may_lie_on_the_bounds() -> None:
    corners = [(-BOUND, -BOUND), (-BOUND, BOUND), (BOUND, -BOUND), (BOUND, BOUND)]
    layout = tuple(Placement(card, *corner, 1) for card, corner in zip(OWN, corners, strict=False))
    assert UBONGO.play(BUILDING, A, Lay(layout)).layouts[A] == layout


def test_no_answer_stops_the_seat_and_leaves_its_layout() -> None:
    assert UBONGO.default_move(BUILDING, A) == Stop()
    state = UBONGO.play(BUILDING, A, Stop())
    assert (state.layouts, state.building) == (BUILDING.layouts, {B, C})
    with pytest.raises(IllegalMove, match="you build no more"):
        UBONGO.default_move(state, A)


def test_a_call_is_listed_first_and_only_when_seven_cards_lie() -> None:
    assert next(UBONGO.legal_moves(BUILDING, A)) == CALL
    assert CALL not in set(islice(UBONGO.legal_moves(BUILDING, B), 200))
    assert not list(UBONGO.legal_moves(UBONGO.play(BUILDING, B, Stop()), B))


def test_cards_more_are_listed_where_they_fit_first() -> None:
    chance, state = Random(4), UBONGO.deal(2, SEED, UBONGO.complete_options({}))
    for count in range(1, 7):
        moves = [move for move in islice(UBONGO.legal_moves(state, A), 4) if isinstance(move, Lay)]
        state = UBONGO.play(state, A, chance.choice(moves))
        assert len(state.layouts[A]) == count
        assert is_layout_fitting(state, A)


def test_listing_never_ends_before_every_place_of_a_card_is_named() -> None:
    state = laid(dealt(2), 8, 0)
    last = cards_of(state, A)[8]
    named = {
        move.layout[-1]
        for move in UBONGO.legal_moves(state, A)
        if isinstance(move, Lay) and len(move.layout) == 9
    }
    assert {Placement(last, BOUND, BOUND, turn) for turn in range(4)} <= named


# --- Moves as JSON -------------------------------------------------------------------------------------


def test_moves_are_written_as_records_have_them() -> None:
    lay = Lay((Placement(UbongoCard.parse("1-01"), 0, -3, 1), Placement(UbongoCard.parse("3-36"), 2, 0, 0)))
    assert UBONGO.move_to_json(lay) == {"lay": [["1-01", 0, -3, 1], ["3-36", 2, 0, 0]]}
    assert UBONGO.move_to_json(Lay(())) == {"lay": []}
    assert UBONGO.move_to_json(CALL) == {"call": True}
    assert UBONGO.move_to_json(OfferEnd(on=False)) == {"offer_end": False}
    assert UBONGO.move_to_json(Stop()) == {"stop": True}


Placements = st.builds(Placement, st.sampled_from(CARDS), st.integers(), st.integers(), st.integers())


@given(st.lists(Placements, max_size=9).map(tuple) | st.booleans() | st.sampled_from([CALL, Stop()]))
@settings(max_examples=examples(50, 25))
def test_moves_come_back_from_json_as_they_were(made: Any) -> None:
    move = OfferEnd(made) if isinstance(made, bool) else Lay(made) if isinstance(made, tuple) else made
    assert UBONGO.move_from_json(json.loads(json.dumps(UBONGO.move_to_json(move)))) == move


WRITTEN: list[Any] = [
    None, True, 3, "call", [], {}, ["call", True], {"call": False}, {"call": 1}, {"call": None}, {"call": "true"},
    {"call": True, "lay": []}, {"Call": True}, {"offer_end": 1}, {"offer_end": None}, {"offer_end": "true"},
    {"offer_end": True, "seat": 0}, {"stop": False}, {"stop": 1}, {"lay": None}, {"lay": "1-01"}, {"lay": {}},
    {"lay": [[]]}, {"lay": ["1-01"]}, {"lay": [["1-01", 0, 0]]}, {"lay": [["1-01", 0, 0, 0, 0]]},
    {"lay": [[0, 0, 0, 0]]}, {"lay": [["1-01", 0.0, 0, 0]]}, {"lay": [["1-01", True, 0, 0]]},
    {"lay": [["1-01", 0, 0, None]]}, {"lay": [["1-01", 0, 0, "0"]]}, {"lay": [["1-00", 0, 0, 0]]},
    {"lay": [["1-37", 0, 0, 0]]}, {"lay": [["4-01", 0, 0, 0]]}, {"lay": [["1-1", 0, 0, 0]]},
    {"lay": [["x" * 10_000, 0, 0, 0]]}, {"lay": [["1-01", 0, 0, 0]] * 10}, {"lay": [["1-01", 0, 0, 0]] * 10_000},
    {"lay": [{"card": "1-01"}]}, {"lay": [["1-01", 0, 0, 0]], "more": 1},
]  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN, ids=lambda written: f"{written!r:.40}")
def test_other_json_is_no_move(written: Any) -> None:
    with pytest.raises(ValueError, match=r"is no card|a move is|a layout is|a placement is") as refused:
        UBONGO.move_from_json(written)
    assert len(str(refused.value)) < 200


def test_cards_are_numbered_by_deck() -> None:
    assert [str(card) for card in CARDS] == [f"{deck}-{n:02}" for deck in (1, 2, 3) for n in range(1, 37)]
    assert list(CARDS) == list(range(108))
    card = UbongoCard.parse("2-07")
    assert (str(card), repr(card), f"{card:>5}", int(card)) == ("2-07", "2-07", " 2-07", 42)
    assert UbongoCard(42) is card is pickle.loads(pickle.dumps(card))
    for number in (-1, 108):
        with pytest.raises(ValueError, match="cards are numbered 0 to 107"):
            UbongoCard(number)


# --- Options -------------------------------------------------------------------------------------------


def test_a_match_has_six_rounds_on_the_default_deck_unless_others_are_asked_for() -> None:
    assert UBONGO.complete_options({}) == {"rounds": 6, "false_call": "out", "deck": HOUSE_DECK.label}
    given = {"rounds": 1, "false_call": "ends", "deck": PLAIN.label}
    assert UBONGO.complete_options(given) == given


@pytest.mark.parametrize("rounds", [0, 7, -1, True, "6", 6.0, None, [6], "x" * 1000])
def test_other_numbers_of_rounds_are_refused_with_those_that_can_be_played(rounds: Any) -> None:
    with pytest.raises(BadOptions, match="rounds: must be a whole number from 1 to 6, not ") as refused:
        UBONGO.complete_options({"rounds": rounds})
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize("false_call", ["", "OUT", "end", 0, None, ["out"], "x" * 1000])
def test_other_false_calls_are_refused_with_those_there_are(false_call: Any) -> None:
    with pytest.raises(BadOptions, match="false_call: must be out or ends, not ") as refused:
        UBONGO.complete_options({"false_call": false_call})
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize(
    "deck", ["", "house", HOUSE_DECK.digest[:10], "plain:" + HOUSE_DECK.digest, 0, None, [], "x" * 1000]
)
def test_a_deck_that_is_not_here_is_refused_with_those_that_are(deck: Any) -> None:
    with pytest.raises(
        BadOptions,
        match=r"deck: must be the name or the digest of a deck here \(easy, club, master, house-1, club-1, master-1, plain\)",
    ):
        UBONGO.complete_options({"deck": deck})


def test_a_deck_is_known_by_its_name_its_digest_or_both() -> None:
    for wanted in (PLAIN.name, PLAIN.digest, PLAIN.label):
        assert UBONGO.complete_options({"deck": wanted})["deck"] == f"plain:{PLAIN.digest}"


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(
        BadOptions, match="round: Ubongo has no such option, only rounds, false_call and deck"
    ):
        UBONGO.complete_options({"round": 4})


@pytest.mark.parametrize("seats", [-1, 0, 1, 5])
def test_a_table_of_the_wrong_size_is_refused(seats: int) -> None:
    for made in (UBONGO.deal, UBONGO.deals_in_clear):
        with pytest.raises(BadOptions, match=f"seats: Ubongo is played by 2 to 4, not by {seats}"):
            made(seats, SEED, {})
