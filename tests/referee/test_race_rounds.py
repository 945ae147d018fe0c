"""How a round ends without a right call: by false ones, by agreement, by its time; and who leaves in it."""

from __future__ import annotations

from matches.one_match import kinds
from matches.one_race import BUILD_MS, GRACE_MS, ROUND_MS, SEVEN, RaceDesk, ready

from seatwise_referee.decision import AcceptMove, RejectRequest, ShowView
from seatwise_referee.ending import Ending
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import Lay
from seatwise_referee.journal import DefaultMove
from seatwise_referee.verify import verify_line

# --- False calls ----------------------------------------------------------------------------------------


def test_a_seat_that_calls_falsely_is_out_and_the_others_build_on() -> None:
    race = ready(1, tables=3)
    race.lay(0, -7), race.lay(2, 3)
    race.at(100).call(0)
    race.lay(2, 5)
    race.until(110)
    assert race.callers() == [(0, 100)]
    assert race.answers(0) == [(106, "ACCEPTED")]
    assert [(now, effect.seat) for now, effect in race.told if isinstance(effect, ShowView) and now] == [
        (106, 1), (106, 2),
    ]  # fmt: skip
    assert race.prompt == 1
    assert [race.update(seat).to_act for seat in range(3)] == [False, True, True]
    assert race.match.view_for(None).out == (0,)
    assert race.match.view_for(None).laid == (7, 7, 5)
    race.lay(0, 3)
    assert race.answers(0)[-1] == (110, "NOT_ASKED")
    race.at(200).call(1)
    race.until(300)
    assert race.callers() == [(1, 200)]
    assert race.lengths() == [7, 7, 5]
    assert race.points == (0, 10, 5)


def test_a_false_call_ends_the_round_if_the_match_is_made_so() -> None:
    race = ready(1, tables=3, false_call="ends")
    race.lay(0, -7), race.lay(2, 3)
    race.at(100).call(0)
    race.until(110)
    assert race.match.is_over
    assert race.points == (0, 7, 3)


def test_a_right_call_among_those_that_tie_ends_the_round() -> None:
    race = ready(1, tables=3)
    race.lay(0, -7)
    race.at(100).call(0)
    race.at(105).call(1)
    race.until(200)
    assert race.callers() == [(0, 100), (1, 105)]
    assert race.points == (0, 10, 0)


def test_a_call_that_is_held_behind_a_false_one_keeps_its_own_place() -> None:
    """Seats 1 and 3 call outside of the window of the false call, and within that of each other."""
    race = ready(1, 3, tables=4)
    race.lay(0, -7)
    for seat, now in ((0, 100), (1, 106), (3, 111)):
        race.at(now).call(seat)
    race.until(110)
    assert race.callers() == [(0, 100)]
    race.until(200)
    assert race.callers() == [(1, 106), (3, 111)]
    assert [
        seat for now, effect in race.told if isinstance(effect, AcceptMove) for seat in [effect.seat]
    ] == [
        0,
        1,
        3,
    ]
    assert race.points == (0, 10, 0, 10)


def test_no_seat_waits_for_a_seat_that_is_out() -> None:
    race = ready(1, allowances=[100, 0])
    race.lay(0, -7)
    race.at(100).call(0)  # charged nothing
    race.at(106).call(1)
    assert [race.callers(0), race.callers(1)] == [[(0, 0)], [(1, 106)]]
    assert race.match.is_over


def test_when_all_have_called_falsely_the_round_is_over_and_nobody_scores() -> None:
    race = RaceDesk(2, rounds=2)
    race.lay(0, -7), race.lay(1, -8)
    race.at(100).call(0)
    race.at(200).call(1)
    race.until(300)
    assert kinds(race.journal)[3:] == ["called", "called"]
    assert race.points == (0, 0)
    assert race.prompt == 2


# --- Agreement ------------------------------------------------------------------------------------------


def test_when_all_agree_the_round_is_over_at_once() -> None:
    race = RaceDesk(2, rounds=2)
    race.lay(0, 4), race.lay(1, -3)
    race.at(100).offer(0)
    assert race.match.view_for(None).offers == (0,)
    race.lay(0, 5)
    race.at(200).offer(1)
    entry = race.last("agreed")
    assert (entry.at_ms, entry.reason, entry.silent, entry.asked) == (200, "OFFERED", (), ())
    assert race.lengths("agreed") == [5, 3]
    assert race.points == (5, 0)
    assert race.prompt == 2


