"""Whom a call waits for, what a standstill does to it, and how a race goes on with another owner."""

from __future__ import annotations

import pytest
from matches.one_match import kinds
from matches.one_race import BUILD_MS, ROUND_MS, SEVEN, WINDOW_MS, RaceDesk, ready

from seatwise_referee.decision import WakeAt
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import CALL
from seatwise_referee.match import replay_match

# --- Whom a call waits for ------------------------------------------------------------------------------


@pytest.mark.parametrize(("handed_ms", "release_ms"), [(0, 106), (180, 286), (None, 250 + 100 + 106)])
def test_a_seat_that_has_not_been_handed_the_prompt_is_waited_for(
    handed_ms: int | None, release_ms: int
) -> None:
    """At the latest after 250 ms the time of that seat runs; and it might still get the whole allowance."""
    race = RaceDesk(2, are_seated=False)
    race.sit_all()
    race.hand_to(0)
    race.lay(0, SEVEN)
    race.at(100).call(0)
    if handed_ms is not None:
        race.at(max(100, handed_ms))
        race.match.note_delivery(Seat(1), 1, handed_ms, 0)
    race.tick()
    assert race.wake == release_ms


def test_a_seat_that_is_not_connected_is_waited_for_no_longer_than_others() -> None:
    race = ready(0)
    race.match.note_delivery(Seat(1), 1, 0, 0)  # as the shell says at once of who is not connected
    assert race.at(100).call(0)[-1] == WakeAt(106)


def test_a_seat_that_is_handed_the_prompt_before_its_round_trip_is_known_is_waited_for_like_the_furthest() -> (
    None
):
    race = RaceDesk(2, are_seated=False)
    race.sit_all()
    race.hand_to(0), race.hand_to(1, None)
    race.lay(0, SEVEN)
    assert race.at(100).call(0)[-1] == WakeAt(100 + 100 + WINDOW_MS + 1)
    assert race.match.note_allowance(Seat(1), 40) == [WakeAt(100 + 40 + WINDOW_MS + 1)]


def test_the_first_round_trip_counts_for_the_prompt_that_is_open_and_no_longer_one_does() -> None:
    race = RaceDesk(2, are_seated=False)
    race.sit_all()
    race.hand_to(0), race.hand_to(1, None)
    race.lay(0, SEVEN), race.lay(1, SEVEN)
    assert race.update(1).allowance_ms == 0
    race.at(100).call(0)
    race.at(139).match.note_allowance(Seat(1), 40)
    assert race.match.note_allowance(Seat(1), 90) == []
    race.at(140).call(1)
    assert race.callers() == [(0, 100), (1, 100)]


def test_a_round_trip_is_no_news_to_who_is_not_asked_or_was_never_handed_the_prompt() -> None:
    race = RaceDesk(2, are_seated=False)
    race.sit_all()
    assert race.match.note_allowance(Seat(1), 40) == []
    race.hand_to(1, 7)
    race.lay(1, SEVEN)
    race.at(100).call(1)
    race.until(500)
    assert race.match.note_allowance(Seat(1), 40) == []
    assert race.callers() == [(1, 93)]


def test_a_bot_with_two_links_that_answers_by_the_quicker_one_is_charged_by_the_quicker_one() -> None:
    race = ready(0, 1, allowances=[0, 90])
    race.at(100).call(0)
    assert race.match.note_allowance(Seat(1), 20) == [WakeAt(100 + 20 + WINDOW_MS + 1)]
    race.at(121).call(1)
    race.until(400)
    assert race.callers() == [(0, 100), (1, 101)]


def test_only_the_first_answer_to_a_prompt_says_how_near_the_bot_may_be() -> None:
    race = RaceDesk(2, are_seated=False)
    race.sit_all()
    assert race.match.note_answer(Seat(0), race.prompt, 30) is None  # it was guessed
    race.at(20).hand_to(0, 5)
    assert race.match.note_answer(Seat(0), race.prompt + 1, 30) is None
    assert race.match.note_answer(Seat(0), race.prompt, 30) == 30  # not 10: a delivery may be noted late
    assert race.match.note_answer(Seat(0), race.prompt, 999) is None
    assert race.match.note_answer(Seat(1), race.prompt, 30) is None


def test_a_seat_that_holds_back_its_pongs_gains_no_more_than_the_cap() -> None:
    race = ready(0, 1, allowances=[0, 5000], allowance_cap_ms=100)
    race.at(100).call(0)
    race.at(205).call(1)
    race.until(400)
    assert race.callers() == [(0, 100), (1, 105)]
    race = ready(0, 1, allowances=[0, 5000], allowance_cap_ms=100)
    race.at(100).call(0)
    race.at(206).call(1)
    assert race.callers() == [(0, 100)]
    assert race.answers(1)[-1] == (206, "STALE")


