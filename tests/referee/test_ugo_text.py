"""UGO! cards, moves and options as they are written."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matches.ugo_positions import SEED, UGO, cards

from seatwise_referee.game import BadOptions
from seatwise_referee.games.ugo import CARDS, Arrange, Colour, Play, UgoCard

# --- Cards and moves as text ---------------------------------------------------------------------------


def test_cards_are_numbered_by_colour_and_value() -> None:
    assert [str(card) for card in CARDS] == [colour + value for colour in "RBGYK" for value in "012345678"]
    assert [(card.colour, card.value) for card in CARDS] == [
        (colour, value) for colour in Colour for value in range(9)
    ]
    assert list(CARDS) == list(range(45))


def test_a_card_reads_as_text_wherever_it_is_shown() -> None:
    card = UgoCard.parse("K7")
    assert (str(card), repr(card), f"{card}", f"{card:>4}", str([card])) == ("K7", "K7", "K7", "  K7", "[K7]")


def test_there_is_one_object_of_each_card() -> None:
    for number, card in enumerate(CARDS):
        assert UgoCard(number) is UgoCard.parse(str(card)) is copy.deepcopy(card) is card
        assert pickle.loads(pickle.dumps(card)) is card


@pytest.mark.parametrize(
    "text", ["", "R", "R9", "r3", "3R", "R3 ", "R\u0663", "X3", "R3" * 1000, None, 3, [], b"R3"]
)
def test_other_text_is_no_card(text: Any) -> None:
    with pytest.raises(ValueError, match="is no card: one of R, B, G, Y, K") as refused:
        UgoCard.parse(text)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize("number", [-1, 45])
def test_other_numbers_are_no_cards(number: int) -> None:
    with pytest.raises(ValueError, match="cards are numbered 0 to 44"):
        UgoCard(number)


def test_moves_are_written_as_records_have_them() -> None:
    assert UGO.move_to_json(Play(UgoCard.parse("R3"))) == {"play": "R3"}
    assert UGO.move_to_json(Arrange(cards("R3 R4"))) == {"arrange": ["R3", "R4"]}


@given(st.lists(st.sampled_from(CARDS)))
def test_moves_come_back_from_json_as_they_were(some: list[UgoCard]) -> None:
    for move in (Arrange(tuple(some)), *map(Play, some)):
        assert UGO.move_from_json(json.loads(json.dumps(UGO.move_to_json(move)))) == move


@pytest.mark.parametrize(
    "written",
    [
        None, True, 3, "R3", [], {}, ["play", "R3"], {"play": None}, {"play": 3}, {"play": "R9"}, {"play": ["R3"]},
        {"play": "R3", "arrange": ["R3"]}, {"play": "R3", "seat": 0}, {"Play": "R3"}, {"arrange": "R3"},
        {"arrange": None}, {"arrange": [3]}, {"arrange": [["R3"]]}, {"arrange": ["R3", "x"]}, {"arrange": {"R3": 1}},
        {"arrange": ["R3"], "x": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_other_json_is_no_move(written: Any) -> None:
    with pytest.raises(ValueError, match=r"is no card|a move is"):
        UGO.move_from_json(written)


# --- Options -------------------------------------------------------------------------------------------


def test_a_match_has_four_rounds_unless_others_are_asked_for() -> None:
    assert UGO.complete_options({}) == {"rounds": 4}
    assert UGO.complete_options({"rounds": 1}) == {"rounds": 1}
    assert UGO.complete_options({"rounds": 8}) == {"rounds": 8}


@pytest.mark.parametrize("rounds", [0, 9, -1, True, False, "4", 4.0, None, [4], "x" * 1000])
def test_other_numbers_of_rounds_are_refused_with_those_that_can_be_played(rounds: Any) -> None:
    with pytest.raises(BadOptions, match="rounds: must be a whole number from 1 to 8, not ") as refused:
        UGO.complete_options({"rounds": rounds})
    assert len(str(refused.value)) < 100


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(BadOptions, match="round: UGO! has no such option, only rounds and farmers"):
        UGO.complete_options({"round": 4})


def test_two_may_have_all_the_farmers_in_every_round() -> None:
    options = UGO.complete_options({"rounds": 2, "farmers": 36})
    assert options == {"rounds": 2, "farmers": 36}
    state, supplies = UGO.deal(2, SEED, options), set()
    while (prompt := UGO.prompt(state)) is not None:
        if not state.table.tricks and not state.trick:
            supplies.add((state.round.number, state.table.supply))
        seat = next(iter(prompt.seats))
        state = UGO.play(state, seat, next(iter(UGO.legal_moves(state, seat))))
    assert supplies == {(1, 36), (2, 36)}
    assert UGO.deal(2, SEED, {"rounds": 2}).table.supply == 12


@pytest.mark.parametrize("farmers", [12, 35, "36", True, None])
def test_another_number_of_farmers_is_refused(farmers: Any) -> None:
    with pytest.raises(BadOptions, match="farmers: must be 36, or not given, not "):
        UGO.complete_options({"farmers": farmers})


@pytest.mark.parametrize("seats", [-1, 0, 1, 5])
def test_a_table_of_the_wrong_size_is_refused(seats: int) -> None:
    with pytest.raises(BadOptions, match=f"seats: UGO! is played by 2 to 4, not by {seats}"):
        UGO.deal(seats, SEED, {"rounds": 4})
    with pytest.raises(BadOptions, match="2 to 4"):
        UGO.deals_in_clear(seats, SEED, {"rounds": 4})