def test_an_offer_that_is_withdrawn_is_none() -> None:
    race = RaceDesk(2)
    race.offer(0), race.offer(0, on=False), race.offer(1)
    assert race.prompt == 1
    assert race.match.view_for(None).offers == (1,)
    race.offer(0)
    assert race.match.is_over


def test_the_end_that_all_agree_to_is_shown_when_the_journal_has_it() -> None:
    race = RaceDesk(2, rounds=2)
    race.offer(0)
    before = [race.update(seat) for seat in (0, 1)]
    effects = race.match.submit_move(Seat(1), 1, "on", race.match.game.move_from_json({"offer_end": True}), 0)
    assert [race.update(seat) for seat in (0, 1)] == before
    race.do(effects)
    assert race.match.view_for(None).round == 2


def test_a_seat_that_agrees_cannot_call_before_it_withdraws() -> None:
    race = ready(0)
    race.offer(0)
    race.at(100).call(0, "no")
    assert race.last("rejected").message == "you agree to end the round: withdraw your offer first, then call"
    race.offer(0, on=False)
    race.call(0, "yes")
    race.until(200)
    assert race.points == (10, 0)


def test_a_held_call_comes_before_an_agreement() -> None:
    """Seat 0 has called, so it does not agree: all the others may offer what they like."""
    race = ready(0, tables=3, allowances=[0, 40, 40])
    race.at(100).call(0)
    race.at(120).offer(1), race.offer(2)
    race.until(200)
    assert kinds(race.journal)[4:] == ["called", "finished"]
    assert race.points == (10, 0, 0)


def test_a_false_call_of_the_only_one_who_did_not_agree_ends_the_round() -> None:
    race = RaceDesk(3, rounds=2)
    race.lay(0, -7), race.lay(1, 3)
    race.at(100).call(0)
    race.offer(1), race.offer(2)
    race.until(200)
    assert kinds(race.journal)[4:] == ["called", "agreed"]
    assert race.points == (0, 3, 0)


# --- The time of a round --------------------------------------------------------------------------------


def test_the_round_is_over_when_the_time_of_all_is_and_takes_nothing_from_the_bank() -> None:
    race = RaceDesk(2, rounds=2, allowances=[0, 40], bank_ms=99_999)
    race.lay(0, 2), race.lay(1, 5)
    race.until(ROUND_MS + 40)
    assert kinds(race.journal)[-1] == "dealt"
    race.until(ROUND_MS + 41)
    entry = race.last("agreed")
    assert (entry.reason, entry.silent) == ("TIMED_OUT", ())
    assert [(each.seat, each.charge.charged_ms) for each in entry.asked] == [
        (0, ROUND_MS + 41),
        (1, ROUND_MS + 1),
    ]
    assert race.points == (2, 5)
    assert [race.seat(seat).bank_ms for seat in (0, 1)] == [99_999] * 2
    assert race.update(0).bank_ms == 0  # there is none in a race, and nobody is told of one


def test_an_answer_after_the_time_is_too_late() -> None:
    race = ready(0, 1, rounds=2, allowances=[0, 40])
    race.at(ROUND_MS + 1).lay(0, 3)
    race.call(0)
    assert race.answers(0) == [(ROUND_MS + 1, "TOO_LATE")] * 2
    race.at(ROUND_MS + 40).lay(1, 2)
    race.until(ROUND_MS + 50)
    assert race.lengths("agreed") == [7, 2]
    late = race.match.submit_move(Seat(0), 1, "later", Lay(()), race.now)
    assert isinstance(late[0], RejectRequest)
    assert str(late[0].reason) == "TOO_LATE"


def test_a_call_at_the_last_moment_counts_and_nobody_waits_for_calls_that_would_be_too_late() -> None:
    race = ready(0)
    assert race.at(ROUND_MS).call(0)[-1].at_ms == ROUND_MS + 1  # type: ignore[union-attr]
    race.until(ROUND_MS + 1)
    assert race.callers() == [(0, ROUND_MS)]
    assert race.match.is_over


