"""What a move is charged, whatever happens in between."""

from __future__ import annotations

import pytest
from matches.one_match import ALLOWED_MS, BANK_MS, FREE_MS, Desk, dealt, kinds, only

from seatwise_referee.decision import AcceptMove, RejectRequest, WakeAt
from seatwise_referee.ending import RejectReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import (
    Charge,
    Defaulted,
    DefaultMove,
    Frozen,
    Moved,
    Rejected,
    TakenOver,
)
from seatwise_referee.match import replay_match

# Clocks


@pytest.mark.parametrize(
    ("charged_ms", "bank_ms"), [(999, 500), (1000, 500), (1001, 499), (1500, 0), (1550, 0)]
)
def test_the_bank_pays_what_is_beyond_the_free_time(charged_ms: int, bank_ms: int) -> None:
    desk = dealt()
    desk.hand()
    desk.now = charged_ms
    assert only(AcceptMove, desk.submit()).charged_ms == charged_ms
    assert desk.seat(0).bank_ms == bank_ms


def test_a_move_is_in_time_to_the_millisecond() -> None:
    for late_ms in (0, 1):
        desk = dealt()
        desk.hand()
        desk.now = ALLOWED_MS + late_ms
        (answer,) = (effect for effect in desk.submit() if isinstance(effect, AcceptMove | RejectRequest))
        assert isinstance(answer, RejectRequest if late_ms else AcceptMove)


def test_the_increment_comes_after_each_move_in_time() -> None:
    desk = dealt(increment_ms=30)
    desk.hand()
    desk.now = 1100
    desk.submit()
    assert desk.seat(0).bank_ms == BANK_MS - 100 + 30
    assert desk.seat(1).bank_ms == BANK_MS


def test_a_late_move_is_refused_and_the_default_played() -> None:
    desk = dealt()
    desk.hand(allowance_ms=5)
    desk.now = ALLOWED_MS + 6
    default = desk.default_move()
    refused = only(RejectRequest, desk.submit(request_id="late"))
    assert refused.reason is RejectReason.TOO_LATE
    rejected, played = desk.journal[-2:]
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "TOO_LATE"
    assert isinstance(played, Defaulted)
    assert played.reason == "TIMED_OUT"
    charge = Charge(asked_ms=0, allowance_ms=5, charged_ms=ALLOWED_MS + 1)
    assert played.moves == (DefaultMove(Seat(0), desk.match.game.move_to_json(default), charge),)
    assert (desk.seat(0).bank_ms, desk.seat(0).strikes, desk.seat(0).rejections) == (0, 1, 0)
    assert desk.asked == 1


def test_a_timeout_comes_with_the_first_tick_after_the_last_moment() -> None:
    desk = dealt()
    desk.hand()
    desk.now = ALLOWED_MS
    assert desk.tick() == [WakeAt(ALLOWED_MS + 1)]
    desk.now += 1
    desk.tick()
    assert kinds(desk.journal)[-1] == "default"
    assert desk.seat(0).strikes == 1


def test_an_answer_after_the_timer_is_called_late_and_counts_no_second_time() -> None:
    desk = dealt()
    desk.now = 10_000
    desk.tick()
    before = desk.match.position
    refused = only(RejectRequest, desk.do(desk.match.submit_move(Seat(0), 1, "late", None, 10_000)))
    assert refused.reason is RejectReason.TOO_LATE
    assert desk.match.position is before


def test_a_timed_out_seat_gets_no_increment() -> None:
    desk = dealt(increment_ms=30)
    desk.now = 10_000
    desk.tick()
    assert desk.seat(0).bank_ms == 0


def test_time_runs_from_the_hand_over() -> None:
    desk = dealt(handover_ms=250)
    desk.now = 100
    desk.hand()
    desk.now = 130
    assert only(AcceptMove, desk.submit()).charged_ms == 30


def test_time_runs_at_the_latest_a_while_after_the_put() -> None:
    desk = dealt(handover_ms=250)
    assert only(WakeAt, desk.match.tick(0)).at_ms == 250 + ALLOWED_MS + 1
    desk.now = 600
    desk.hand()
    desk.now = 650
    assert only(AcceptMove, desk.submit()).charged_ms == 400


def test_an_answer_before_the_hand_over_costs_nothing() -> None:
    desk = dealt()
    desk.now = 20
    desk.submit()
    entry = desk.journal[-1]
    assert isinstance(entry, Moved)
    assert (entry.asked_ms, entry.charged_ms) == (20, 0)


