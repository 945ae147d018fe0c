"""The matches of a schedule are found again in the server's log, by the names they were created under."""

from __future__ import annotations

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.schedule import Duplicate, ScheduledMatch, SoFar
from seatwise_server.league.naming import id_without_deal, request_id_of, so_far_of
from seatwise_server.resource_names import match_name_for

LEAGUE = "leagues/cup-a1b2c3"
CUP = Knockout(tuple(f"bots/b{seed}/versions/1" for seed in range(4)), duplicate=Duplicate.TRAVELLING)
SEMIFINALS = CUP.due_matches(SoFar())


def name_of(called: str) -> str:
    return match_name_for(request_id_of(LEAGUE, called))


def won(match: ScheduledMatch, called: str = "") -> LoggedResult:
    """By its first seat."""
    return LoggedResult(1, name_of(called or match.id), match.bots, (9, 1), (1, 2), ("COMPLETED",) * 2)


def test_a_match_with_cards_of_its_own_is_found_too():
    first, second = SEMIFINALS
    results = [won(first), won(second, id_without_deal(second.id))]
    so_far = so_far_of(LEAGUE, CUP, results, {})
    assert list(so_far.results) == [first.id, second.id]
    assert [match.bots for match in CUP.due_matches(so_far)] != [match.bots for match in SEMIFINALS]


def test_a_match_that_was_given_up_lets_the_bracket_go_on():
    first, second = SEMIFINALS
    attempts = [second.id, f"{second.id}.2", f"{second.id}.3"]
    so_far = so_far_of(LEAGUE, CUP, [won(first)], {name_of(each): None for each in attempts})
    assert set(so_far.voids) == set(attempts)
    (final,) = CUP.due_matches(so_far)
    assert final.round == 2


def test_a_match_outside_the_schedule_keeps_its_name():
    stray = LoggedResult(1, "matches/stray", SEMIFINALS[0].bots, (9, 1), (1, 2), ("COMPLETED",) * 2)
    so_far = so_far_of(LEAGUE, CUP, [stray], {"matches/void": None})
    assert (dict(so_far.results), so_far.voids) == ({"matches/stray": stray}, {"matches/void"})
