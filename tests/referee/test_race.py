"""Calls in a race count by what they are charged, and nobody learns of one before it is decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matches.one_match import kinds
from matches.one_race import SEVEN, WINDOW_MS, RaceDesk, open_race, ready
from matches.random_matches import bounded

from seatwise_referee.decision import WakeAt
from seatwise_referee.game import Seat

# --- The order ------------------------------------------------------------------------------------------


def test_a_caller_with_seven_fitting_cards_scores_ten_and_the_others_what_they_have_laid() -> None:
    race = ready(0, tables=3)
    race.lay(1, 4), race.lay(2, -5)
    race.at(900).call(0)
    race.until(1000)
    assert race.callers() == [(0, 900)]
    assert race.points == (10, 4, 0)


def test_calls_are_ordered_by_what_they_are_charged_and_not_by_their_arrival() -> None:
    """Seat 1 is 40 ms away: it thought for 960 ms, and the call of seat 0 came after 990."""
    race = ready(0, 1, allowances=[1, 40])
    race.at(991).call(0)
    race.at(1000).call(1)
    race.until(1100)
    assert race.callers() == [(1, 960)]
    assert race.points == (7, 10)


@pytest.mark.parametrize("far", [0, 1])
def test_equal_thinking_is_a_tie_however_far_one_is_away(far: int) -> None:
    allowances = [1, 40] if far else [40, 1]
    race = ready(0, 1, allowances=allowances)
    race.at(501).call(1 - far)
    race.at(540).call(far)
    race.until(600)
    assert race.callers() == [(0, 500), (1, 500)]
    assert race.points == (10, 10)


@pytest.mark.parametrize(("later_ms", "tie"), [(0, True), (WINDOW_MS, True), (WINDOW_MS + 1, False)])
def test_the_window_of_a_tie_is_exact(later_ms: int, tie: bool) -> None:
    race = ready(0, 1)
    race.at(100).call(0)
    race.at(100 + later_ms).call(1)
    race.until(200)
    assert race.callers() == [(0, 100), (1, 100 + later_ms)][: 1 + tie]
    assert race.last("called").window_ms == WINDOW_MS
    assert race.points == (10, 10 if tie else 7)


def test_ties_are_measured_from_the_earliest_call_so_that_a_chain_of_them_does_not_creep() -> None:
    race = ready(0, 1, 2, 3, tables=4, tie_window_ms=10)
    for seat, now in ((0, 100), (1, 107), (2, 110), (3, 114)):
        race.at(now).call(seat)
    race.until(200)
    assert race.callers() == [(0, 100), (1, 107), (2, 110)]
    assert race.points == (10, 10, 10, 7)


def test_without_a_window_only_equal_charges_tie() -> None:
    race = ready(0, 1, 2, tables=3, tie_window_ms=0)
    for seat, now in ((0, 100), (1, 100), (2, 101)):
        race.at(now).call(seat)
    race.until(200)
    assert race.callers() == [(0, 100), (1, 100)]


def test_the_journal_names_the_earliest_first() -> None:
    race = ready(0, 1, allowances=[0, 40])
    race.at(100).call(0)
    race.at(137).call(1)
    race.until(200)
    assert race.callers() == [(1, 97), (0, 100)]
    assert [call.came_ms for call in race.last("called").calls] == [137, 100]
    assert race.last("called").request_ids == ("call of 1", "call of 0")


# --- The hold -------------------------------------------------------------------------------------------


def test_a_call_is_decided_when_nobody_else_can_be_earlier_or_tie_and_not_a_millisecond_sooner() -> None:
    race = ready(0, allowances=[0, 40])
    effects = race.at(100).call(0)
    assert effects[-1] == WakeAt(100 + 40 + WINDOW_MS + 1)
    race.at(145).tick()
    assert kinds(race.journal)[-1] == "dealt"
    race.at(146).tick()
    assert kinds(race.journal)[-2:] == ["called", "finished"]


def test_no_seat_waits_for_a_seat_that_has_called_itself() -> None:
    race = ready(0, 1, allowances=[0, 100])
    race.at(100).call(0)
    race.at(101).call(1)
    assert race.callers() == [(1, 1)]
    assert race.match.is_over


def test_a_held_call_is_told_to_nobody() -> None:
    race, twin = ready(0, tables=3), ready(0, tables=3)
    race.at(100), twin.at(100)
    race.lay(1, 3), twin.lay(1, 3)
    assert [effect for effect in race.call(0) if not isinstance(effect, WakeAt)] == []
    assert race.journal == twin.journal
    for now in (100, 103):
        race.at(now), twin.at(now)
        for seat in (1, 2):
            assert race.update(seat) == twin.update(seat)
        assert race.match.view_for(None) == twin.match.view_for(None)
        assert race.told == twin.told
        race.lay(1, 4), twin.lay(1, 4)


def test_the_caller_knows_that_it_has_called() -> None:
    race = ready(0)
    before = race.at(100).update(0)
    race.call(0)
    assert race.update(0) == before._replace(to_act=False, move_ms=0, allowance_ms=0)
    assert race.answers(0) == []


def test_nothing_is_told_before_the_journal_has_it() -> None:
    race = ready(0, rounds=2)
    race.at(100).call(0)
    race.at(200)
    before = [race.update(seat) for seat in (0, 1)]
    effects = race.match.tick(200)
    assert [race.update(seat) for seat in (0, 1)] == before
    race.do(effects)
    assert race.answers(0) == [(200, "ACCEPTED")]
    assert [race.update(seat).prompt for seat in (0, 1)] == [2, 2]
    assert all(race.update(seat).to_act for seat in (0, 1))


# --- The layout that counts -----------------------------------------------------------------------------


def test_cards_laid_after_the_call_do_not_count() -> None:
    race = ready(0, allowances=[0, 40])
    race.at(140).lay(1, 3)
    race.at(100).call(0)
    race.at(141).lay(1, 4)  # was charged 101
    race.until(200)
    assert race.lengths() == [7, 3]
    assert race.points == (10, 3)


def test_cards_that_come_after_the_call_but_are_charged_earlier_count() -> None:
    race = ready(0, allowances=[0, 40])
    race.at(100).call(0)
    race.at(139).lay(1, 2)
    race.at(140).lay(1, 3)
    race.at(141).lay(1, 4)
    race.until(200)
    assert race.lengths() == [7, 3]


def test_a_call_counts_with_the_layout_that_was_read_before_it_though_it_seems_to_have_come_before() -> None:
    """By two links of one bot; or it could void a match that it loses."""
    race = RaceDesk(2)
    race.at(100).lay(0, SEVEN)
    race.at(40).call(0)
    race.until(200)
    assert race.callers() == [(0, 100)]
    assert race.points == (10, 0)


def test_of_callers_who_tie_each_has_its_layout_at_its_own_call() -> None:
    race = ready(0)
    race.at(100).call(0)
    race.at(103).lay(1, SEVEN)
    race.at(104).call(1)
    race.until(200)
    assert race.points == (10, 10)


def test_the_layout_of_the_others_is_as_it_stood_at_the_earliest_call() -> None:
    race = ready(0, tables=3, allowances=[0, 40, 0])
    race.lay(1, SEVEN)
    race.at(98).lay(2, 4)
    race.at(100).call(0)
    race.lay(2, 5)
    race.at(137).call(1)  # charged 97: earlier than that of seat 0
    race.until(300)
    assert race.callers() == [(1, 97), (0, 100)]
    assert race.lengths() == [7, 7, 0]


def test_of_many_layouts_the_one_that_counts_is_kept_and_most_others_are_not() -> None:
    race = ready(0, allowances=[0, 40])
    for step in range(200):
        race.at(100 + 21 * step).lay(1, step % SEVEN)
    lays = open_race(race.match)._lays[Seat(1)]
    assert len(lays) < 25
    now = 100 + 21 * 199
    race.at(now - 20).call(0)  # charged 20 ms more than the last layout of seat 1
    race.until(now + 100)
    assert race.lengths() == [7, 199 % SEVEN]
    race = ready(0, allowances=[40, 0])
    for step in range(200):
        race.at(100 + 21 * step).lay(1, step % SEVEN)
    race.at(now + 1).call(0)  # charged 39 ms less than the last one, and 3 ms more than the last but two
    race.until(now + 100)
    assert race.lengths() == [7, 197 % SEVEN]


# --- Whatever comes when -----------------------------------------------------------------------------------


@given(
    calls=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 160)), min_size=4, max_size=4),
    window_ms=st.integers(0, 30),
)
@bounded(150)
def test_those_who_call_within_the_window_of_the_least_charge_are_the_callers(
    calls: list[tuple[int, int]], window_ms: int
) -> None:
    """Each call is an allowance and the time that was thought; they come in whatever order that gives."""
    race = ready(*range(4), tables=4, allowances=[each for each, _ in calls], tie_window_ms=window_ms)
    came = sorted((allowance + thought, seat) for seat, (allowance, thought) in enumerate(calls))
    for now, seat in came:
        race.until(now)
        race.call(seat)
    race.until(1000)
    first = min(thought for _, thought in calls)
    right = {seat for seat, (_, thought) in enumerate(calls) if thought <= first + window_ms}
    assert {seat for seat, _ in race.callers()} == right
    assert race.points == tuple(10 if seat in right else 7 for seat in range(4))