def test_an_answer_from_before_its_prompt_was_put_costs_nothing() -> None:
    desk = dealt()
    desk.now = 10
    guess = desk.match.submit_move(Seat(0), 1, "id", desk.default_move(), 10)
    desk.now = 400  # the store was slow, and meanwhile seat 1 has guessed
    desk.do(guess)
    desk.hand()
    answer = desk.do(desk.match.submit_move(desk.asked, desk.prompt, "guess", desk.default_move(), 300))
    assert only(AcceptMove, answer).charged_ms == 0
    entry = next(entry for entry in desk.journal if entry.seq == 5)
    assert isinstance(entry, Moved)
    assert (entry.asked_ms, entry.at_ms) == (300, 300)


def test_only_the_first_hand_over_counts() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 200
    desk.hand(allowance_ms=50)
    assert only(AcceptMove, desk.submit()).charged_ms == 200


def test_a_hand_over_of_another_prompt_or_seat_is_nothing() -> None:
    desk = dealt()
    assert desk.match.note_delivery(Seat(0), 2, 0) == []
    assert desk.match.note_delivery(Seat(1), 1, 0) == []


@pytest.mark.parametrize(("measured_ms", "taken_off_ms"), [(0, 0), (40, 40), (100, 100), (101, 100), (-5, 0)])
def test_the_allowance_is_capped(measured_ms: int, taken_off_ms: int) -> None:
    desk = dealt(allowance_cap_ms=100)
    desk.hand(allowance_ms=measured_ms)
    desk.now = 300
    assert only(AcceptMove, desk.submit()).charged_ms == 300 - taken_off_ms


def test_a_charge_is_never_negative() -> None:
    desk = dealt()
    desk.hand(allowance_ms=80)
    desk.now = 30
    assert only(AcceptMove, desk.submit()).charged_ms == 0


def test_a_seat_is_told_its_time() -> None:
    desk = dealt()
    desk.now = 20
    assert desk.match.update_for(Seat(0), 20).move_ms == FREE_MS  # not handed over yet: nothing is used
    desk.hand(allowance_ms=7)
    told = desk.match.update_for(Seat(0), 320)
    assert (told.prompt, told.to_act, told.pace) == (1, True, "card")
    assert (told.move_ms, told.bank_ms, told.allowance_ms, told.strikes) == (700, BANK_MS, 7, 0)
    assert desk.match.update_for(Seat(0), 99_999).move_ms == 0
    waiting = desk.match.update_for(Seat(1), 320)
    assert (waiting.prompt, waiting.to_act, waiting.move_ms, waiting.allowance_ms) == (1, False, 0, 0)


def test_a_seat_is_told_what_its_last_move_cost() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 1200
    desk.submit()
    told = desk.match.update_for(Seat(0), 1200)
    assert (told.charged_ms, told.bank_ms) == (1200, BANK_MS - 200)


# Standing still


def test_a_standstill_of_ours_is_charged_to_no_seat() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 700
    desk.do(desk.match.note_standstill(600, "STALL", 700))
    assert desk.journal[-1] == Frozen(seq=4, at_ms=700, ms=600, why="STALL")
    assert desk.match.update_for(Seat(0), 700).move_ms == FREE_MS - 100
    desk.now = 750
    assert only(AcceptMove, desk.submit()).charged_ms == 150


def test_a_freeze_counts_only_from_the_hand_over() -> None:
    desk = dealt()
    desk.now = 100
    desk.hand()
    desk.now = 150
    desk.do(desk.match.note_standstill(1000, "STORE", 150))
    desk.now = 160
    assert only(AcceptMove, desk.submit()).charged_ms == 10


def test_a_freeze_moves_the_last_moment_back() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 900
    effects = desk.do(desk.match.note_standstill(300, "STALL", 900))
    assert only(WakeAt, effects).at_ms == 300 + ALLOWED_MS + 1
    desk.now = 300 + ALLOWED_MS
    assert only(AcceptMove, desk.submit()).charged_ms == ALLOWED_MS


@pytest.mark.parametrize("ms", [0, -1])
def test_a_freeze_of_nothing_is_nothing(ms: int) -> None:
    desk = dealt()
    desk.hand()
    assert desk.match.note_standstill(ms, "STALL", 10) == []


def test_the_setup_lasts_as_much_longer_as_we_stood_still_and_no_entry_tells_of_it() -> None:
    desk = Desk(setup_ms=5000)
    assert desk.match.note_standstill(4000, "STORE", 4500) == [WakeAt(9000)]
    assert desk.match.note_standstill(4000, "STALL", 1000) == [WakeAt(10_000)], "only what fell in it"
    assert desk.match.tick(9999) == [WakeAt(10_000)]
    desk.do(desk.match.tick(10_000))
    assert desk.match.is_over


