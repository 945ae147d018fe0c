"""What a season's fairness report finds in foul seasons, and how seldom it finds anything in honest ones."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.numeric.student_t import chi_square_tail, holm_correction
from seatwise_server.competition.statistics.fairness import (
    FairnessReport,
    TimedAnswer,
    check_fairness,
    find_clock_bias,
    find_seat_bias,
    match_reports,
)
from seatwise_server.competition.statistics.pair_test import (
    LEAST_SHARED_MATCHES,
    Sheet,
    find_favours,
    fit_points,
    list_meetings,
)
from seatwise_server.ladder.ladder_worker import (
    LOOKS,
    MOST_CHECKED_RESULTS,
    check_ladder,
    describe_look,
    find_look,
)

A, B = "bots/b00/versions/1", "bots/b01/versions/1"


@dataclass(frozen=True)
class Season:
    """Points of luck and strength; a gift that one of two friends makes the other at the cost of the rest; a seat that gains."""

    bots: int = 8
    seats: int = 4
    matches: int = 160
    gift: float = 0.0
    seat_gain: float = 0.0
    deal: int = 1
    cards: float = 0.0
    """What the cards of a seat are worth, up and down."""
    noise: float = 3.0
    """The standard deviation of a bot's points in a match."""

    def play(self, seed: int) -> list[LoggedResult]:
        chance, cards = random.Random(seed), [0.0] * self.seats
        log = []
        for seq in range(self.matches):
            if seq % self.deal == 0:
                cards = [chance.gauss(0, self.cards) for _ in range(self.seats)]
            table = chance.sample(range(self.bots), self.seats)
            points = [
                8 + 0.6 * bot + luck + chance.gauss(0, self.noise)
                for bot, luck in zip(table, cards, strict=True)
            ]
            points[0] += self.seat_gain
            if {0, 1} <= set(table):
                points[table.index(0)] += self.gift
                points = [
                    own - self.gift / max(1, self.seats - 2) * (bot > 1)
                    for bot, own in zip(table, points, strict=True)
                ]
            log.append(self._result(seq, table, list(map(round, points))))
        return log

    def _result(self, seq: int, table: Sequence[int], points: Sequence[int]) -> LoggedResult:
        ranks = tuple(1 + sum(other > own for other in points) for own in points)
        deal = f"deals/{seq // self.deal}" if self.deal > 1 else ""
        names = tuple(f"bots/b{bot:02}/versions/1" for bot in table)
        return LoggedResult(
            seq + 1, f"matches/{seq}", names, tuple(points), ranks, ("COMPLETED",) * len(table), deal=deal
        )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_gift_is_found_if_it_is_large_beside_the_noise(seats: int) -> None:
    """The corners of the table in docs/statistics.md. UGO!'s noise is 20 points at tables of four, Ubongo's 4."""
    found: dict[tuple[float, float], float] = {}
    large = (3.0, 10.0) if seats == 2 else (22.0, 15.0)  # two seats: 14 meetings, and no third bot that pays
    for noise, gift in (large, (3.0, 3.0), (22.0, 3.0)):
        season = Season(seats=seats, matches=400, gift=gift, noise=noise)
        found[noise, gift] = sum(map(names_the_friends, reports(season, 60))) / 60
    assert found[large] >= 0.85
    assert found[3.0, 3.0] >= 0.9 or seats == 2
    assert found[22.0, 3.0] <= 0.1, "then the page may promise more"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_honest_ladder_that_is_looked_at_each_day_is_seldom_accused() -> None:
    """For docs/statistics.md: fifty results a day for thirty days."""
    named = {"as it was": 0, "at every look": 0}
    for seed in range(20):
        log = Season(bots=10, seats=2, matches=1500, noise=10.0).play(seed)
        days = range(50, 1501, 50)
        looks = {"as it was": [check_fairness(log[:day]) for day in days]}
        looks["at every look"] = [check_ladder(log[:day]) for day in sorted({find_look(day) for day in days})]
        for way, found in looks.items():
            named[way] += any(report.list_remarks() for report in found)
    print(f"of 20 ladders: {named}", flush=True)
    assert named["at every look"] <= 3


