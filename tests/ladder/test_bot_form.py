"""What the log says of a version beside its rating."""

from __future__ import annotations

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.ladder.bot_form import REMEMBERED_OPPONENTS, BotForm, BotForms, compute_forms

A, B, C = ("bots/a/versions/1", "bots/b/versions/1", "bots/c/versions/1")


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