def test_a_freeze_and_the_command_it_came_before_may_share_a_confirmation() -> None:
    desk = dealt()
    desk.hand()
    effects = desk.match.note_standstill(400, "STALL", 500)
    desk.now = 90  # arrived before we stood still, is read after it
    effects += desk.match.submit_move(Seat(0), 1, "id", desk.default_move(), desk.now)
    desk.do(effects)
    entry = desk.journal[-1]
    assert isinstance(entry, Moved)
    assert (entry.at_ms, entry.charged_ms) == (500, 100)


def test_time_never_falls_in_the_journal() -> None:
    desk = dealt()
    desk.now = 50
    desk.submit()
    desk.now = 20
    desk.submit()
    assert [entry.at_ms for entry in desk.journal][-2:] == [50, 50]


# Taking over


def test_after_a_takeover_the_open_prompt_is_asked_again_in_full() -> None:
    desk = dealt()
    desk.hand(allowance_ms=20)
    desk.submit_illegal()
    desk.match = replay_match(desk.setup, desk.journal)
    desk.now = 9000
    effects = desk.do(desk.match.take_over(2, 9000))
    assert desk.journal[-1] == TakenOver(seq=5, at_ms=9000, epoch=2)
    assert only(WakeAt, effects).at_ms == 9000 + 250 + ALLOWED_MS + 1
    told = desk.match.update_for(Seat(0), 9000)
    assert (told.move_ms, told.bank_ms, told.allowance_ms) == (FREE_MS, BANK_MS, 0)
    desk.hand()
    desk.now = 9100
    assert only(AcceptMove, desk.submit()).charged_ms == 100


def taken_over(**limits: int) -> Desk:
    """At 9000 another referee has it, and none of its bots."""
    desk = dealt(setup_ms=5000, **limits)
    desk.match = replay_match(desk.setup, desk.journal)
    desk.now = 9000
    desk.do(desk.match.take_over(2, 9000, away=[Seat(0), Seat(1)]))
    return desk


def test_after_a_takeover_no_time_runs_before_the_bot_is_back() -> None:
    desk = taken_over()
    desk.hand()  # as the table says of whoever is not connected
    desk.now = 13_000
    assert desk.match.update_for(Seat(0), desk.now).move_ms == FREE_MS
    assert only(WakeAt, desk.match.note_return(Seat(0), desk.now)).at_ms == 13_000 + 250 + ALLOWED_MS + 1
    desk.now = 13_100
    desk.hand()
    desk.now = 13_140
    assert only(AcceptMove, desk.submit()).charged_ms == 40


def test_a_seat_that_comes_back_and_is_not_handed_the_prompt_is_as_any_other_seat() -> None:
    desk = taken_over()
    desk.match.note_return(Seat(0), 10_000)
    desk.now = 10_350
    assert only(AcceptMove, desk.submit()).charged_ms == 100


def test_a_seat_that_does_not_come_back_in_the_set_up_time_runs_out_of_time() -> None:
    desk = taken_over()
    desk.now = 14_000 + ALLOWED_MS
    assert not [each for each in desk.tick() if not isinstance(each, WakeAt)]
    desk.now += 1
    desk.tick()
    (default,) = (entry for entry in desk.journal if isinstance(entry, Defaulted))
    assert default.moves[0].charge.asked_ms == 14_000


def test_a_seat_that_is_asked_later_has_the_same_time_to_come_back() -> None:
    desk = taken_over()
    desk.match.note_return(Seat(0), 9100)
    desk.now = 9200
    desk.submit()
    assert desk.asked == 1
    desk.now = 13_500
    desk.match.note_return(Seat(1), 13_500)
    desk.hand()
    desk.now = 13_510
    assert only(AcceptMove, desk.submit()).charged_ms == 10


def test_a_seat_that_was_back_before_it_is_asked_has_no_more_time_than_others() -> None:
    desk = taken_over()
    for seat in (0, 1):
        desk.match.note_return(Seat(seat), 9100)
    desk.now = 9200
    desk.submit()
    assert desk.asked == 1
    desk.hand()
    desk.now = 9270
    assert only(AcceptMove, desk.submit()).charged_ms == 70


def test_a_seat_that_was_back_and_goes_again_has_no_more_time_than_others() -> None:
    desk = taken_over()
    desk.match.note_return(Seat(0), 9100)
    assert desk.match.note_return(Seat(0), 9900) == []
    desk.hand()
    desk.now = 9900
    assert only(AcceptMove, desk.submit()).charged_ms == 900


def test_a_seat_that_lost_its_link_through_us_is_asked_again_in_full() -> None:
    desk = dealt(setup_ms=5000)
    desk.hand()
    desk.now = 900
    desk.match.await_return(Seat(0), 900)
    desk.hand()
    desk.now = 5000
    assert desk.tick() == [WakeAt(5900 + ALLOWED_MS + 1)]
    desk.match.note_return(Seat(0), 5000)
    desk.hand()
    desk.now = 5070
    assert only(AcceptMove, desk.submit()).charged_ms == 70