def test_a_ladder_is_checked_after_so_many_results_and_each_look_has_a_part_of_the_error() -> None:
    counts = (0, 124, 125, 499, 500, 999, 1000, 1999, 12_345)
    assert [*map(find_look, counts)] == [0, 0, 125, 250, 500, 500, 1000, 1000, 12_000]
    assert len({*map(find_look, range(MOST_CHECKED_RESULTS + 1))} - {0}) == LOOKS
    assert "the first 250 results; the next look is at 500" in describe_look(499)
    assert "the newest 10000 of the first 12000 results; the next look is at 13000" in describe_look(12_345)
    log = Season(bots=4, seats=2, matches=150, gift=3.0, seat_gain=1.0).play(1)
    once, held = check_fairness(log[:125]), check_ladder(log)
    p_values = [
        (favour.corrected_p_value, seat.p_value)
        for favour, seat in ((report.favours[0], report.seat_bias[0]) for report in (once, held))
    ]
    assert p_values[1] == tuple(min(1.0, LOOKS * p) for p in p_values[0])
    assert p_values[0] < p_values[1]


def reports(season: Season, count: int) -> list[FairnessReport]:
    return [check_fairness(season.play(seed)) for seed in range(count)]


def residuals_of(log: Sequence[LoggedResult]) -> list[Sheet]:
    return fit_points(list_meetings(log))


def names_the_friends(report: FairnessReport) -> bool:
    first = report.favours[0]
    return first.is_remarkable and (first.taker, first.giver) == (A, B)


@pytest.mark.parametrize("seats", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_bot_that_is_helped_by_a_friend_is_found_and_no_other_is_named(seats: int) -> None:
    found = reports(Season(seats=seats, matches=400, gift=3.0), 4)
    assert all(map(names_the_friends, found))
    others = [
        pair
        for report in found
        for pair in report.favours
        if pair.is_remarkable and {pair.taker, pair.giver} != {A, B}
    ]
    assert len(others) <= 1


def test_the_gain_that_is_told_is_what_was_given() -> None:
    """Three of the friend's points; a point and a half from each of the others."""
    report = check_fairness(Season(matches=1000, gift=3.0).play(1))
    [pair] = [pair for pair in report.favours if (pair.taker, pair.giver) == (A, B)]
    assert pair.low <= 3.0 <= pair.high
    assert pair.high - pair.low < 2.5


@pytest.mark.parametrize(
    "season",
    [Season(), Season(matches=200, deal=4, cards=2.0)],
    ids=["four seats", "travelling deals"],
)
@pytest.mark.slow
def test_honest_seasons_are_seldom_named(season: Season) -> None:
    """One in twenty is allowed for each part; three of six are too many for that."""
    found = reports(season, 6)
    assert sum(any(pair.is_remarkable for pair in report.favours) for report in found) <= 2
    assert sum(any(seat.is_remarkable for seat in report.seat_bias) for report in found) <= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "season",
    [
        Season(),
        Season(seats=3),
        Season(seats=2, matches=400),
        Season(deal=4, cards=2.0),
        Season(bots=16, seats=2, matches=960, noise=10.0),
    ],
    ids=["four seats", "three seats", "two seats", "travelling deals", "sixteen bots"],
)
def test_one_honest_season_in_twenty_is_named_at_most(season: Season) -> None:
    """For docs/statistics.md."""
    found = reports(season, 300)
    pairs = sum(any(pair.is_remarkable for pair in report.favours) for report in found) / 300
    seats = sum(any(seat.is_remarkable for seat in report.seat_bias) for report in found) / 300
    print(f"{season}: pairs {pairs:.3f}, seats {seats:.3f}")
    assert max(pairs, seats) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_strength_alone_is_no_soft_play() -> None:
    """The strongest does better than the weakest at everybody's tables, and that says nothing."""
    strong = Season(matches=300)
    spread = [
        replace(result, points=tuple(3 * point for point in result.points)) for result in strong.play(2)
    ]
    assert not any(pair.is_remarkable for pair in check_fairness(spread).favours)


def test_a_bot_that_is_generous_to_all_is_nobodys_friend() -> None:
    log = Season(matches=300).play(3)
    generous = [
        replace(
            result,
            points=tuple(
                point + 4 * (B in result.bots and bot != B)
                for bot, point in zip(result.bots, result.points, strict=True)
            ),
        )
        for result in log
    ]
    assert not any(pair.is_remarkable for pair in check_fairness(generous).favours)


