"""Ubongo as the leaflet has it: its example, and the rulings where it is silent.

K1 to K15 are the numbers that the rules carry in `seatwise_referee.games.ubongo`.
"""

from __future__ import annotations

import json
from itertools import islice, product
from typing import Any

import pytest
from matches.ubongo_positions import SEED, UBONGO, cards_of, column, dealt, laid, wrong

from seatwise_referee.game import IllegalMove, Outcome, Prompt, Seat
from seatwise_referee.games.ubongo import (
    CALL,
    CARDS,
    HOUSE_DECK,
    Lay,
    OfferEnd,
    Stop,
    Ubongo,
    UbongoState,
    call_together,
    end_round,
    is_layout_fitting,
    with_layouts,
)
from seatwise_referee.shuffle import shuffle_items

A, B, C, D = map(Seat, range(4))


def calls(state: UbongoState, *callers: Seat) -> UbongoState:
    return call_together(state, frozenset(callers))


def stopped(state: UbongoState, *seats: Seat) -> UbongoState:
    for seat in seats:
        state = UBONGO.play(state, seat, UBONGO.default_move(state, seat))
    return state


def last_points(state: UbongoState) -> tuple[int, ...]:
    return state.round.points[-1]


# --- Points of a round: S1 to S7 -----------------------------------------------------------------------

BOTH_FORMS = pytest.mark.parametrize("false_call", ["out", "ends"])


@BOTH_FORMS
def test_s1_the_caller_scores_10_others_a_point_for_each_card_and_an_illegal_layout_nothing(
    false_call: str,
) -> None:
    state = calls(laid(dealt(3, false_call=false_call), 7, 4, -5), A)
    assert last_points(state) == (10, 4, 0)


def test_s2_a_false_call_ends_the_round_as_printed_and_nobody_scores_10() -> None:
    state = calls(laid(dealt(2, false_call="ends"), -7, 6), A)
    assert (last_points(state), state.round.number) == ((0, 6), 2)


def test_s2_a_false_call_puts_the_caller_out_and_the_other_builds_on() -> None:
    state = calls(laid(dealt(2, false_call="out"), -7, 6), A)
    assert (state.round.number, state.round.points, state.out) == (1, (), {A})
    assert UBONGO.prompt(state) == Prompt(1, frozenset({B}), "build", race=True, fault=False)
    assert last_points(UBONGO.play(state, B, OfferEnd(on=True))) == (0, 6)
    state = UBONGO.play(state, B, Lay(column(cards_of(state, B)[:7])))
    assert last_points(UBONGO.play(state, B, CALL)) == (0, 10)


@BOTH_FORMS
def test_s3_all_who_call_together_score_10(false_call: str) -> None:
    state = calls(laid(dealt(3, false_call=false_call), 7, 7, 3), A, B)
    assert last_points(state) == (10, 10, 3)


@BOTH_FORMS
def test_s4_of_two_who_call_together_only_the_one_whose_cards_fit_scores(false_call: str) -> None:
    state = calls(laid(dealt(2, false_call=false_call), 7, -7), A, B)
    assert (last_points(state), state.round.number) == ((10, 0), 2)


def test_s5_seven_cards_without_a_call_score_7() -> None:
    assert last_points(calls(laid(dealt(2), 7, 7), A)) == (10, 7)


def test_s6_an_agreed_end_gives_a_point_for_each_card_and_an_illegal_layout_nothing() -> None:
    assert last_points(end_round(laid(dealt(3), 6, 5, -3))) == (6, 5, 0)


def test_s7_one_card_scores_1_and_none_0() -> None:
    assert last_points(end_round(laid(dealt(2), 1, 0))) == (1, 0)


@pytest.mark.parametrize("count", [7, 8, 9])
def test_eight_or_nine_cards_score_their_number_and_may_be_called_for_10(count: int) -> None:
    state = laid(dealt(2), count, count)
    assert last_points(end_round(state)) == (count, count)
    assert last_points(calls(state, B)) == (count, 10)


def test_no_seat_scores_10_without_a_call() -> None:
    assert last_points(end_round(laid(dealt(4), 9, 7, 0, -9))) == (9, 7, 0, 0)