def test_a_window_is_never_smaller_than_the_lag_of_that_second() -> None:
    race = ready(0, 1)
    race.match.note_lag(30)
    race.at(100).call(0)
    race.at(130).call(1)
    race.until(200)
    assert race.callers() == [(0, 100), (1, 130)]
    assert race.last("called").window_ms == 30


def test_a_window_is_never_smaller_than_the_match_was_made_with() -> None:
    race = ready(0, 1)
    race.match.note_lag(30)
    race.match.note_lag(2)
    race.at(100).call(0)
    race.until(200)
    assert race.last("called").window_ms == 5


def test_a_window_may_grow_while_a_call_is_held_but_does_not_shrink() -> None:
    race = ready(0, 1, allowances=[0, 100])
    race.at(100).call(0)
    race.match.note_lag(30)
    race.match.note_lag(0)
    race.tick()
    assert race.wake == 100 + 100 + 30 + 1
    race.at(230).call(1)
    assert race.callers() == [(0, 100), (1, 130)]


# --- Standing still -------------------------------------------------------------------------------------


def test_a_standstill_is_taken_off_the_charge_of_what_comes_after_it() -> None:
    race = ready(0, 1)
    race.at(300).stand_still(200)
    race.at(310).call(0)
    race.until(400)
    assert race.callers() == [(0, 110)]


def test_a_standstill_that_is_noticed_later_is_taken_off_what_came_in_it() -> None:
    """The store was away from 100 to 400. What was laid and called meanwhile cost 100."""
    race = ready(0, 2, tables=3, allowances=[0, 0, 300], allowance_cap_ms=300)
    race.at(150).lay(1, 4)
    race.at(200).call(0)
    race.at(400).stand_still(300, "STORE")
    race.at(404).call(2)  # charged nothing: it is 300 ms away
    race.until(800)
    assert race.callers() == [(2, 0)]
    assert race.lengths() == [7, 0, 7]
    race = ready(0, 2, tables=3, allowances=[0, 0, 300], allowance_cap_ms=300)
    race.at(150).lay(1, 4)
    race.at(200).call(0)
    race.at(400).stand_still(300, "STORE")
    race.until(800)
    assert race.callers() == [(0, 100)]
    assert race.lengths() == [7, 4, 7]


def test_a_standstill_puts_a_release_off() -> None:
    race = ready(0, allowances=[0, 40])
    race.at(100).call(0)
    race.at(130).stand_still(20)
    race.at(145).tick()
    assert race.wake == 100 + 40 + 5 + 20 + 1
    race.until(200)
    assert race.callers() == [(0, 100)]
    assert race.last("called").at_ms == 166


def test_a_standstill_puts_the_end_of_the_round_off() -> None:
    race = RaceDesk(2)
    race.at(5000).stand_still(3000)
    assert race.wake == ROUND_MS + 3000 + 1
    race.until(ROUND_MS + 3000)
    assert kinds(race.journal)[-1] == "frozen"
    race.until(ROUND_MS + 3001)
    assert race.last("agreed").reason == "TIMED_OUT"


def test_an_answer_is_not_charged_for_waiting_behind_a_journal_entry() -> None:
    """All of it came before 110; it is read when the store has answered, and after a standstill was noticed."""
    race = ready(0, 1, tables=3)
    race.at(500)
    effects = race.match.note_standstill(20, "STALL", 500)
    effects += race.match.submit_move(Seat(0), 1, "a", CALL, 100)
    effects += race.match.submit_move(Seat(1), 1, "b", CALL, 103)
    race.do(effects)
    race.tick()
    assert race.callers() == [(0, 100), (1, 103)]
    assert [call.came_ms for call in race.last("called").calls] == [100, 103]


def test_a_call_is_never_decided_before_it_came_even_if_a_shell_hands_in_older_news_later() -> None:
    race = ready(0, 1)
    race.at(500).call(0)
    race.do(race.match.submit_move(Seat(1), 1, "older", CALL, 440))
    assert race.callers() == [(1, 440)]
    race = ready(0, 1, tie_window_ms=100)
    race.at(500).call(0)
    race.do(race.match.submit_move(Seat(1), 1, "older", CALL, 440))
    assert race.callers() == [(1, 440), (0, 500)]
    assert race.last("called").at_ms == 500


def test_an_answer_from_before_the_prompt_was_put_costs_nothing() -> None:
    race = ready(0, rounds=2)
    race.at(100).call(0)
    effects = race.match.tick(106)
    race.now = 150  # the store was slow
    race.do(effects)
    race.hand_all()
    lay = race.match.submit_move(Seat(0), 2, "early", CALL, 120)
    race.do(lay)
    assert race.last("rejected").at_ms == 120