def test_a_seat_that_is_worth_more_is_found_and_its_worth_told() -> None:
    [seats] = check_fairness(Season(matches=600, seat_gain=2.0).play(4)).seat_bias
    assert seats.is_remarkable
    assert seats.gains[0] == pytest.approx(1.5, abs=0.5), (
        "two points more, of which the mean seat has half a one"
    )
    assert sum(seats.gains) == pytest.approx(0)


def test_a_seat_that_one_deal_favours_is_one_chance_however_many_tables_it_has() -> None:
    """Forty tables of one deal: the same cards are good every time."""
    log = [replace(result, deal="deals/1") for result in Season(matches=40, seat_gain=6.0).play(5)]
    [seats] = check_fairness(log).seat_bias
    assert not seats.is_remarkable


def lose_narrowly(log: Sequence[LoggedResult]) -> list[LoggedResult]:
    """The second bot always finishes one point behind the first, if they meet and it would have won."""
    found = []
    for result in log:
        points = dict(zip(result.bots, result.points, strict=True))
        if {A, B} <= points.keys() and points[B] >= points[A]:
            points[B] = points[A] - 1
        own = tuple(points.values())
        found.append(
            replace(result, points=own, ranks=tuple(1 + sum(other > each for other in own) for each in own))
        )
    return found


def test_a_friend_at_tables_of_two_is_found_by_points_or_by_places() -> None:
    """A friend that loses by a single point gives few points, and all wins."""
    season = Season(seats=2, matches=800, noise=10.0)
    found = [check_fairness(lose_narrowly(season.play(seed))) for seed in range(5)]
    assert sum(map(names_the_friends, found)) >= 4
    assert [len(seats.gains) for seats in found[0].seat_bias] == [2]
    given = reports(replace(season, gift=24.0), 5)
    assert sum(map(names_the_friends, given)) >= 4
    assert all(each.favours[0].found_by.startswith("by p") for each in found + given)


def test_a_giver_that_resigns_in_the_last_trick_stays_in_the_test() -> None:
    log = [
        replace(
            result,
            endings=tuple(
                "RESIGNED" if {A, B} <= set(result.bots) and bot == B else "COMPLETED" for bot in result.bots
            ),
        )
        for result in Season(matches=400, gift=4.0).play(1)
    ]
    assert names_the_friends(check_fairness(log))


def test_a_pair_that_always_meets_says_nothing_however_it_ends() -> None:
    """And one bot that plays only with a friend says as little as the friend has other opponents."""
    always = Season(bots=2, seats=2, matches=60).play(7)
    assert find_favours(list_meetings(always)) == ()
    log = Season(bots=8, seats=2, matches=200).play(7)
    alone = [replace(result, bots=("new", A), points=(0, 30), ranks=(2, 1)) for result in log[:40]]
    assert not any("new" in (each.taker, each.giver) for each in find_favours(list_meetings(log + alone)))


def test_pairs_that_met_seldom_or_always_are_not_judged() -> None:
    always = Season(bots=4, matches=100).play(7)
    assert find_favours(list_meetings(always)) == ()
    seldom = Season(bots=40, matches=100).play(8)
    assert all(pair.matches >= LEAST_SHARED_MATCHES for pair in find_favours(list_meetings(seldom)))


def test_a_broken_bot_is_no_friend_of_those_that_meet_it() -> None:
    """It loses all its matches, beside whomever it sits; and it says nothing of seats."""
    named = 0
    for seed in range(5):
        log = [
            replace(
                result,
                endings=tuple("TIMED_OUT" if bot == B else "COMPLETED" for bot in result.bots),
                points=tuple(
                    -20 if bot == B else own for bot, own in zip(result.bots, result.points, strict=True)
                ),
            )
            for result in Season(matches=160).play(seed)
        ]
        report = check_fairness(log)
        named += any(pair.is_remarkable for pair in report.favours)
        assert report.seat_bias[0].matches == sum(B not in result.bots for result in log)
    assert named <= 1


def test_par_takes_the_cards_off() -> None:
    """The cards of a seat are known to the par bot; what is left scatters less."""
    season = Season(matches=200, cards=0.0)
    log = season.play(10)
    chance = random.Random(11)
    luck = [[chance.choice((-9, 0, 9)) for _ in range(4)] for _ in log]
    dealt = [
        replace(r, points=tuple(p + c for p, c in zip(r.points, cards, strict=True)))
        for r, cards in zip(log, luck, strict=True)
    ]
    with_par = [replace(r, par=tuple(map(float, cards))) for r, cards in zip(dealt, luck, strict=True)]
    for one, other in zip(residuals_of(with_par), residuals_of(log), strict=True):
        assert one.residuals == pytest.approx(other.residuals, abs=1e-9)
    assert residuals_of(dealt) != residuals_of(log)


