"""What a seat may answer in UGO!, what stands for no answer, and what is refused in which words."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import pytest
from matches.ugo_positions import SEED, UGO, cards, defaulted, play, position

from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.ugo import CARDS, Arrange, Play, UgoCard, UgoState, default_order

# --- The default move ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hand", "trick", "default"),
    [
        ("R5 B3 G4", "", "B3"),
        ("K2 B2 G2", "", "B2"),  # ties in the order R, B, G, Y, K
        ("R5 R3 B0", "R8", "R3"),  # legal cards only
        ("B4 K0", "R8", "K0"),
    ],
)
def test_by_default_the_lowest_legal_card_is_played(hand: str, trick: str, default: str) -> None:
    state = position(hand, "R8", leader=1 if trick else 0, trick=trick)
    assert UGO.default_move(state, Seat(0)) == Play(*cards(default))


@pytest.mark.parametrize(
    ("won", "order"),
    [
        ("R6 B5 R3 R4", "R3 R4 R6 B5"),
        ("B5 R4", "B5 R4"),
        ("K5 B5 R5", "R5 B5 K5"),  # ties in the order R, B, G, Y, K
        ("K8 K0 Y7 R8", "R8 K0 K8 Y7"),
    ],
)
def test_by_default_the_highest_ends_on_top_and_its_colour_comes_first(won: str, order: str) -> None:
    assert default_order(cards(won)) == cards(order)


def test_a_match_of_nothing_but_default_moves_ends() -> None:
    state = UGO.deal(4, SEED, {"rounds": 8})
    while state.asked is not None:
        state = defaulted(state)
    assert UGO.prompt(state) is None


# --- What is refused -----------------------------------------------------------------------------------


def refusal(state: UgoState, seat: int, move: Any) -> str:
    with pytest.raises(IllegalMove) as refused:
        UGO.play(state, Seat(seat), move)
    return str(refused.value)


CARD_ASKED = position("R3 R5 B4 K0", "R8 G1", leader=1, trick="R8")
ARRANGE_ASKED = play(position("R3 Y0", "R5 Y1"), "R3", "R5")


def test_a_card_that_is_not_held_is_refused_with_the_hand() -> None:
    assert refusal(CARD_ASKED, 0, Play(UgoCard.parse("G1"))) == "you do not hold G1; you hold R3, R5, B4, K0"


def test_a_card_that_does_not_follow_is_refused_with_those_that_do() -> None:
    said = refusal(CARD_ASKED, 0, Play(UgoCard.parse("B4")))
    assert said == "B4 does not follow R8: you must play red, and hold R3, R5"


def test_a_seat_that_is_not_asked_is_told_who_is() -> None:
    assert refusal(CARD_ASKED, 1, Play(UgoCard.parse("G1"))) == "seat 0 is asked now, not seat 1"


def test_a_seat_that_does_not_exist_is_refused_like_one_that_is_not_asked() -> None:
    assert refusal(CARD_ASKED, 7, Play(UgoCard.parse("G1"))) == "seat 0 is asked now, not seat 7"
    assert refusal(CARD_ASKED, -1, Play(UgoCard.parse("G1"))) == "seat 0 is asked now, not seat -1"


def test_nothing_can_be_played_when_the_match_is_over() -> None:
    over = play(position("R8", "B5"), "R8", "B5", ">B5 R8")
    assert refusal(over, 0, Play(UgoCard.parse("R8"))) == "the match is over"


def test_to_lay_cards_when_a_card_is_asked_for_is_refused() -> None:
    assert refusal(CARD_ASKED, 0, Arrange(cards("R3"))) == "a card is asked for: the move is Play(card)"


def test_to_play_a_card_when_cards_are_to_be_laid_is_refused() -> None:
    said = refusal(ARRANGE_ASKED, 1, Play(UgoCard.parse("Y1")))
    assert said == "the cards you won are to be laid: the move is Arrange(cards) with R3, R5"


@pytest.mark.parametrize(
    ("laid", "fault"),
    [
        ("", "R3, R5 missing"),
        ("R3", "R5 missing"),
        ("R3 R5 R5", "R5 too many"),
        ("R3 R3", "R5 missing and R3 too many"),
        ("R3 Y1", "R5 missing and Y1 too many"),
    ],
)
def test_wrong_cards_to_lay_are_named(laid: str, fault: str) -> None:
    assert refusal(ARRANGE_ASKED, 1, Arrange(cards(laid))) == f"lay each of R3, R5 once: {fault}"


JUNK: list[Any] = [
    None, 3, "R3", (), object(), Play, Play(None), Play(3), Play("R3"), Play(cards("R3")), Play(True),
    Arrange(None), Arrange("R3 R5"), Arrange([*cards("R3 R5")]), Arrange((21, 23)), Arrange(([], {})),
    Arrange(cards("R3 R5") * 5_000), Arrange((None,) * 10_000), Arrange(Play(cards("R3")[0])),
]  # fmt: skip


@pytest.mark.parametrize("state", [CARD_ASKED, ARRANGE_ASKED], ids=["card", "arrange"])
@pytest.mark.parametrize("move", JUNK, ids=lambda move: "object" if type(move) is object else f"{move!r:.30}")
def test_junk_is_refused_in_few_words_and_changes_nothing(state: UgoState, move: Any) -> None:
    before = pickle.dumps(state)
    assert state.asked is not None
    assert len(refusal(state, state.asked, move)) < 400
    assert pickle.loads(before) == state


def test_a_refusal_names_no_card_that_the_seat_does_not_see() -> None:
    chance, state = random.Random(3), UGO.deal(4, SEED, {"rounds": 1})
    while state.asked is not None:
        view = UGO.view(state, state.asked)
        seen = {*view.hand, *view.trick, *view.won_cards}
        for card in CARDS:
            if card not in view.legal_cards:
                named = set(
                    cards(" ".join(re.findall(r"\b[RBGYK][0-8]\b", refusal(state, state.asked, Play(card)))))
                )
                assert named <= seen | {card}
        state = UGO.play(state, state.asked, chance.choice(list(UGO.legal_moves(state, state.asked))))


def test_there_is_no_default_move_for_a_seat_that_is_not_asked() -> None:
    with pytest.raises(IllegalMove, match="seat 0 is asked now, not seat 1"):
        UGO.default_move(CARD_ASKED, Seat(1))