# --- Another owner --------------------------------------------------------------------------------------


def test_a_new_owner_has_no_layouts_and_no_calls_of_an_open_race() -> None:
    race = ready(0, 1)
    race.at(100).call(0)
    race.at(3000).take_over()
    assert [race.update(seat).view.laid for seat in (0, 1)] == [(0, 0)] * 2
    assert [race.update(seat).to_act for seat in (0, 1)] == [True] * 2
    assert race.update(0).move_ms == BUILD_MS
    race.at(3100).hand_all()
    race.lay(0, SEVEN)
    race.at(3300).call(0, "again")
    race.until(3400)
    assert race.callers() == [(0, 200)]


def test_in_a_race_who_is_back_late_has_no_time_for_nothing() -> None:
    race = ready(0, 1)
    race.at(3000).take_over(0, 1)
    race.at(3100).hand_all()
    race.lay(1, SEVEN)
    race.at(3300).call(1)
    race.match.note_return(Seat(0), 3310)
    race.lay(0, SEVEN)
    race.at(3320).call(0)
    race.until(3400)
    assert race.callers() == [(1, 200)]


def test_a_race_waits_for_no_seat_that_cannot_connect_but_one_that_has_called_loses_nothing() -> None:
    race = RaceDesk(seats=3)
    race.lay(0, SEVEN)
    race.call(0)
    race.match.note_no_room([Seat(0), Seat(1)], 250, race.now)
    assert race.match.shut_out_seats(race.now) == [Seat(1)]
    race.match.note_return(Seat(1), race.now)
    assert race.match.shut_out_seats(race.now) == []


def test_after_a_takeover_all_go_on_from_the_last_charge_in_the_journal() -> None:
    race = ready(1, tables=3)
    race.lay(0, -7)
    race.at(4000).call(0)
    race.until(4100)
    assert race.callers() == [(0, 4000)]
    assert race.match.position.race_ms == 4000
    race.at(9000).take_over()
    assert race.update(1).view.layout == race.layout(1, SEVEN)  # it was in the entry of the false call
    race.hand_all(0, 30, 0)
    assert race.update(1).move_ms == BUILD_MS - 4000
    assert race.wake == 9000 + 30 + ROUND_MS - 4000 + 1
    race.at(9230).call(1)
    race.until(9300)
    assert race.callers() == [(1, 4200)]
    race.until(99_999)
    assert race.match.is_over


def test_the_time_of_a_round_is_over_at_the_same_charge_after_a_takeover() -> None:
    race = ready(1)
    race.lay(0, -7)
    race.at(4000).call(0)
    race.until(4100)
    race.at(9000).take_over()
    race.hand_all()
    race.until(9000 + ROUND_MS - 4000)
    assert kinds(race.journal)[-1] == "taken_over"
    race.until(9000 + ROUND_MS - 4000 + 1)
    assert [each.charge.charged_ms for each in race.last("agreed").asked] == [ROUND_MS + 1]


@pytest.mark.parametrize("resigns", [False, True])
def test_a_new_round_begins_at_nought_however_the_last_one_ended(resigns: bool) -> None:
    race = ready(1, tables=3, rounds=2)
    race.lay(0, -7)
    race.at(4000).call(0)
    race.until(4100)
    if resigns:
        race.resign(1)
        race.resign(2)
    else:
        race.call(1)
    race.until(4200)
    assert race.prompt == 2
    assert race.match.position.race_ms == 0
    assert race.update(0).move_ms == BUILD_MS


def test_a_replay_stands_where_the_live_match_stands() -> None:
    race = ready(1, tables=3, rounds=2)
    race.lay(0, -7)
    race.at(4000).call(0)
    race.until(4100)
    assert replay_match(race.setup, race.journal).position == race.match.position
    race.call(1)
    race.until(4200)
    assert replay_match(race.setup, race.journal).position == race.match.position


def test_a_call_that_is_charged_less_than_the_last_cards_of_its_seat_still_finds_them_on_the_table() -> None:
    """Two standstills that overlap are both taken off the call, and only in part off the cards. The match was void before."""
    race = RaceDesk(2)
    race.at(400).lay(0, 4)
    race.at(500).lay(0, SEVEN)
    race.at(510).stand_still(10)
    race.stand_still(200, "STORE")
    race.at(511).call(0)
    race.until(1000)
    [(seat, charged_ms)] = race.callers()
    assert (seat, race.points) == (0, (10, 0))
    assert charged_ms < 310, "less than the cards are charged"
