"""Set-up, moves right and wrong, and every way to the end of a match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matches.one_match import SEED, Desk, dealt, kinds, nonce, only

from seatwise_referee.decision import (
    AcceptMove,
    EndMatch,
    RejectRequest,
    ShowView,
    WakeAt,
)
from seatwise_referee.ending import Ending, RejectReason, VoidReason
from seatwise_referee.game import Seat
from seatwise_referee.journal import (
    Defaulted,
    Finished,
    Forfeited,
    JournalEntry,
    Moved,
    Sat,
    Voided,
)
from seatwise_referee.shuffle import deal_seed

# Set-up


def test_a_match_waits_for_its_seats_until_the_setup_time_is_over() -> None:
    desk = Desk(setup_ms=5000)
    assert only(WakeAt, desk.match.tick(0)).at_ms == 5000
    assert desk.match.position.state is None
    assert desk.match.view_for(Seat(0)) is None


def test_it_is_dealt_as_soon_as_the_last_seat_is_taken() -> None:
    desk = Desk(seats=3)
    desk.sit(2, 0)
    assert kinds(desk.journal) == ["sat", "sat"]
    effects = desk.sit(1)
    assert kinds(desk.journal) == ["sat", "sat", "sat", "dealt"]
    assert ShowView(Seat(0), 1) in effects


def test_the_deal_comes_from_the_seed_and_all_nonces_in_seat_order() -> None:
    desk = Desk(seats=3)
    desk.sit(2, 0, 1)
    seed = deal_seed(SEED, [nonce(0), nonce(1), nonce(2)])
    assert desk.match.position.state == desk.match.game.deal(3, seed, desk.setup.options)


def test_a_nonce_counts_only_the_first_time() -> None:
    desk = Desk(seats=3)
    desk.sit(0)
    effects = desk.do(desk.match.sit(Seat(0), b"x" * 32, 0))
    assert effects == [ShowView(Seat(0), 0)]
    assert desk.seat(0).nonce == nonce(0)


@pytest.mark.parametrize("bad", [None, b"", b"x" * 31, b"x" * 33])
def test_a_nonce_that_is_not_32_bytes_counts_as_none(bad: bytes | None) -> None:
    desk = Desk()
    desk.do(desk.match.sit(Seat(0), bad, 0))
    assert desk.journal == [Sat(seq=1, at_ms=0, seat=Seat(0), nonce=None)]


def test_a_seat_that_has_not_sat_when_the_setup_time_is_over_is_forfeited_and_played_for() -> None:
    desk = Desk(seats=3)
    desk.sit(1, 2)
    desk.now = 5000
    desk.tick()
    assert kinds(desk.journal) == ["sat", "sat", "forfeited", "dealt", "default"]
    assert desk.journal[2] == Forfeited(seq=3, at_ms=5000, seat=Seat(0), ending=Ending.NEVER_SAT)
    played = desk.journal[4]
    assert isinstance(played, Defaulted)
    assert (played.reason, played.prompt, played.moves[0].seat) == ("FORFEITED", 1, 0)
    assert desk.asked == 1


def test_the_setup_time_is_over_to_the_millisecond() -> None:
    desk = Desk(seats=3)
    desk.sit(0, 1)
    desk.now = 4999
    assert desk.tick() == [WakeAt(5000)]
    desk.now = 5000
    desk.tick()
    assert "dealt" in kinds(desk.journal)


def test_with_fewer_than_two_seats_taken_the_match_is_void() -> None:
    desk = Desk(seats=3)
    desk.sit(1)
    desk.now = 5000
    assert EndMatch() in desk.tick()
    assert kinds(desk.journal) == ["sat", "forfeited", "forfeited", "voided"]
    assert desk.match.position.end == Voided(seq=4, at_ms=5000, reason=VoidReason.TOO_FEW_SAT)
    assert desk.match.is_over


def test_a_match_of_a_league_begins_only_when_all_sit() -> None:
    desk = Desk(seats=3)
    desk.setup = desk.match.setup = replace(desk.setup, competition="leagues/cup")
    desk.sit(0, 1)
    desk.now = 5000
    desk.tick()
    assert desk.match.position.end == Voided(seq=4, at_ms=5000, reason=VoidReason.TOO_FEW_SAT)


def test_a_seat_that_comes_after_the_deal_sees_the_table_but_stays_forfeited() -> None:
    desk = Desk(seats=3)
    desk.sit(1, 2)
    desk.now = 5000
    desk.tick()
    before = desk.match.position
    assert desk.sit(0) == [ShowView(Seat(0), desk.prompt)]
    assert desk.match.position is before
    assert desk.match.update_for(Seat(0), 5000).view is not None


def test_sitting_down_again_shows_the_view_and_the_open_prompt() -> None:
    desk = dealt()
    assert desk.sit(0) == [ShowView(Seat(0), 1)]
    told = desk.match.update_for(Seat(0), 0)
    assert told.to_act
    assert told.view == desk.match.view_for(Seat(0))


def test_a_seat_that_resigned_before_the_deal_is_played_for_after_it() -> None:
    desk = Desk(seats=3)
    desk.sit(0)
    desk.do(desk.match.resign(Seat(0), 0))
    desk.sit(1, 2)
    assert kinds(desk.journal) == ["sat", "resigned", "sat", "sat", "dealt", "default"]


def test_a_seat_that_has_not_sat_cannot_resign() -> None:
    desk = Desk()
    assert only(RejectRequest, desk.do(desk.match.resign(Seat(0), 0))).reason is RejectReason.NOT_SEATED
    assert desk.journal == []


# Moves


def test_a_move_is_recorded_accepted_and_the_next_seat_is_asked() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 7
    move = desk.default_move()
    effects = desk.submit(move, "id")
    entry = only(JournalEntry, effects)
    assert entry == Moved(
        seq=4, at_ms=7, seat=Seat(0), prompt=1, move=desk.match.game.move_to_json(move),
        asked_ms=0, allowance_ms=0, charged_ms=7, request_id="id",
    )  # fmt: skip
    assert AcceptMove(Seat(0), "id", 7) in effects
    assert ShowView(Seat(1), 2) in effects
    assert not any(isinstance(effect, ShowView) and effect.seat == 0 for effect in effects)


def test_the_entries_of_a_command_come_before_all_else() -> None:
    desk = Desk(seats=3)
    desk.sit(1, 2)
    effects = desk.match.tick(5000)
    records = [isinstance(effect, JournalEntry) for effect in effects]
    assert records == sorted(records, reverse=True)


def test_a_repeated_request_gets_the_same_answer_and_moves_nothing() -> None:
    desk = dealt()
    move = desk.default_move()
    desk.now = 3
    first = desk.submit(move, "id")
    again = desk.do(desk.match.submit_move(Seat(0), 1, "id", move, 900))
    assert again == [only(AcceptMove, first)]
    assert desk.prompt == 2


def test_a_repeated_illegal_request_is_not_counted_twice() -> None:
    desk = dealt()
    first = desk.submit(desk.illegal_move(), "id")
    again = desk.do(desk.match.submit_move(Seat(0), 1, "id", desk.illegal_move(), 0))
    assert again == [only(RejectRequest, first)]
    assert desk.seat(0).rejections == 1


def test_a_second_answer_to_one_prompt_is_stale() -> None:
    desk = dealt()
    desk.submit()
    refused = only(
        RejectRequest, desk.do(desk.match.submit_move(Seat(0), 1, "other", desk.default_move(), 0))
    )
    assert (refused.reason, refused.request_id) == (RejectReason.STALE, "other")


def test_a_prompt_of_the_future_is_stale() -> None:
    desk = dealt()
    assert (
        only(RejectRequest, desk.do(desk.match.submit_move(Seat(0), 2, "id", None, 0))).reason
        is RejectReason.STALE
    )


def test_a_seat_that_is_not_asked_cannot_move() -> None:
    desk = dealt()
    before = desk.match.position
    refused = only(RejectRequest, desk.submit(seat=1))
    assert refused.reason is RejectReason.NOT_ASKED
    assert desk.match.position is before


def test_a_seat_that_has_not_sat_cannot_move() -> None:
    desk = Desk()
    assert (
        only(RejectRequest, desk.match.submit_move(Seat(0), 1, "id", None, 0)).reason
        is RejectReason.NOT_SEATED
    )


def test_no_seat_is_asked_before_the_deal() -> None:
    desk = Desk()
    desk.sit(0)
    assert (
        only(RejectRequest, desk.match.submit_move(Seat(0), 1, "id", None, 0)).reason
        is RejectReason.NOT_ASKED
    )


def test_after_the_end_everything_is_refused() -> None:
    desk = dealt()
    desk.play_out()
    end = desk.match.position
    assert (
        only(RejectRequest, desk.match.submit_move(Seat(0), 9, "new", None, 0)).reason
        is RejectReason.MATCH_OVER
    )
    assert only(RejectRequest, desk.match.resign(Seat(0), 0)).reason is RejectReason.MATCH_OVER
    assert desk.match.tick(10**9) == []
    assert desk.match.note_standstill(10, "STALL", 10**9) == []
    assert desk.match.take_over(2, 10**9) == []
    assert desk.match.void_match(VoidReason.ABORTED, 10**9) == []
    assert desk.match.position is end


def test_the_last_move_may_be_repeated_after_the_end() -> None:
    desk = dealt()
    desk.play_out()
    last = next(entry for entry in reversed(desk.journal) if isinstance(entry, Moved))
    answer = desk.match.submit_move(last.seat, last.prompt, last.request_id, None, 0)
    assert answer == [AcceptMove(last.seat, last.request_id, last.charged_ms)]


def test_a_match_ends_with_what_the_rules_say_and_tells_it() -> None:
    desk = dealt(rounds=2)
    while not desk.match.is_over:
        effects = desk.submit()
    assert EndMatch() in effects
    assert effects[-1] == WakeAt(None)
    outcome = desk.match.game.outcome(desk.match.position.state)
    assert outcome is not None
    end = desk.match.position.end
    assert isinstance(end, Finished)
    assert end.outcome == {
        "points": list(outcome.points),
        "ranks": list(outcome.ranks),
        "rounds": [list(each) for each in outcome.rounds],
    }
    assert end.result == {"ranks": list(outcome.ranks)}
    assert end.endings == (Ending.COMPLETED, Ending.COMPLETED)


# Illegal moves


def test_an_illegal_move_is_refused_at_once_and_the_clock_runs_on() -> None:
    desk = dealt()
    desk.hand()
    desk.now = 40
    refused = only(RejectRequest, desk.submit_illegal())
    assert refused.reason is RejectReason.ILLEGAL
    assert refused.message
    assert desk.prompt == 1
    desk.now = 100
    assert only(AcceptMove, desk.submit()).charged_ms == 100


def test_an_illegal_move_changes_nothing_but_its_count() -> None:
    desk = dealt()
    before = desk.match.position
    desk.submit_illegal()
    after = desk.match.position
    assert (after.state, after.prompt) == (before.state, before.prompt)
    assert (after.seats[0].rejections, after.seats[1]) == (1, before.seats[1])


def test_no_other_seat_sees_a_rejection_pass() -> None:
    desk = dealt()
    before = desk.match.update_for(Seat(1), 0)
    desk.submit_illegal()
    assert desk.match.update_for(Seat(1), 0) == before
    assert desk.match.update_for(Seat(0), 0).seen_seq == before.seen_seq + 1


def test_too_many_illegal_moves_forfeit_the_seat() -> None:
    desk = dealt(max_rejections=3)
    for _ in range(2):
        desk.submit_illegal()
    desk.submit()
    desk.play_until(0)
    assert desk.seat(0).left is None
    written = [effect for effect in desk.submit_illegal() if isinstance(effect, JournalEntry)]
    assert kinds(written)[:3] == ["rejected", "forfeited", "default"]
    assert desk.seat(0).left.ending is Ending.ILLEGAL_MOVES
    assert desk.asked == 1


def test_a_forfeited_seat_may_watch_but_not_move() -> None:
    desk = dealt(max_rejections=1)
    desk.submit_illegal()
    assert only(RejectRequest, desk.submit(seat=0)).reason is RejectReason.NOT_ASKED
    assert desk.match.update_for(Seat(0), 0).view is not None


# Strikes, exits, ends


def test_as_many_time_outs_as_are_allowed_forfeit_the_seat() -> None:
    desk = dealt(max_strikes=2)
    desk.now = 10_000
    desk.tick()
    assert desk.seat(0).left is None
    desk.play_until(0)
    desk.now += 10_000
    played, forfeit, *_ = (effect for effect in desk.tick() if isinstance(effect, JournalEntry))
    assert isinstance(played, Defaulted)
    assert isinstance(forfeit, Forfeited)
    assert forfeit.ending is Ending.TIMED_OUT
    assert desk.asked == 1


def test_a_forfeited_seat_is_played_for_to_the_end_at_once() -> None:
    desk = dealt(max_strikes=1)
    desk.now = 10_000
    desk.tick()
    desk.play_out()
    assert isinstance(desk.match.position.end, Finished)
    assert desk.match.position.end.endings == (Ending.TIMED_OUT, Ending.COMPLETED)
    assert desk.match.position.end.result == {"ranks": [2, 1]}
    reasons = [entry.reason for entry in desk.journal if isinstance(entry, Defaulted)]
    assert reasons[0] == "TIMED_OUT"
    assert set(reasons[1:]) == {"FORFEITED"}
    assert desk.now == 10_000


def test_a_seat_that_is_asked_may_resign() -> None:
    desk = dealt()
    desk.do(desk.match.resign(Seat(0), 0))
    assert kinds(desk.journal)[-2:] == ["resigned", "default"]
    assert desk.asked == 1


def test_a_seat_that_is_not_asked_may_resign() -> None:
    desk = dealt()
    desk.do(desk.match.resign(Seat(1), 0))
    assert kinds(desk.journal)[-1] == "resigned"
    assert desk.asked == 0
    desk.submit()
    played = desk.journal[5]
    assert isinstance(played, Defaulted)
    assert played.reason == "RESIGNED"
    assert desk.journal[4].at_ms == played.at_ms


def test_to_resign_twice_is_once() -> None:
    desk = dealt(seats=3)
    desk.do(desk.match.resign(Seat(1), 0))
    assert desk.match.resign(Seat(1), 0) == []


def test_a_seat_that_leaves_later_ranks_before_who_left_earlier() -> None:
    desk = dealt(seats=4)
    desk.do(desk.match.resign(Seat(3), 0))
    desk.do(desk.match.resign(Seat(1), 0))
    desk.play_out()
    end = desk.match.position.end
    assert isinstance(end, Finished)
    ranks: Any = end.result["ranks"]
    assert (ranks[1], ranks[3]) == (3, 4)
    assert {ranks[0], ranks[2]} in ({1, 2}, {1})


def test_with_nobody_left_the_match_is_abandoned() -> None:
    desk = dealt()
    desk.do(desk.match.resign(Seat(0), 0))
    assert EndMatch() in desk.do(desk.match.resign(Seat(1), 0))
    assert desk.match.position.end == Voided(seq=7, at_ms=0, reason=VoidReason.ABANDONED)
    assert desk.match.is_over


def test_a_match_of_which_all_resigned_before_the_deal_is_abandoned() -> None:
    desk = Desk(seats=3)
    desk.sit(0, 1)
    desk.do(desk.match.resign(Seat(0), 0))
    desk.do(desk.match.resign(Seat(1), 0))
    desk.now = 5000
    desk.tick()
    assert isinstance(desk.match.position.end, Voided)
    assert desk.match.position.end.reason == VoidReason.ABANDONED


@pytest.mark.parametrize("is_dealt", [False, True])
def test_a_match_can_be_voided_at_any_time(is_dealt: bool) -> None:
    desk = dealt() if is_dealt else Desk()
    effects = desk.do(desk.match.void_match(VoidReason.ABORTED, 12))
    assert EndMatch() in effects
    assert effects[-1] == WakeAt(None)
    assert isinstance(desk.match.position.end, Voided)
    assert desk.prompt == 0