def test_cards_that_do_not_hang_together_score_nothing() -> None:
    """The count is over the whole layout, so one card apart costs all points."""
    state = dealt(2)
    cards = cards_of(state, A)
    apart = (*column(cards[:6]), column(cards[6:7])[0]._replace(x=9))
    state = UBONGO.play(state, A, Lay(apart))
    assert not is_layout_fitting(state, A)
    assert last_points(end_round(state)) == (0, 0)


# --- False calls ---------------------------------------------------------------------------------------


def test_several_who_call_falsely_together_are_all_out() -> None:
    state = calls(laid(dealt(4), -7, -8, 2, 3), A, B)
    assert (state.out, state.building) == ({A, B}, {C, D})
    assert last_points(end_round(state)) == (0, 0, 2, 3)


def test_a_seat_that_is_out_cannot_call_together_with_another() -> None:
    """As an entry of a forged journal might have it."""
    state = calls(laid(dealt(3), -7, 7, 4), A)
    with pytest.raises(IllegalMove, match="you called in this round, and your cards did not fit"):
        calls(state, A, B)


def test_a_false_call_does_not_stop_who_calls_rightly_later() -> None:
    state = calls(calls(laid(dealt(3), -7, 7, 4), A), B)
    assert last_points(state) == (0, 10, 4)


def test_a_round_in_which_all_have_called_falsely_is_over_without_points() -> None:
    state = calls(calls(laid(dealt(2), -7, -7), A), B)
    assert (last_points(state), state.round.number) == ((0, 0), 2)


def test_a_seat_that_was_out_builds_again_in_the_next_round() -> None:
    state = end_round(calls(laid(dealt(2), -7, 6), A))
    assert (state.out, state.building, state.layouts) == (frozenset(), {A, B}, ((), ()))


def test_a_seat_that_called_is_told_when_the_round_is_over() -> None:
    state = calls(laid(dealt(3), 1, 7, 0), B)
    assert [built.has_called for built in state.round.last_round] == [False, True, False]


def test_a_false_caller_is_told_too() -> None:
    for state in (
        end_round(calls(laid(dealt(2), -7, 6), A)),
        calls(laid(dealt(2, false_call="ends"), -7, 6), A),
    ):
        assert [built.has_called for built in state.round.last_round] == [True, False]


# --- Agreed ends ---------------------------------------------------------------------------------------


def test_a_round_ends_when_all_agree() -> None:
    state = laid(dealt(3), 6, 5, 4)
    for seat in (C, A):
        state = UBONGO.play(state, seat, OfferEnd(on=True))
        assert state.round.number == 1
    assert last_points(UBONGO.play(state, B, OfferEnd(on=True))) == (6, 5, 4)


def test_an_offer_can_be_withdrawn_and_made_twice() -> None:
    state = dealt(2)
    for on in (True, True, False, False):
        state = UBONGO.play(state, A, OfferEnd(on=on))
        assert state.offers == ({A} if on else frozenset())
    assert UBONGO.play(state, B, OfferEnd(on=True)).round.number == 1


def test_an_offer_stands_while_the_seat_builds_on() -> None:
    state = UBONGO.play(dealt(2), A, OfferEnd(on=True))
    state = UBONGO.play(state, A, Lay(column(cards_of(state, A)[:2])))
    assert last_points(UBONGO.play(state, B, OfferEnd(on=True))) == (2, 0)


def test_a_seat_that_is_out_need_not_agree() -> None:
    state = UBONGO.play(laid(dealt(3), -7, 5, 4), B, OfferEnd(on=True))
    state = calls(state, A)
    assert last_points(UBONGO.play(state, C, OfferEnd(on=True))) == (0, 5, 4)


def test_a_false_call_ends_the_round_when_all_others_had_agreed() -> None:
    state = UBONGO.play(laid(dealt(2), -7, 5), B, OfferEnd(on=True))
    assert last_points(calls(state, A)) == (0, 5)


