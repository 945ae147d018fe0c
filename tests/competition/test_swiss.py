"""Swiss: equals meet, repeats are rare, and a bye comes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import BadSchedule, Duplicate, ScheduledMatch, SoFar
from seatwise_server.competition.schedules.swiss import Swiss
from seatwise_server.competition.schedules.swiss_draw import SwissPlayer, draw_round, reduce_repeats

Points = Callable[[ScheduledMatch], tuple[int, ...]]


def bots(count: int) -> tuple[str, ...]:
    return tuple(f"bots/b{number:02}/versions/1" for number in range(count))


def by_name(match: ScheduledMatch) -> tuple[int, ...]:
    """The lower its number, the more points a bot makes."""
    return tuple(100 - int(bot[6:8]) for bot in match.bots)


def result(match: ScheduledMatch, points: tuple[int, ...]) -> LoggedResult:
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(1, "matches/x", match.bots, points, ranks, ("COMPLETED",) * len(points))


def season(plan: Swiss, points: Points = by_name, rounds: int = 99) -> list[ScheduledMatch]:
    """Plays as many rounds as wanted."""
    so_far: dict[str, LoggedResult] = {}
    matches: list[ScheduledMatch] = []
    for _ in range(rounds):
        due = plan.due_matches(SoFar(so_far))
        matches.extend(due)
        so_far |= {match.id: result(match, points(match)) for match in due}
    return matches


def met(matches: list[ScheduledMatch]) -> Counter[frozenset[str]]:
    return Counter(frozenset(pair) for match in matches for pair in combinations(match.bots, 2))


def test_in_the_first_round_the_upper_half_meets_the_lower() -> None:
    pairs = {frozenset(match.bots) for match in Swiss(bots(8), 3).due_matches(SoFar())}
    assert pairs == {frozenset((bots(8)[one], bots(8)[one + 4])) for one in range(4)}


def test_in_the_first_round_tables_of_three_take_one_of_each_third() -> None:
    tables = {frozenset(match.bots) for match in Swiss(bots(9), 3, 3).due_matches(SoFar())}
    assert tables == {frozenset(bots(9)[one::3]) for one in range(3)}


def test_winners_meet_winners() -> None:
    second = season(Swiss(bots(8), 2), rounds=2)[4:]
    assert [sorted(int(bot[6:8]) < 4 for bot in match.bots) for match in second] == [
        [True, True],
        [True, True],
        [False, False],
        [False, False],
    ]


@pytest.mark.parametrize(("entrants", "rounds"), [(8, 4), (8, 7), (15, 6), (16, 8), (33, 9), (6, 5)])
def test_nobody_meets_the_same_bot_twice_where_it_can_be_helped(entrants: int, rounds: int) -> None:
    assert max(met(season(Swiss(bots(entrants), rounds))).values()) == 1


def test_at_tables_of_four_hardly_anybody_meets_again() -> None:
    meetings = met(season(Swiss(bots(32), 5, 4)))
    assert max(meetings.values()) <= 2
    assert sum(count == 2 for count in meetings.values()) <= 6  # of 240


@pytest.mark.parametrize(("entrants", "size", "rounds"), [(7, 2, 7), (11, 3, 5), (10, 4, 5), (7, 4, 2)])
def test_nobody_has_two_byes(entrants: int, size: int, rounds: int) -> None:
    plan = Swiss(bots(entrants), rounds, size)
    so_far = {match.id: result(match, by_name(match)) for match in season(plan)}
    byes = plan.list_byes(SoFar(so_far))
    assert len(byes) == rounds * (entrants % size)
    assert max(Counter(bot for _, bot in byes).values()) == 1


def test_the_bye_of_the_first_round_is_the_last_entrants() -> None:
    assert Swiss(bots(5), 2).list_byes(SoFar()) == ((1, bots(5)[4]),)


def test_a_bye_scores_like_a_win() -> None:
    plan = Swiss(bots(3), 1)
    [match] = plan.due_matches(SoFar())
    scores = plan.current_scores(SoFar({match.id: result(match, by_name(match))}))
    assert scores == {bots(3)[0]: 1.0, bots(3)[1]: 0.0, bots(3)[2]: 1.0}


def test_more_rounds_than_byes_are_refused() -> None:
    with pytest.raises(BadSchedule, match=r"rounds: at most 3, or somebody would have a second bye, not 4"):
        Swiss(bots(11), 4, 4)


def test_a_round_is_drawn_when_the_one_before_is_over() -> None:
    plan = Swiss(bots(4), 2)
    first, second = plan.due_matches(SoFar())
    so_far = {first.id: result(first, by_name(first))}
    assert plan.due_matches(SoFar(so_far)) == (second,)
    so_far[second.id] = result(second, by_name(second))
    assert {match.round for match in plan.due_matches(SoFar(so_far))} == {2}


def test_a_table_that_is_given_up_holds_nobody_up() -> None:
    plan = Swiss(bots(4), 2)
    first, second = plan.due_matches(SoFar())
    voids = [first.id, f"{first.id}.2", f"{first.id}.3"]
    so_far = SoFar({second.id: result(second, by_name(second))}, voids)
    assert {match.round for match in plan.due_matches(so_far)} == {2}
    assert {plan.current_scores(so_far)[bot] for bot in first.bots} == {0.5}


def test_asking_again_draws_the_same() -> None:
    plan = Swiss(bots(12), 4, 3, seed="again")
    matches = season(plan)
    so_far = SoFar({match.id: result(match, by_name(match)) for match in matches if match.round < 4})
    assert plan.due_matches(so_far) == tuple(match for match in matches if match.round == 4)
    assert Swiss(bots(12), 4, 3, seed="again").due_matches(so_far) == plan.due_matches(so_far)


def test_seats_are_balanced() -> None:
    sat = Counter((bot, seat) for match in season(Swiss(bots(16), 8)) for seat, bot in enumerate(match.bots))
    assert all(3 <= sat[bot, seat] <= 5 for bot in bots(16) for seat in range(2))


def test_a_table_that_rotates_scores_as_one() -> None:
    plan = Swiss(bots(3), 1, 3, Duplicate.ROTATION)
    matches = plan.due_matches(SoFar())
    assert len(matches) == plan.expected_matches(SoFar()) == 3
    assert {match.deal and match.deal.set for match in matches} == {"r1-t1"}
    scores = plan.current_scores(SoFar({match.id: result(match, by_name(match)) for match in matches}))
    assert list(scores.values()) == [1.0, 0.5, 0.0]


def test_who_was_moved_down_is_not_moved_down_again() -> None:
    players = [
        SwissPlayer("a", 2),
        SwissPlayer("b", 2),
        SwissPlayer("c", 2, has_floated=True),
        SwissPlayer("d", 1),
    ]
    assert draw_round(players, frozenset(), {}, 2).floaters in (("a",), ("b",))


def test_repeats_are_mended_by_swaps() -> None:
    a, b, c, d = (SwissPlayer(name, 1) for name in "abcd")
    [[one, other], [third, last]] = reduce_repeats([[a, b], [c, d]], {frozenset("ab"): 1})
    assert {frozenset((one.bot, other.bot)), frozenset((third.bot, last.bot))} != {
        frozenset("ab"),
        frozenset("cd"),
    }


def test_what_cannot_be_helped_is_counted() -> None:
    players = [SwissPlayer("a", 1), SwissPlayer("b", 0)]
    assert draw_round(players, frozenset(), {frozenset("ab"): 1}, 2).repeats == 1