def test_a_seat_that_gave_no_sign_of_life_has_a_strike_and_is_forfeited_for_so_many() -> None:
    race = RaceDesk(3, rounds=3, max_strikes=2)
    for number, silent in ((1, (1, 2)), (2, (2,))):
        race.hand_all()
        race.lay(0, 1)
        if number == 2:
            race.play(1, Lay(((), ())))  # an illegal move is a sign of life too
        race.until(race.now + BUILD_MS + GRACE_MS + 1)
        assert race.last("agreed").silent == silent
    assert kinds(race.journal)[-3:] == ["agreed", "forfeited", "default"]
    assert (race.last("forfeited").seat, race.last("forfeited").ending) == (2, Ending.TIMED_OUT)
    assert race.last("default").moves == (DefaultMove(Seat(2), {"stop": True}),)
    assert [race.seat(seat).strikes for seat in range(3)] == [0, 1, 2]
    assert race.match.position.prompt.seats == {0, 1}  # type: ignore[union-attr]


def test_an_offer_or_a_call_is_a_sign_of_life() -> None:
    race = RaceDesk(3)
    race.lay(1, -7), race.call(1), race.offer(0)
    race.until(ROUND_MS + 1)
    assert race.last("agreed").silent == (2,)


# --- Who leaves -----------------------------------------------------------------------------------------


def test_a_seat_that_resigns_keeps_what_was_laid() -> None:
    race = ready(0, tables=3)
    race.lay(1, 5), race.lay(2, 2)
    race.at(100).resign(1)
    assert kinds(race.journal)[-2:] == ["resigned", "default"]
    assert [list(each.move) for each in race.last("default").moves] == [["lay"], ["stop"]]
    assert race.match.view_for(None).laid == (7, 5, 2)
    race.at(200).call(0)
    race.until(300)
    assert race.points == (10, 5, 2)
    assert race.last("finished").result == {"ranks": [1, 3, 2]}


def test_a_seat_that_is_forfeited_in_mid_race_keeps_what_was_laid() -> None:
    race = ready(0, tables=3, max_rejections=2)
    race.lay(1, 5)
    race.play(1, Lay(((), ()))), race.play(1, None)
    assert kinds(race.journal)[-4:] == ["rejected", "rejected", "forfeited", "default"]
    race.at(200).call(0)
    race.until(300)
    assert race.points == (10, 5, 0)


def test_no_seat_waits_for_one_that_has_left() -> None:
    race = ready(0, tables=3, allowances=[0, 100, 0])
    race.at(100).call(0)
    race.at(110)
    race.resign(1)
    assert kinds(race.journal)[-4:] == ["resigned", "default", "called", "finished"]


def test_an_agreement_that_lacked_only_who_leaves_ends_the_round() -> None:
    race = RaceDesk(3, rounds=2)
    race.offer(0), race.offer(2)
    race.at(50).resign(1)
    assert kinds(race.journal)[-4:] == ["resigned", "default", "agreed", "default"]
    assert race.prompt == 2
    assert race.match.view_for(None).laid == (0, 0, 0)


def test_a_seat_that_leaves_takes_its_held_call_back_and_is_told() -> None:
    race = ready(0, tables=3)
    race.at(100).call(0)
    race.resign(0)
    assert race.answers(0) == [(100, "NOT_ASKED")]
    race.until(300)
    assert "called" not in kinds(race.journal)
    assert race.match.view_for(None).laid == (7, 0, 0)


def test_of_equal_points_the_one_with_more_tens_is_ranked_first_in_ratings_too() -> None:
    race = ready(0, rounds=2)
    race.lay(1, 5)
    race.at(100).call(0)
    race.until(200)
    race.hand_all()
    race.lay(0, 2), race.lay(1, SEVEN)
    race.offer(0), race.offer(1)
    finished = race.last("finished")
    assert (finished.outcome["points"], finished.outcome["ranks"]) == ([12, 12], [1, 2])
    assert finished.result == {"ranks": [1, 2]}
    assert verify_line(race.line()).fault is None