def test_a_seat_that_agrees_to_end_the_round_must_withdraw_the_offer_to_call() -> None:
    state = UBONGO.play(laid(dealt(2), 7, 5), A, OfferEnd(on=True))
    with pytest.raises(IllegalMove, match="withdraw your offer first, then call"):
        calls(state, A)
    assert CALL not in islice(UBONGO.legal_moves(state, A), 10)
    assert last_points(calls(UBONGO.play(state, A, OfferEnd(on=False)), A)) == (10, 5)


def test_a_seat_that_stops_keeps_the_layout_and_need_not_agree() -> None:
    state = UBONGO.play(laid(dealt(3), 3, 5, 6), A, Stop())
    assert state.building == {B, C}
    state = UBONGO.play(state, B, OfferEnd(on=True))
    assert last_points(UBONGO.play(state, C, OfferEnd(on=True))) == (3, 5, 6)


def test_the_offer_of_who_has_stopped_is_forgotten() -> None:
    state = UBONGO.play(dealt(3), A, OfferEnd(on=True))
    assert UBONGO.play(state, A, Stop()).offers == frozenset()


def test_when_all_have_stopped_the_round_is_over() -> None:
    state = UBONGO.play(laid(dealt(2), 3, 5), A, Stop())
    assert last_points(UBONGO.play(state, B, Stop())) == (3, 5)


# --- Time ----------------------------------------------------------------------------------------------


def test_a_round_in_which_all_stop_ends_as_if_they_had_agreed() -> None:
    state = laid(dealt(3), 6, -2, 1)
    assert stopped(state, A, B, C) == end_round(state)


def test_a_seat_that_stops_builds_no_more_while_others_do() -> None:
    state = stopped(laid(dealt(3), 6, 2, 1), A, C)
    assert (state.building, state.round.number) == ({B}, 1)
    assert last_points(stopped(state, B)) == (6, 2, 1)


def test_a_round_ends_once_when_the_last_seat_that_has_not_agreed_stops() -> None:
    state = UBONGO.play(laid(dealt(2), 6, 2), A, OfferEnd(on=True))
    state = stopped(state, B)
    assert (state.round.number, state.building) == (2, {A, B})


def test_a_seat_that_is_out_cannot_stop() -> None:
    state = calls(laid(dealt(3), -7, 1, 1), A)
    with pytest.raises(IllegalMove):
        stopped(state, A)


def test_running_out_of_time_is_no_fault_and_the_limit_is_a_minute() -> None:
    prompt = UBONGO.prompt(dealt(4))
    assert prompt == Prompt(1, frozenset({A, B, C, D}), "build", race=True, fault=False)
    assert UBONGO.paces == {"build": 60_000}


def test_one_question_lasts_a_whole_round() -> None:
    state = laid(dealt(3), -7, 4, 7)
    for following in (
        calls(state, A),
        UBONGO.play(state, B, OfferEnd(on=True)),
        UBONGO.play(state, B, Stop()),
    ):
        prompt = UBONGO.prompt(following)
        assert prompt is not None
        assert prompt.number == 1
    prompt = UBONGO.prompt(calls(state, C))
    assert prompt is not None
    assert prompt.number == 2


# --- Cards: K1 to K4 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_each_deck_serves_two_rounds_and_its_cards_are_turned_over_for_the_second(seats: int) -> None:
    state = UBONGO.deal(seats, SEED, UBONGO.complete_options({}))
    for number in range(1, 7):
        deck = (number + 1) // 2
        order = shuffle_items([f"{deck}-{card:02}" for card in range(1, 37)], SEED, f"ubongo/deck/{deck}")
        for seat, hand in enumerate(state.round.hands):
            assert [str(side.card) for side in hand] == sorted(order[9 * seat : 9 * seat + 9])
            assert all(side.symbols == HOUSE_DECK.sides[side.card][(number + 1) % 2] for side in hand)
        state = end_round(state)
    assert state.is_over


def test_four_seats_use_up_the_deck() -> None:
    hands = UBONGO.deal(4, SEED, UBONGO.complete_options({})).round.hands
    assert sorted(side.card for hand in hands for side in hand) == list(CARDS[:36])


