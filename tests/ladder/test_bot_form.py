"""What the log says of a version beside its rating."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.bot_form import (
    PAIR_WINDOW_MS,
    PAUSES_MS,
    REMEMBERED_OPPONENTS,
    BotForm,
    BotForms,
    PairMeetings,
    rate_log,
    rated_results,
)

A, B, C = ("bots/a/versions/1", "bots/b/versions/1", "bots/c/versions/1")


def compute_forms(results: Iterable[LoggedResult]) -> BotForms:
    """The forms of a whole log."""
    found = BotForms()
    for each in results:
        found.apply_result(each)
    return found


def match(seq: int, bots: tuple[str, ...], *endings: str) -> LoggedResult:
    ranks = tuple(range(1, len(bots) + 1))
    return LoggedResult(seq, f"matches/{seq}", bots, ranks, ranks, endings or ("COMPLETED",) * len(bots))


def test_opponents_and_seats_are_counted() -> None:
    form = compute_forms([match(1, (A, B, C)), match(2, (B, A)), match(3, (B, A))]).form_of(A)
    assert form.recent_opponents == (B, B, B, C)
    assert form.seat_counts == (1, 2, 0, 0)
    assert form.matches == 3


def test_only_the_last_opponents_are_kept() -> None:
    form = compute_forms(match(n, (A, f"bots/x{n}/versions/1")) for n in range(1, 40)).form_of(A)
    assert len(form.recent_opponents) == REMEMBERED_OPPONENTS
    assert form.recent_opponents[0] == "bots/x39/versions/1"


def test_a_result_that_comes_twice_counts_once() -> None:
    found = BotForms()
    for result in (match(1, (A, B)), match(2, (A, B)), match(1, (A, B)), match(2, (A, B))):
        found.apply_result(result)
    assert found.form_of(A).matches == 2


def test_three_forfeits_in_a_row_are_a_fault_that_names_them() -> None:
    log = [
        match(1, (A, B), "TIMED_OUT", "COMPLETED"),
        match(2, (B, A), "COMPLETED", "NEVER_SAT"),
        match(3, (A, B), "ILLEGAL_MOVES", "COMPLETED"),
    ]
    assert compute_forms(log[:2]).form_of(A).off_reason() == ""
    assert compute_forms(log).form_of(A).off_reason() == (
        "forfeited 3 matches in a row: matches/1 (TIMED_OUT), matches/2 (NEVER_SAT), matches/3 (ILLEGAL_MOVES)"
    )
    assert compute_forms(log).form_of(B).off_reason() == ""


def test_a_match_seen_through_or_resigned_ends_the_row() -> None:
    """Who resigns has answered."""
    for ending in ("COMPLETED", "RESIGNED"):
        endings = ("TIMED_OUT", "TIMED_OUT", ending, "TIMED_OUT")
        log = [match(n, (A, B), end, "COMPLETED") for n, end in enumerate(endings, 1)]
        assert compute_forms(log).form_of(A).off_reason() == ""


def test_a_pardon_starts_the_row_anew() -> None:
    found = compute_forms([match(n, (A, B), "NEVER_SAT", "COMPLETED") for n in range(1, 4)])
    assert found.form_of(A).off_reason()
    found.reinstate_bot(A)
    assert found.form_of(A).off_reason() == ""
    assert found.form_of(A).matches == 3
    assert found.form_of(C) == BotForm()


def test_each_removal_lasts_longer_and_the_third_until_the_operator_ends_it() -> None:
    found, now_ms = BotForms(), 10**12
    for pause_ms in PAUSES_MS:
        for number in range(3):
            found.note_no_show(A, f"matches/{now_ms}-{number}", now_ms)
        assert found.form_of(A).back_ms == now_ms + pause_ms
        found.note_no_show(A, "matches/late", now_ms + 1)
        found.let_bot_return(A, now_ms + pause_ms - 1)
        assert found.form_of(A).is_off, "too early, and a further forfeit makes the pause no longer"
        now_ms += pause_ms
        found.let_bot_return(A, now_ms)
        assert not found.form_of(A).is_off
    for number in range(3):
        found.note_no_show(A, f"matches/{number}", now_ms)
    found.let_bot_return(A, now_ms + 10**12)
    assert (found.form_of(A).is_off, found.form_of(A).back_ms) == (True, 0)
    found.reinstate_bot(A)
    assert (found.form_of(A).is_off, found.form_of(A).removals) == (False, 0)


def test_a_bot_on_the_ladder_has_nothing_to_forget() -> None:
    """Two forfeits, its own pardon, two more forfeits: that would be a way to forfeit without end."""
    found = BotForms()
    for number in range(3):
        found.note_no_show(A, f"matches/{number}", number)
        found.let_bot_return(A, number)
    assert found.form_of(A).is_off


def test_a_match_that_ends_after_the_removal_does_not_end_it() -> None:
    found = compute_forms([match(n, (A, B), "NEVER_SAT", "COMPLETED") for n in range(1, 4)])
    found.apply_result(match(4, (A, B)))
    assert found.form_of(A).is_off


def names(count: int) -> list[str]:
    return [f"bots/b{number:02}/versions/1" for number in range(count)]


def field_log(count: int) -> list[LoggedResult]:
    """One match of each pair of bots at tables of two: a second is one match."""
    pairs = [(one, other) for one in names(count) for other in names(count) if one < other]
    return [replace(match(seq, pair), log_ms=1000 * seq) for seq, pair in enumerate(pairs, 1)]


def test_a_pair_is_rated_three_times_in_forty_matches_of_a_field_of_twenty() -> None:
    log = field_log(20)
    one, other = names(2)
    alone = [replace(match(seq, (one, other)), log_ms=10**6) for seq in range(len(log) + 1, len(log) + 101)]
    assert list(rated_results(log + alone)) == log + alone[:2]
    assert rate_log(log + alone).rating_of(one).matches == 21
    meetings = PairMeetings()
    assert all(map(meetings.admit_result, log + alone[:1]))
    assert meetings.barred_opponents(one, 2) == frozenset()
    assert meetings.barred_opponents(one, 2, at_tables={other: 1}) == {other}, (
        "a match that still runs counts"
    )


def test_a_small_field_may_meet_more_often() -> None:
    rated = {}
    for count in (2, 3, 4, 8):
        log = field_log(count)
        alone = [match(seq, tuple(names(2))) for seq in range(len(log) + 1, len(log) + 101)]
        rated[count] = len(list(rated_results(log + alone))) - len(log) + 1
    assert rated == {2: 101, 3: 30, 4: 20, 8: 8}


def test_after_a_week_a_pair_may_meet_again_and_bots_that_left_are_not_of_the_field() -> None:
    log = field_log(20)
    one, other = names(2)
    late = [
        replace(match(seq, (one, other)), log_ms=PAIR_WINDOW_MS + 10**6)
        for seq in range(len(log) + 1, len(log) + 101)
    ]
    assert len(list(rated_results(log + late))) == len(log) + 100, "the others are gone"
    meetings = PairMeetings()
    assert all(map(meetings.admit_result, log))
    before = meetings.barred_opponents(one, 2, at_tables={other: 2})
    assert meetings.barred_opponents(one, 2, PAIR_WINDOW_MS + 10**6, {other: 2}) == frozenset() != before
    assert meetings.barred_opponents(one, 2, at_tables={other: 2}) == before, "asking has changed nothing"
