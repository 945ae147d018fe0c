"""Who does not sit down loses, in every format; where the server may have been at fault, nobody does."""

from __future__ import annotations

from random import Random

import pytest
from seasons.one_season import league_of

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.ab_test import ABTest
from seatwise_server.competition.schedules.knockout import Knockout
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import (
    Duplicate,
    ScheduledMatch,
    SoFar,
    follow_attempts,
    list_walk_over_meetings,
    list_walk_overs,
)
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.competition.standings.ranking import rank_entrants
from seatwise_server.league.report.facts import Facts
from seatwise_server.league.report.sections import extra_sections
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import Entrant
from seatwise_server.league.table import rows_of

NAMES = tuple(f"bots/b{number}/versions/1" for number in range(8))


def played(match: ScheduledMatch, *points: int) -> LoggedResult:
    """With these points by seat."""
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(1, f"matches/{match.id}", match.bots, points, ranks, ("COMPLETED",) * len(points))


def by_name(match: ScheduledMatch) -> LoggedResult:
    """The first of the names wins."""
    return played(match, *(10 - NAMES.index(bot) for bot in match.bots))


def missed(match: str, *attempts: tuple[str, ...] | None) -> SoFar:
    """Void attempts, each with the bots to blame; None for one that was void for another reason."""
    ids = [match, *(f"{match}.{number}" for number in range(2, len(attempts) + 1))]
    absences = {each: absent for each, absent in zip(ids, attempts, strict=True) if absent is not None}
    return SoFar({}, ids, absences)


A, B, C, D = NAMES[:4]


@pytest.mark.parametrize(
    ("attempts", "lost", "next_id"),
    [
        ([(A,)], (), "m.2"),
        ([(A,), (A,)], (A,), None),
        ([(A,), ()], (), "m.3"),
        ([(A,), (), (A,)], (A,), None),
        ([(), (), (), ()], (), "m.5"),
        ([(A,), (B,)], (), "m.3"),
        ([(A,), (B,), (A,)], (A,), None),
        ([(A, B), (A, B)], (A, B), None),
        ([None, (A,), (A,)], (A,), None),
        ([None, None, None], (), None),
        ([()] * 32, (), None),
    ],
)
def test_a_match_is_lost_by_who_misses_it_twice_without_an_excuse(
    attempts: list[tuple[str, ...] | None], lost: tuple[str, ...], next_id: str | None
) -> None:
    found = follow_attempts("m", missed("m", *attempts))
    assert (found.absent, found.attempt) == (lost, next_id)


def test_a_knockout_is_not_won_without_sitting_down() -> None:
    plan = Knockout(NAMES[:4])
    first = next(match for match in plan.due_matches(SoFar()) if A in match.bots)
    [other] = [match for match in plan.due_matches(SoFar()) if match != first]
    opponent = next(bot for bot in first.bots if bot != A)
    so_far = missed(first.id, (A,), (A,))
    so_far = SoFar({other.id: by_name(other)}, so_far.voids, so_far.absences)
    [final] = plan.due_matches(so_far)
    assert sorted(final.bots) == sorted([opponent, by_name(other).bots[by_name(other).ranks.index(1)]])
    assert A in plan.final_order(so_far)[-1]


def test_where_nobody_sat_the_better_seed_goes_on() -> None:
    so_far = missed("r1-t1-g1", (A, B), (A, B))
    assert Knockout((A, B)).final_order(so_far) == ((A,), (B,))


def test_a_larger_table_of_a_knockout_is_played_without_the_absent() -> None:
    plan = Knockout(NAMES, 4, 2)
    first = next(match for match in plan.due_matches(SoFar()) if A in match.bots)
    so_far = missed(first.id, (A,), (A,))
    again = next(match for match in plan.due_matches(so_far) if match.id == f"{first.id}.3")
    assert again.bots == tuple(bot for bot in first.bots if bot != A)
    others = [match for match in plan.due_matches(so_far) if match != again]
    results = {match.id: by_name(match) for match in (again, *others)}
    [final] = plan.due_matches(SoFar(results, so_far.voids, so_far.absences))
    assert A not in final.bots
    # where no more are left than advance, they advance at once
    two = SoFar(
        {match.id: by_name(match) for match in others},
        so_far.voids,
        dict.fromkeys(so_far.voids, first.bots[:2]),
    )
    [final] = plan.due_matches(two)
    assert set(first.bots[2:]) < set(final.bots)


