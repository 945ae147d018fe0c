"""What a seat is answered in a race: nothing to a layout, the call's due to a call, and a reason to what is refused."""

from __future__ import annotations

import pytest
from matches.one_match import kinds
from matches.one_race import SEVEN, RaceDesk, ready

from seatwise_referee.decision import AcceptMove, RejectRequest, ShowChange, ShowView, WakeAt
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import CALL, Lay, Stop
from seatwise_referee.race_prompt import MOST_LAYS_A_SECOND


def test_a_repeat_of_a_held_call_waits_and_then_gets_the_same_answer() -> None:
    race = ready(0, rounds=2)
    race.at(100).call(0, "mine")
    assert race.at(101).call(0, "mine") == [WakeAt(106)]
    race.until(110)
    assert race.answers(0) == [(106, "ACCEPTED")]
    again = race.match.submit_move(Seat(0), 1, "mine", CALL, 300)
    assert again == [AcceptMove(Seat(0), "mine", 100)]


def test_no_seat_moves_after_its_own_call() -> None:
    race = ready(0)
    race.at(100).call(0)
    for move in (CALL, Lay(race.layout(0, 8 - 1)), Lay(())):
        race.play(0, move)
    assert race.answers(0) == [(100, "NOT_ASKED")] * 3
    race.until(200)
    assert race.lengths() == [7, 0]


def test_a_call_with_fewer_than_seven_cards_is_illegal_and_in_the_journal() -> None:
    race = RaceDesk(2)
    race.lay(0, 6)
    race.at(100).call(0)
    entry = race.last("rejected")
    assert (entry.seat, entry.reason, entry.message) == (
        0, "ILLEGAL", "you call with 7 fitting cards; you have laid 6",
    )  # fmt: skip
    assert race.answers(0) == [(100, "ILLEGAL")]
    race.lay(0, SEVEN)
    race.call(0, "again")
    race.until(200)
    assert race.callers() == [(0, 100)]


def test_a_later_call_is_stale_when_the_round_is_over() -> None:
    race = ready(0, 1, rounds=2)
    race.at(100).call(0)
    race.at(106).call(1)
    assert [(effect.seat, type(effect)) for _, effect in race.told if isinstance(effect, AcceptMove | RejectRequest)] == [
        (0, AcceptMove), (1, RejectRequest),
    ]  # fmt: skip
    assert race.answers(1) == [(106, "STALE")]
    assert isinstance(race.match.submit_move(Seat(1), 1, "late", CALL, 300)[0], RejectRequest)


def test_lays_and_offers_are_neither_acknowledged_nor_journaled() -> None:
    race = RaceDesk(2)
    effects = [*race.lay(0, 3), *race.offer(0), *race.offer(0, on=False)]
    assert {type(effect) for effect in effects} == {ShowChange, WakeAt}
    assert kinds(race.journal) == ["sat", "sat", "dealt"]


def test_a_layout_is_shown_at_once_and_only_to_those_who_may_see_it() -> None:
    race = RaceDesk(3)
    race.lay(0, 3)
    assert race.match.view_for(None).laid == (3, 0, 0)
    assert race.told[-1] == (0, ShowChange((Seat(0), Seat(1), Seat(2))))
    moved = tuple(place._replace(x=place.x + 1) for place in race.layout(0, 3))
    race.play(0, Lay(moved))
    assert race.told[-1] == (0, ShowChange((Seat(0),)))
    assert race.update(0).view.layout == moved
    assert not any(isinstance(effect, ShowView) for _, effect in race.told[-2:])


# --- Floods and junk ------------------------------------------------------------------------------------


def test_more_than_so_many_lays_a_second_are_too_many() -> None:
    race = ready(0)
    for number in range(MOST_LAYS_A_SECOND):
        race.at(10 * number).lay(0, number % 7)
    assert race.answers(0) == [(10 * (MOST_LAYS_A_SECOND - 1), "TOO_MANY")]  # one was laid before
    race.at(999).lay(0, 3), race.at(1000).lay(0, 4)
    assert race.answers(0)[1:] == [(999, "TOO_MANY")]
    assert race.match.view_for(None).laid == (4, 0)
    race.lay(1, 3)
    assert race.answers(1) == []


def test_a_call_is_never_too_many() -> None:
    race = RaceDesk(2)
    for _ in range(MOST_LAYS_A_SECOND + 1):
        race.lay(0, SEVEN)
    race.at(10).call(0)
    race.until(100)
    assert race.callers() == [(0, 10)]


@pytest.mark.parametrize("junk", [None, (), "call", 3, Stop()])
def test_an_answer_that_is_no_move_is_illegal_and_in_the_journal(junk: object) -> None:
    race = RaceDesk(2)
    race.lay(0, 3)
    race.play(0, junk)
    assert race.last("rejected").reason == "ILLEGAL"
    race.lay(0, 4)
    assert race.match.view_for(None).laid == (4, 0)
    assert race.update(0).to_act