def test_nothing_is_said_of_an_empty_season() -> None:
    assert check_fairness([]).list_remarks() == []
    assert check_fairness(Season(matches=1).play(1)).list_remarks() == []


def test_seats_that_are_all_alike_are_not_named_where_nothing_varies() -> None:
    log = [replace(result, points=(5, 5, 5, 5)) for result in Season(matches=40).play(12)]
    assert find_seat_bias(residuals_of(log))[0].p_value == 1.0
    assert not any(pair.is_remarkable for pair in find_favours(list_meetings(log)))


def test_a_remark_tells_who_how_much_and_how_sure() -> None:
    remarks = check_fairness(Season(matches=400, gift=4.0, seat_gain=3.0).play(13)).list_remarks()
    assert remarks[0].startswith(f"{A} gains +")
    assert f"where {B} sits" in remarks[0]
    assert any(remark.startswith("the 4 seats differ by +") for remark in remarks)


def answers(bots: int, matches: int, seed: int, late: float = 0.0) -> list[TimedAnswer]:
    """All are charged about 2 ms more than they report, each link a little else; the first one more than that."""
    chance = random.Random(seed)
    links = [chance.gauss(2, 0.3) + late * (bot == 0) for bot in range(bots)]
    return [
        TimedAnswer(f"bots/b{bot:02}/versions/1", f"matches/{match}", own + link + chance.expovariate(1), own)
        for bot, link in enumerate(links)
        for match in range(matches)
        for own in (chance.uniform(1, 50), chance.uniform(1, 50))
    ]


def test_a_bot_that_is_charged_more_than_others_beyond_its_report_is_found() -> None:
    first, *others = find_clock_bias(answers(8, 50, seed=1, late=10.0))
    assert first.bot == A
    assert first.is_remarkable
    assert first.mean_ms == pytest.approx(13, abs=1), "its link's two, its answers' one, and ten"
    assert first.low_ms < first.mean_ms < first.high_ms
    assert first.worst.over_ms >= first.mean_ms
    assert not any(other.is_remarkable for other in others)


def test_honest_clocks_are_seldom_named() -> None:
    named = sum(
        any(bot.is_remarkable for bot in find_clock_bias(answers(8, 20, seed))) for seed in range(100)
    )
    assert named <= 11


def test_bots_with_few_matches_are_not_judged() -> None:
    assert find_clock_bias(answers(4, LEAST_SHARED_MATCHES - 1, seed=3)) == ()
    assert len(find_clock_bias(answers(1, 20, seed=3))) == 1, "one alone is shown, and compared with nobody"


def test_the_referees_charge_stands_beside_the_bots_own_report_of_the_same_answer() -> None:
    """A bot's report is of its own answers alone: none that it makes of another's is heard."""
    entries = [
        {"kind": "dealt"},
        {"kind": "move", "seat": 0, "prompt": 1, "charged_ms": 12},
        {"kind": "move", "seat": 1, "prompt": 2, "charged_ms": 30},
        {"kind": "default", "moves": [{"seat": 0}], "reason": "TIMED_OUT"},
    ]
    record = {
        "match": "matches/x",
        "seats": [{"seat": 0, "bot": A}, {"seat": 1, "bot": B}],
        "entries": entries,
    }
    told = {(A, "matches/x", 1): 9.5, (A, "matches/x", 2): 1.0, (B, "matches/y", 2): 1.0}
    [answer] = match_reports(record, told)
    assert answer == TimedAnswer(A, "matches/x", 12, 9.5)
    assert answer.over_ms == 2.5


def test_the_most_surprising_of_many_is_less_surprising() -> None:
    """The smallest counts as many times as there are, the next one time less, and none below the one before."""
    assert holm_correction([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_correction([0.9, 0.8]) == [1.0, 1.0]
    assert holm_correction([]) == []


@pytest.mark.parametrize(("value", "freedom"), [(3.841, 1), (5.991, 2), (7.815, 3), (9.488, 4), (18.307, 10)])
def test_the_tail_of_chi_square_is_that_of_the_printed_table(value: float, freedom: int) -> None:
    assert chi_square_tail(value, freedom) == pytest.approx(0.05, abs=5e-5)