def test_a_seat_that_is_not_asked_when_its_link_is_lost_has_the_same_time() -> None:
    desk = dealt(setup_ms=5000)
    desk.match.await_return(Seat(1), 100)
    desk.now = 200
    desk.submit()
    desk.hand()
    desk.now = 5000
    desk.match.note_return(Seat(1), 5000)
    desk.now = 5040
    desk.hand()
    desk.now = 5050
    assert only(AcceptMove, desk.submit()).charged_ms == 10


def test_a_seat_that_could_not_be_told_where_to_go_has_a_set_up_time_from_then_on() -> None:
    desk = taken_over()
    assert desk.match.awaited_seats == {Seat(0), Seat(1)}
    assert desk.match.note_unreachable([Seat(0)], 1000, 13_000) == []
    desk.now = 13_000 + 5000 + ALLOWED_MS
    assert desk.tick() == [WakeAt(desk.now + 1)]


def test_a_seat_that_is_back_has_no_more_time_because_others_could_not_be_told() -> None:
    desk = taken_over()
    desk.match.note_return(Seat(0), 9100)
    assert desk.match.awaited_seats == {Seat(1)}
    desk.match.note_unreachable([Seat(0)], 1000, 9100)
    desk.now = 9100
    desk.hand()
    desk.now = 9170
    assert only(AcceptMove, desk.submit()).charged_ms == 70


def test_a_set_up_lasts_as_much_longer_as_nobody_could_be_told_where_to_go() -> None:
    desk = Desk(setup_ms=5000)
    desk.sit(0)
    assert desk.match.awaited_seats == {Seat(1)}
    assert desk.match.note_unreachable([Seat(1)], 700, 1000) == [WakeAt(5700)]


def test_a_bot_that_fills_the_server_and_hangs_up_gains_one_set_up_time_in_a_match() -> None:
    """It hangs up 0.9 s after each question, sits down again, and so on: it never answers."""
    desk = dealt(setup_ms=5000)
    desk.hand()
    while "default" not in kinds(desk.journal) and desk.now < 60_000:
        desk.now += 900
        desk.tick()
        desk.match.await_room(Seat(0), desk.now)
        desk.now += 100
        desk.do(desk.match.note_no_room([Seat(0)], 100, desk.now))
        desk.do(desk.match.note_return(Seat(0), desk.now))
        desk.hand()
    assert 5000 < desk.now <= 5000 + ALLOWED_MS + 1000


def test_a_seat_that_never_finds_room_is_awaited_for_one_set_up_time() -> None:
    desk = dealt(setup_ms=5000)
    shut_out = {}
    for now in range(1000, 60_000, 250):
        desk.match.note_no_room([Seat(0), Seat(1)], 250, now)
        shut_out[now] = desk.match.shut_out_seats(now)
    assert shut_out[5000] == []
    assert shut_out[6000] == shut_out[59_750] == [Seat(0)], "the other is not asked"
    desk.now = 60_000
    assert desk.match.awaited_seats == {Seat(0), Seat(1)}
    desk = Desk(setup_ms=5000)
    desk.sit(0)
    ends = [desk.match.note_no_room([Seat(1)], 250, now) for now in range(250, 9000, 250)]
    assert ends[-1] == [WakeAt(10_000)]
    assert [desk.match.shut_out_seats(now) for now in (8900, 9000)] == [[], [Seat(1)]]


def test_after_a_takeover_the_setup_time_starts_anew() -> None:
    desk = Desk(setup_ms=5000)
    desk.sit(0)
    desk.match = replay_match(desk.setup, desk.journal)
    assert only(WakeAt, desk.do(desk.match.take_over(2, 4000))).at_ms == 9000


def test_a_live_match_may_be_taken_over_too() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 1400
    desk.do(desk.match.take_over(2, 1400))
    desk.now = 1500
    desk.hand()
    assert only(AcceptMove, desk.submit()).charged_ms == 0


def test_strikes_rejections_banks_and_answers_live_on_in_the_journal() -> None:
    desk = dealt(increment_ms=10)
    desk.hand()
    desk.now = 1100
    desk.submit_illegal()
    desk.submit(request_id="kept")
    desk.now = 9000
    desk.tick()
    again = replay_match(desk.setup, desk.journal)
    assert again.position == desk.match.position
    assert again.reply_to(Seat(0), 1, "kept") == AcceptMove(Seat(0), "kept", 1100)
    assert again.position.seats[0].rejections == 1
    assert again.position.seats[1].strikes == 1