def test_deals_name_each_hand_and_the_symbols_of_all_its_sides() -> None:
    deals: list[Any] = UBONGO.deals_in_clear(3, SEED, UBONGO.complete_options({}))
    assert [deal["round"] for deal in deals] == [1, 2, 3, 4, 5, 6]
    for number, deal in enumerate(deals, start=1):
        held = [card for hand in deal["hands"] for card in hand]
        assert len(held) == len(set(held)) == 27
        assert deal["symbols"] == {
            str(card): HOUSE_DECK.sides[card][(number + 1) % 2] for card in CARDS if str(card) in held
        }
    assert deals[0]["hands"] == deals[1]["hands"]
    assert json.loads(json.dumps(deals)) == deals


# --- The end: K15 --------------------------------------------------------------------------------------


def match_of(*rounds: tuple[int, int]) -> Outcome | None:
    """Two seats score so in each round: 10 by a call, -1 nothing by a wrong layout."""
    state = dealt(2, rounds=len(rounds))
    for counts in rounds:
        callers = [Seat(seat) for seat, count in enumerate(counts) if count == 10]
        state = laid(state, *(7 if count == 10 else count for count in counts))
        state = calls(state, *callers) if callers else end_round(state)
    return UBONGO.outcome(state)


def test_s8_of_equal_totals_the_one_with_more_tens_wins() -> None:
    a_two_tens = [(10, 6), (10, 6), (6, 10), (4, 10), (6, 10), (6, 0)]
    assert match_of(*a_two_tens) == Outcome((42, 42), (2, 1), tuple(a_two_tens))


def test_s9_equal_totals_and_as_many_tens_are_shared() -> None:
    shared = [(10, 4), (4, 10), (3, 3)]
    assert match_of(*shared) == Outcome((17, 17), (1, 1), tuple(shared))


def test_more_points_win_whatever_the_tens() -> None:
    assert match_of((10, 7), (0, 9), (0, -2)) == Outcome((10, 16), (2, 1), ((10, 7), (0, 9), (0, 0)))


def test_ranks_of_four_count_points_first_and_then_tens() -> None:
    state = dealt(4, rounds=2)
    state = calls(laid(state, 7, 5, 5, 9), A)  # 10 5 5 9
    state = calls(laid(state, 0, 5, 7, 6), C)  # 0 5 10 6
    outcome = UBONGO.outcome(state)
    assert outcome is not None
    assert (outcome.points, outcome.ranks) == ((10, 10, 15, 15), (3, 4, 1, 2))


def test_a_match_has_no_outcome_before_its_last_round_is_over() -> None:
    state = dealt(2, rounds=2)
    assert UBONGO.outcome(end_round(state)) is None
    over = end_round(end_round(state))
    assert over.is_over
    assert UBONGO.prompt(over) is None
    assert (UBONGO.outcome(over), end_round(over)) == (Outcome((0, 0), (1, 1), ((0, 0), (0, 0))), over)


@pytest.mark.parametrize(("seats", "rounds"), list(product((2, 3, 4), range(1, 7))))
def test_a_match_has_as_many_rounds_as_asked_for(seats: int, rounds: int) -> None:
    state = Ubongo().deal(seats, SEED, {"rounds": rounds})
    for _ in range(rounds):
        assert not state.is_over
        state = end_round(state)
    assert state.is_over


# --- What a journal has at once ------------------------------------------------------------------------


def test_all_layouts_can_be_set_at_once() -> None:
    state = laid(dealt(3), 7, -4, 0)
    assert with_layouts(dealt(3), state.layouts) == state


def test_a_whole_round_comes_back_from_its_layouts_and_callers() -> None:
    state = laid(dealt(3), 7, -4, 6)
    assert calls(with_layouts(dealt(3), state.layouts), A) == calls(state, A)


def test_a_round_without_a_call_changes_nothing() -> None:
    state = laid(dealt(2), 7, 7)
    assert call_together(state, frozenset()) == state


def test_laying_anew_takes_back_what_is_not_named() -> None:
    state = laid(dealt(2), 5, 0)
    cards = cards_of(state, A)
    for layout in (column(cards[3:6]), wrong(cards[:2]), ()):
        assert UBONGO.play(state, A, Lay(layout)).layouts == (layout, ())
