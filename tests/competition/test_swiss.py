"""Swiss: equals meet, repeats are rare, and a bye comes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

import pytest

from seatwise_server.competition.designs.lightest_tables import (
    SearchBounds,
    find_better_exchange,
    find_lightest_tables,
    tables_weight,
)
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.schedules.schedule import (
    BadSchedule,
    Duplicate,
    RoundDraw,
    ScheduledMatch,
    SoFar,
)
from seatwise_server.competition.schedules.swiss import Swiss, draw_swiss_round
from seatwise_server.competition.schedules.swiss_rules import (
    SCORE_UNITS,
    SwissState,
    count_pairs,
    find_draw_fault,
    weigh_pairs,
)

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
        if not (due := plan.due_matches(SoFar(so_far))):
            break
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
def test_no_bot_meets_the_same_bot_twice_where_it_can_be_helped(entrants: int, rounds: int) -> None:
    assert max(met(season(Swiss(bots(entrants), rounds))).values()) == 1


def test_at_tables_of_four_hardly_anybody_meets_again() -> None:
    meetings = met(season(Swiss(bots(32), 5, 4)))
    assert max(meetings.values()) <= 2
    assert sum(count == 2 for count in meetings.values()) <= 6  # of 240


@pytest.mark.parametrize(("entrants", "size", "rounds"), [(7, 2, 7), (11, 3, 5), (7, 4, 2)])
def test_no_bot_has_two_byes(entrants: int, size: int, rounds: int) -> None:
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
    with pytest.raises(BadSchedule, match=r"rounds: at most 3, or a bot would have a second bye, not 4"):
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
    assert plan.expected_matches(so_far) == 4


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


def test_a_bot_that_was_moved_down_is_not_moved_down_again() -> None:
    state = SwissState((2, 2, 2, 1), floaters=frozenset({2}))
    draw = draw_swiss_round(state, 2, 2, "", is_last=True)
    assert len(state.find_floaters(draw.tables)) == 1
    assert 2 not in state.find_floaters(draw.tables)


def test_the_last_of_a_group_is_the_one_that_floats() -> None:
    draw = draw_swiss_round(SwissState((1, 1, 1, 0, 0, 0)), 2, 2, "", is_last=True)
    assert {frozenset(table) for table in draw.tables} == {
        frozenset(pair) for pair in ((0, 1), (2, 3), (4, 5))
    }


# As few repeated pairs as there can be


def drawn_rounds(entrants: int, size: int, rounds: int, seed: int, *, ahead: bool = True) -> list[RoundDraw]:
    """The draws of a season whose results follow from numbers and luck."""
    chance = Random(seed)
    state = SwissState((0,) * entrants)
    draws: list[RoundDraw] = []
    for number in range(1, rounds + 1):
        is_last = number == rounds
        draw = draw_swiss_round(state, number, size, str(seed), is_last=is_last or not ahead)
        assert not find_draw_fault(draw, state, size, is_last=is_last)
        draws.append(draw)
        scores = list(state.scores)
        for table in draw.tables:
            merits = {entrant: chance.gauss(-entrant, seed) for entrant in table}
            for one in table:
                beaten = sum(merits[one] > merits[other] for other in table)
                scores[one] += beaten * SCORE_UNITS // (size - 1)
        for entrant in draw.byes:
            scores[entrant] += SCORE_UNITS
        state = SwissState(
            tuple(scores),
            (*state.tables, *draw.tables),
            state.byes.union(draw.byes),
            state.find_floaters(draw.tables),
        )
    return draws


def repeated_pairs(draws: list[RoundDraw]) -> list[int]:
    """By round, the pairs that had met before."""
    met: Counter[tuple[int, int]] = Counter()
    repeats = []
    for draw in draws:
        pairs = count_pairs(draw.tables)
        repeats.append(sum(met[pair] > 0 for pair in pairs))
        met += pairs
    return repeats


@pytest.mark.parametrize("seed", range(2))
def test_twelve_bots_at_tables_of_four_repeat_three_pairs_a_round(seed: int) -> None:
    """Each table of the second round has two bots of one table of the first."""
    assert repeated_pairs(drawn_rounds(12, 4, 3, seed)) == [0, 3, 3]


@pytest.mark.parametrize("seed", range(6))
def test_sixteen_bots_at_tables_of_four_play_five_rounds_without_a_repeated_pair(seed: int) -> None:
    """Three of four draws of the third round leave no such draw of the fourth."""
    assert repeated_pairs(drawn_rounds(16, 4, 5, seed)) == [0, 0, 0, 0, 0]


def test_without_looking_ahead_sixteen_bots_would_repeat_pairs() -> None:
    assert any(sum(repeated_pairs(drawn_rounds(16, 4, 4, seed, ahead=False))) for seed in range(8))


def least_repeats(entrants: list[int], size: int, met: Counter[tuple[int, int]]) -> int:
    """The fewest repeated pairs of all draws, by trying them all."""
    if not entrants:
        return 0
    first, others = entrants[0], entrants[1:]
    return min(
        sum(met[pair] > 0 for pair in combinations(sorted((first, *company)), 2))
        + least_repeats([each for each in others if each not in company], size, met)
        for company in combinations(others, size - 1)
    )


@pytest.mark.parametrize(
    ("entrants", "size", "rounds"), [(8, 4, 4), (9, 3, 4), (9, 4, 3), (10, 2, 6), (8, 3, 4)]
)
def test_no_round_has_more_repeated_pairs_than_the_best_of_all_draws(
    entrants: int, size: int, rounds: int
) -> None:
    draws = drawn_rounds(entrants, size, rounds, seed=1)
    met: Counter[tuple[int, int]] = Counter()
    for draw, repeats in zip(draws, repeated_pairs(draws), strict=True):
        seated = [each for each in range(entrants) if each not in draw.byes]
        assert repeats == least_repeats(seated, size, met)
        met += count_pairs(draw.tables)


def test_the_search_is_bounded_by_counts_and_finds_the_least_weight_of_small_fields() -> None:
    chance = Random(5)
    weights = [[0] * 9 for _ in range(9)]
    for one, other in combinations(range(9), 2):
        weights[one][other] = weights[other][one] = int(chance.random() * 50)
    start = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    found = find_lightest_tables(weights, start, "x")
    least = min(
        tables_weight(weights, [(0, *one), two, tuple(set(range(1, 9)) - {*one, *two})])
        for one in combinations(range(1, 9), 2)
        for two in combinations(sorted(set(range(1, 9)) - set(one)), 3)
    )
    assert tables_weight(weights, found) == least
    unsearched = find_lightest_tables(weights, start, "x", SearchBounds(kick_work=0, nodes=0))
    assert find_better_exchange(weights, unsearched) is None
    assert find_better_exchange(weights, start) is not None


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.slow
def test_a_thousand_entrants_are_drawn(size: int) -> None:
    plan = Swiss(bots(1000), 2, size)
    matches = season(plan, rounds=2)
    assert len(matches) == plan.expected_matches(SoFar()) == 2000 // size
    assert max(met(matches).values()) == 1


# What is stored, and how it is checked


def stored(plan: Swiss, rounds: int) -> SoFar:
    """A season of so many rounds, with its draws."""
    results: dict[str, LoggedResult] = {}
    draws: dict[int, RoundDraw] = {}
    for _ in range(rounds):
        draw = plan.current_draw(SoFar(results, draws=draws))
        assert draw
        draws[draw.round] = draw
        results |= {match.id: result(match, by_name(match)) for match in plan.matches_of(draw)}
    return SoFar(results, draws=draws)


def test_a_stored_draw_is_played_whatever_the_search_would_draw() -> None:
    plan = Swiss(bots(4), 1)
    other = RoundDraw(1, ((0, 1), (2, 3)))
    assert plan.current_draw(SoFar()) != other
    assert plan.current_draw(SoFar(draws={1: other})) == other
    assert [match.bots for match in plan.due_matches(SoFar(draws={1: other}))] == [bots(4)[:2], bots(4)[2:]]


def test_rounds_that_are_over_need_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Swiss(bots(7), 3)
    so_far = stored(plan, 3)
    module = "seatwise_server.competition.schedules.swiss.draw_swiss_round"
    monkeypatch.setattr(module, lambda *_, **__: pytest.fail("it was drawn again"))
    assert plan.due_matches(SoFar(so_far.results)) == ()
    assert len(plan.list_byes(SoFar(so_far.results))) == 3
    assert not plan.find_draw_fault(so_far)
    assert set(so_far.results) <= {match for _, match in plan.first_attempts()}


STATE = SwissState((2, 2, 1, 1, 0, 0), ((0, 2), (1, 3), (4, 5)))
GOOD = draw_swiss_round(STATE, 2, 2, "", is_last=True)


@pytest.mark.parametrize(
    ("draw", "fault"),
    [
        (GOOD, ""),
        (RoundDraw(2, GOOD.tables, (3,)), "the byes are"),
        (RoundDraw(2, (*GOOD.tables[:2], GOOD.tables[0])), "tables: an entrant is named twice"),
        (RoundDraw(2, GOOD.tables[:2]), "the tables are not those of all entrants"),
        (RoundDraw(2, (GOOD.tables[0] + GOOD.tables[1], GOOD.tables[2])), "tables: a table has not 2 seats"),
        (RoundDraw(2, GOOD.tables[::-1]), "the tables are not in the order of their best entrants"),
        (RoundDraw(2, ((0, 2), (1, 3), (4, 5))), "an exchange of the entrants"),
        (RoundDraw(2, (GOOD.tables[0], GOOD.tables[1][::-1], GOOD.tables[2])), "the table"),
        (RoundDraw(2, GOOD.tables, ahead=((0, 1),)), "the tables are not those of all entrants"),
    ],
)
def test_a_draw_is_checked_by_its_rules(draw: RoundDraw, fault: str) -> None:
    found = find_draw_fault(draw, STATE, 2, is_last=True)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_a_repeated_pair_weighs_more_than_all_that_comes_after_it() -> None:
    weights = weigh_pairs(STATE, 2)
    repeated = {(0, 2), (1, 3), (4, 5)}
    others = sum(
        weights[one][other] for one, other in combinations(range(6), 2) if (one, other) not in repeated
    )
    assert all(weights[one][other] > others for one, other in repeated)


def test_a_pair_that_the_next_round_needs_weighs_more_than_scores() -> None:
    plain, ahead = weigh_pairs(STATE, 2), weigh_pairs(STATE, 2, ahead=((0, 1),))
    assert ahead[0][1] > max(plain[0][4], plain[1][5]) * 3
    assert ahead[0][1] < plain[0][2]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_branch_and_bound_finds_the_lightest_tables_without_any_kick(size: int) -> None:
    chance, entrants = Random(f"lightest/{size}"), list(range(8 if size != 3 else 9))
    for _ in range(20):
        weights = [[0] * len(entrants) for _ in entrants]
        for one, other in combinations(entrants, 2):
            weights[one][other] = weights[other][one] = chance.randrange(10)
        start = [entrants[at : at + size] for at in range(0, len(entrants), size)]
        found = find_lightest_tables(weights, start, "seed", SearchBounds(kick_work=0))
        assert tables_weight(weights, found) == min(
            tables_weight(weights, tables) for tables in partitions_of(entrants, size)
        )


def partitions_of(entrants: list[int], size: int) -> Iterator[list[tuple[int, ...]]]:
    """All ways to share entrants out over tables of one size."""
    if not entrants:
        yield []
        return
    first, *others = entrants
    for company in combinations(others, size - 1):
        left = [each for each in others if each not in company]
        for tables in partitions_of(left, size):
            yield [(first, *company), *tables]