def test_a_knockout_goes_on_with_its_other_deals_and_the_absent_is_out() -> None:
    plan = Knockout((A, B), deals=2)
    so_far = missed("r1-t1-g1", (A,), (A,))
    [second] = plan.due_matches(so_far)
    assert (second.id, sorted(second.bots)) == ("r1-t1-g2", [A, B])
    so_far = SoFar({second.id: by_name(second)}, so_far.voids, so_far.absences)
    assert plan.final_order(so_far) == ((B,), (A,))


def test_a_swiss_gives_the_absent_nothing_and_the_other_its_own_mean() -> None:
    plan = Swiss(NAMES[:4], 3)
    results: dict[str, LoggedResult] = {}
    for match in plan.due_matches(SoFar()):
        results[match.id] = by_name(match)
    lost = next(match for match in plan.due_matches(SoFar(results)) if A in match.bots)
    other = next(bot for bot in lost.bots if bot != A)
    so_far = missed(lost.id, (A,), (A,))
    for match in plan.due_matches(SoFar(results)):
        if match != lost:
            results[match.id] = by_name(match)
    scores = plan.current_scores(SoFar(results, so_far.voids, so_far.absences))
    before = plan.current_scores(SoFar({key: each for key, each in results.items() if key.startswith("r1")}))
    assert (scores[A], scores[other]) == (before[A], 2 * before[other])
    resigned = SoFar(results | {lost.id: by_name(lost)}, left={lost.id: (A,)})  # by a substitute of A
    assert plan.current_scores(resigned) == scores


def test_a_table_gives_the_absent_nothing_and_the_other_what_the_season_expects() -> None:
    """Points are 10, 9, 8 and 7. So B may expect half a point less than the mean against A, and finishes ahead as often as not."""
    plan = RoundRobin(NAMES[:4], 2)
    matches = plan.all_matches()
    lost = next(match for match in matches if {A, B} == set(match.bots))
    so_far = missed(lost.id, (A,), (A,))
    results = {match.id: by_name(match) for match in matches if match != lost}
    so_far = SoFar(results, so_far.voids, so_far.absences)
    assert plan.due_matches(so_far) == ()
    assert list_walk_overs(so_far) == {lost.id: (A,)}
    rows = {row.bot: row for row in rank_entrants(results.values(), NAMES[:4], missed=[(lost.bots, (A,))])}
    assert (rows[A].points, rows[A].matches, rows[A].walk_overs) == ((10 + 10 + 7) / 3, 2, 1)
    mean = sum(sum(result.points) for result in results.values()) / 10
    assert (rows[B].matches, rows[B].points) == (2, pytest.approx((9 + 9 + mean - 0.5) / 3, abs=0.01))
    assert rows[B].score == pytest.approx((1 + 1 + 0.5) / 3, abs=0.01)


def test_a_unit_of_a_test_counts_against_the_absent() -> None:
    plan = ABTest(A, B, duplicate=Duplicate.NONE)
    matches = [match for match in plan.due_matches(SoFar()) if match.id.startswith(("u1-", "u2-"))]
    results = {match.id: by_name(match) for match in matches if match.id != "u2-s2"}
    so_far = missed("u2-s2", (A,), (A,))
    assert plan.unit_differences(SoFar(results, so_far.voids, so_far.absences)) == (1.0, -1.0)


def test_a_walk_over_is_a_win_in_the_tests_of_pairs() -> None:
    plan = RoundRobin(NAMES[:4], 2)
    first, *others = plan.all_matches()
    so_far = missed(first.id, first.bots[:1], first.bots[:1])
    results = {match.id: played(match, 20, 5) for match in others}
    [meeting] = list_walk_over_meetings(plan, SoFar(results, so_far.voids, so_far.absences))
    assert (meeting.bots, meeting.points, meeting.ranks) == (first.bots, (5, 20), (2, 1))


def test_a_friend_that_stays_away_from_the_others_gives_nobody_a_place() -> None:
    """It is absent from all matches but those with its friend; so it has left, and its results leave the table."""
    entrants = tuple(Entrant(name.split("/")[1], name) for name in NAMES[:4])
    league = league_of(entrants=entrants, deals="none", rounds=3, withdrawals="half")
    matches = schedule_of(league).all_matches()
    lost = [match for match in matches if D in match.bots and A not in match.bots]
    voids = {f"{match.id}{attempt}": (D,) for match in lost for attempt in ("", ".2")}
    results = {match.id: by_name(match) for match in matches if match not in lost}
    gift = next(match for match in results if D in results[match].bots)
    results[gift] = played(next(match for match in matches if match.id == gift), *(
        90 if bot == A else 0 for bot in results[gift].bots
    ))  # fmt: skip
    rows = {row["player"]: row for row in rows_of(league, schedule_of(league), SoFar(results, voids, voids))}
    assert (rows[A]["points"], rows[D]["rank"]) == (10, 4)


def test_the_fairness_checks_of_a_page_take_walk_overs_as_meetings() -> None:
    """D never sits against A: all that the page can compare of the two are walk-overs."""
    entrants = tuple(Entrant(name.split("/")[1], name) for name in NAMES[:4])
    league = league_of(entrants=entrants, deals="none", rounds=30)
    plan = schedule_of(league)
    lost = [match for match in plan.all_matches() if {A, D} == set(match.bots)]
    voids = {f"{match.id}{attempt}": (D,) for match in lost for attempt in ("", ".2")}
    chance = Random(1)
    results = {
        match.id: played(match, chance.randrange(9), chance.randrange(9))
        for match in plan.all_matches()
        if match not in lost
    }
    facts = Facts(league, results, {}, NAMES[:4], {})
    sections = extra_sections(plan, facts, SoFar(results, voids, voids))
    rows = [row for section in sections for part in section.parts for row in part.rows]
    assert [row[3] for row in rows if row[0] == "b0 where b3 sits"] == [str(len(lost))]


@pytest.mark.parametrize(("seats", "rounds"), [(2, 6), (4, 14)])
def test_a_friend_cannot_choose_whom_it_plays(seats: int, rounds: int) -> None:
    """Points are strengths less the others' mean. Whatever the weak friend misses, all others have the points of a full season."""
    entrants = tuple(Entrant(name.split("/")[1], name) for name in NAMES)
    league = league_of(entrants=entrants, deals="none", rounds=rounds, seats=seats)
    plan = schedule_of(league)
    strength = {bot: 12 * (seats - 1) * (10 - place) for place, bot in enumerate(NAMES)}

    def play(match: ScheduledMatch) -> LoggedResult:
        total = sum(strength[bot] for bot in match.bots)
        return played(match, *(strength[bot] - (total - strength[bot]) // (seats - 1) for bot in match.bots))

    friend = NAMES[-1]
    results = {match.id: play(match) for match in plan.all_matches()}
    whole = {row["player"]: row["points"] for row in rows_of(league, plan, SoFar(results))}
    lost = [match for match in plan.all_matches() if friend in match.bots and C not in match.bots][:-1]
    voids = {f"{match.id}{attempt}": (friend,) for match in lost for attempt in ("", ".2")}
    left = {match: result for match, result in results.items() if match not in {each.id for each in lost}}
    rows = {row["player"]: row for row in rows_of(league, plan, SoFar(left, voids, voids))}
    mean = {bot: rows[bot]["points"] - whole[bot] for bot in NAMES[:-1]}
    assert max(mean.values()) - min(mean.values()) < 0.02 * 12 * (seats - 1)
    assert rows[friend]["walk_overs"] == len(lost)
