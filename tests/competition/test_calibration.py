"""Every 95 % interval that `strengths` shows holds the truth in 93 to 97 of 100 seasons, played by bots whose strength is known."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import pytest
from seasons.virtual_ladder import Ladder, plackett_luce

import seatwise
from seatwise import Card
from seatwise.kits.ugo.samples import Greedy
from seatwise.ugo import View
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import ELO_SCALE, StrengthFit, fit_strengths
from seatwise_server.ladder.ladder_pairing import PairingRules


@dataclass(frozen=True)
class League:
    """Tables drawn by lot; a truth for every bot; as many seasons as are asked for."""

    bots: int
    seats: int
    matches: int
    spread: float
    """The strongest is so much in log-odds above the mean, the weakest below."""
    deal: int = 1
    """So many tables share the cards."""
    luck: float = 0.0
    """The part of the luck, of 2.4 points, that the cards of a seat are. Only where points decide, and ties are frequent."""
    by_points: bool = False

    def names(self) -> list[str]:
        return [f"bots/b{number:02}/versions/1" for number in range(self.bots)]

    def strength(self) -> dict[str, float]:
        step = 2 * self.spread / (self.bots - 1)
        return {name: number * step - self.spread for number, name in enumerate(self.names())}

    def truth(self) -> dict[str, float]:
        """In Plackett and Luce's model it is what was put in; else what a season without end comes to."""
        if not self.by_points:
            return {bot: ELO_SCALE * value for bot, value in self.strength().items()}
        endless = replace(self, matches=40_000)
        return {found.bot: found.value for found in fit_strengths(endless.season(random.Random(0))).strengths}

    def season(self, chance: random.Random) -> list[LoggedResult]:
        strength, cards = self.strength(), [0.0] * self.seats
        play, log = plackett_luce(strength), []
        for seq in range(1, self.matches + 1):
            table = tuple(chance.sample(self.names(), self.seats))
            if self.by_points:
                if seq % self.deal == 0:
                    cards = [chance.gauss(0, self.luck) for _ in range(self.seats)]
                own = math.sqrt(2.4**2 - self.luck**2)
                points = [
                    round(1.7 * strength[bot] + luck + chance.gauss(0, own))
                    for bot, luck in zip(table, cards, strict=True)
                ]
                ranks = tuple(1 + sum(other > point for other in points) for point in points)
            else:
                ranks = play(table, chance)
            deal = f"deals/{seq // self.deal}" if self.deal > 1 else ""
            log.append(
                LoggedResult(
                    seq, f"matches/{seq}", table, ranks, ranks, ("COMPLETED",) * self.seats, deal=deal
                )
            )
        return log


class RotationLeague(League):
    """Every deal is played from every seat by the same bots: luck stays with the seat and goes round."""

    def season(self, chance: random.Random) -> list[LoggedResult]:
        strength, own = self.strength(), math.sqrt(2.4**2 - self.luck**2)
        log: list[LoggedResult] = []
        for deal in range(self.matches // self.seats):
            drawn = chance.sample(self.names(), self.seats)
            cards = [chance.gauss(0, self.luck) for _ in range(self.seats)]
            for turn in range(self.seats):
                table = tuple(drawn[turn:] + drawn[:turn])
                points = [
                    round(1.7 * strength[bot] + luck + chance.gauss(0, own))
                    for bot, luck in zip(table, cards, strict=True)
                ]
                ranks = tuple(1 + sum(other > point for other in points) for point in points)
                log.append(
                    LoggedResult(
                        len(log) + 1,
                        "matches/1",
                        table,
                        ranks,
                        ranks,
                        ("COMPLETED",) * self.seats,
                        deal=f"deals/{deal}",
                    )
                )
        return log


@dataclass
class Tally:
    """How often the truth lay in what was shown."""

    truth: dict[str, float]
    seasons: int = 0
    held: Counter[str] = field(default_factory=Counter)
    held_differences: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, found: StrengthFit) -> None:
        self.seasons += 1
        mean = sum(share * self.truth[bot] for bot, share in found.shares.items())
        for strength in found.strengths:
            self.held[strength.bot] += strength.low <= self.truth[strength.bot] - mean <= strength.high
        for one, other in combinations(sorted(self.truth), 2):
            difference = found.strength_difference(one, other)
            true = self.truth[one] - self.truth[other]
            self.held_differences[one, other] += difference.low <= true <= difference.high

    def of_bots(self) -> list[float]:
        return [self.held[bot] / self.seasons for bot in self.truth]

    def of_differences(self) -> list[float]:
        return [count / self.seasons for count in self.held_differences.values()]


def tally(truth: dict[str, float], seasons: int, play: Callable[[int], list[LoggedResult]]) -> Tally:
    found = Tally(truth)
    for seed in range(1, seasons + 1):
        found.add(fit_strengths(play(seed)))
    return found


def ladder_season(
    strength: dict[str, float], seconds: int, seats: int
) -> Callable[[int], list[LoggedResult]]:
    """As it really comes about: pairings follow ratings, which follow results."""

    def season(seed: int) -> list[LoggedResult]:
        ladder = Ladder(PairingRules(seats), plackett_luce(strength), dict.fromkeys(strength, ""), seed)
        ladder.run(seconds)
        return ladder.log

    return season


def mean(parts: list[float]) -> float:
    return sum(parts) / len(parts)


def leagues() -> Iterator[tuple[str, League]]:
    yield "four seats", League(8, 4, 60, 1.3)
    yield "three seats", League(6, 3, 80, 1.3)
    yield "two seats", League(8, 2, 160, 1.3)
    yield "far apart", League(8, 4, 100, 2.5)
    yield "points and ties", League(8, 4, 100, 1.3, by_points=True)
    yield "travelling deals", League(8, 4, 120, 1.3, deal=4, luck=2.0, by_points=True)

    yield "rotation of four", RotationLeague(8, 4, 80, 1.3, luck=2.0, by_points=True)
    yield "rotation of three", RotationLeague(6, 3, 60, 1.3, luck=2.0, by_points=True)
    yield "rotation of two", RotationLeague(8, 2, 80, 1.3, luck=2.2, by_points=True)


LEAGUES = dict(leagues())


@pytest.mark.parametrize("name", ["four seats", "two seats"])
def test_intervals_hold_as_often_as_they_say(name: str) -> None:
    found = tally(LEAGUES[name].truth(), 100, lambda seed: LEAGUES[name].season(random.Random(seed)))
    assert 0.92 <= mean(found.of_bots()) <= 0.98
    assert 0.92 <= mean(found.of_differences()) <= 0.98


def test_intervals_of_a_rotation_are_no_wider_than_they_must_be() -> None:
    """With the matches of one deal taken for independent, they hold in 996 of 1,000 seasons."""
    league = LEAGUES["rotation of two"]
    found = tally(league.truth(), 80, lambda seed: league.season(random.Random(seed)))
    assert 0.92 <= mean(found.of_bots()) <= 0.98
    assert 0.92 <= mean(found.of_differences()) <= 0.98


def share_ever_told_apart(seasons: int) -> tuple[float, float]:
    """Of pairs of equal bots, looked at after every ten matches: at every look's own level, and at one look's."""
    league = League(5, 2, 160, 0.0)
    names, told, told_once = league.names(), 0, 0
    for seed in range(seasons):
        log, pairs, pairs_once = (
            league.season(random.Random(seed)),
            set[tuple[str, str]](),
            set[tuple[str, str]](),
        )
        for played in range(20, len(log) + 1, 10):
            found = fit_strengths(log[:played])
            for one, other in combinations(names, 2):
                if found.excludes_equality(one, other):
                    pairs.add((one, other))
                difference = found.strength_difference(one, other)
                if not difference.low <= 0 <= difference.high:
                    pairs_once.add((one, other))
        told, told_once = told + len(pairs), told_once + len(pairs_once)
    return told / (10 * seasons), told_once / (10 * seasons)


def test_equal_bots_are_rarely_told_apart_however_often_one_looks() -> None:
    always, once = share_ever_told_apart(15)
    assert always <= 0.04
    assert once >= 0.1


STRENGTHS = {f"bots/b{number:02}/versions/1": number / 4 for number in range(10)}


@pytest.mark.slow
def test_intervals_hold_on_a_ladder_that_pairs_by_rating() -> None:
    truth = {bot: ELO_SCALE * value for bot, value in STRENGTHS.items()}
    found = tally(truth, 40, ladder_season(STRENGTHS, 250, 4))
    assert 0.92 <= mean(found.of_bots()) <= 0.98
    assert 0.92 <= mean(found.of_differences()) <= 0.98


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", LEAGUES)
def test_every_bots_interval_holds_as_often_as_it_says(name: str) -> None:
    """The strongest's and the weakest's too. For each bot by itself 2,000 seasons leave half a percent of chance."""
    found = tally(LEAGUES[name].truth(), 2000, lambda seed: LEAGUES[name].season(random.Random(seed)))
    print(f"{name}: {shown(found)}")
    assert 0.94 <= mean(found.of_bots()) <= 0.96
    assert 0.94 <= mean(found.of_differences()) <= 0.96
    if name.startswith("rotation"):  # twenty deals: the best and the worst bot have sat in ten of them
        assert 0.91 <= min(found.of_bots()) <= max(found.of_bots()) <= 0.98
        return
    assert min(found.of_bots()) >= 0.93
    assert max(found.of_bots()) <= 0.97
    assert min(found.of_differences()) >= 0.93
    assert max(found.of_differences()) <= 0.97


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seats", [2, 4])
def test_every_bots_interval_holds_on_a_ladder(seats: int) -> None:
    """Fewer seasons, for they take longer; so there is more of chance in what is told of a single bot."""
    truth = {bot: ELO_SCALE * value for bot, value in STRENGTHS.items()}
    found = tally(truth, 1000, ladder_season(STRENGTHS, 500, seats))
    print(f"ladder, {seats} seats: {shown(found)}")
    chance = 2 * math.sqrt(0.95 * 0.05 / found.seasons)
    assert 0.93 <= mean(found.of_bots()) <= 0.97
    assert 0.93 <= mean(found.of_differences()) <= 0.97
    assert all(0.93 - chance <= part <= 0.97 + chance for part in found.of_bots())


MATCHES_OF_LOOKS = (10, 20, 40, 80)


@dataclass
class LadderLooks:
    """Ladders of 20 bots, 43 points of Elo apart, that are looked at 24 times, and how well their tables order the bots."""

    seats: int
    held: list[bool] = field(default_factory=list)
    """By bot and ladder: whether all of its intervals held."""
    held_once: list[bool] = field(default_factory=list)
    """The same of intervals for one look."""
    orders: dict[int, list[tuple[float, ...]]] = field(default_factory=dict)
    """By matches of each bot, in the mean: the rank correlations of the table, the strengths and mu with the truth."""

    def follow(self, seed: int, looks: int = 24) -> None:
        strength = {f"bots/b{number:02}/versions/1": number / 4 for number in range(20)}
        truth = {bot: ELO_SCALE * value for bot, value in strength.items()}
        ladder = Ladder(PairingRules(self.seats), plackett_luce(strength), dict.fromkeys(strength, ""), seed)
        missed, missed_once = set[str](), set[str]()
        at_looks = {round(80 * look / looks) for look in range(1, looks + 1)} | {*MATCHES_OF_LOOKS}
        for most in sorted(at_looks):
            while len(ladder.log) * self.seats < most * len(strength):
                ladder.run(1)
            found = fit_strengths(ladder.log)
            mean = sum(share * truth[bot] for bot, share in found.shares.items())
            shown = found.widen_for_every_look()
            for fit, outside in ((shown, missed), (found, missed_once)):
                outside |= {
                    each.bot for each in fit.strengths if not each.low <= truth[each.bot] - mean <= each.high
                }
            if most in MATCHES_OF_LOOKS:
                tables = (
                    {each.bot: each.table_value for each in shown.strengths},
                    {each.bot: each.value for each in shown.strengths},
                    {bot: ladder.ratings.rating_of(bot).mu for bot in truth},
                )
                found_orders = tuple(correlate_ranks(truth, each) for each in tables)
                self.orders.setdefault(most, []).append(found_orders)
        self.held += (bot not in missed for bot in truth)
        self.held_once += (bot not in missed_once for bot in truth)


def correlate_ranks(one: dict[str, float], other: dict[str, float]) -> float:
    """Spearman's rank correlation, without ties."""
    places = [{bot: at for at, bot in enumerate(sorted(each, key=each.__getitem__))} for each in (one, other)]
    count = len(one)
    return 1 - 6 * sum((places[0][bot] - places[1][bot]) ** 2 for bot in one) / (count * (count * count - 1))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seats", [2, 4])
def test_all_intervals_of_a_ladder_hold_together_and_its_table_orders_the_bots(seats: int) -> None:
    found = LadderLooks(seats)
    for seed in range(20):
        found.follow(seed)
    orders = {most: tuple(map(mean, zip(*pairs, strict=True))) for most, pairs in found.orders.items()}
    print(
        f"{seats} seats: all looks {mean(found.held):.3f}, of one look {mean(found.held_once):.3f}, {orders}"
    )
    assert mean(found.held) >= 0.95
    assert mean(found.held_once) < 0.9
    assert all(by_table >= by_mu - 0.01 for by_table, _, by_mu in orders.values())
    assert min(orders[80]) > 0.95


class Careless(Greedy):
    """Plays a random card now and then."""

    often = 0.5

    def choose(self, view: View) -> Card:
        if self.chance.random() < self.often:
            return self.chance.choice(list(view.legal_cards))
        return super().choose(view)


def careless(often: float) -> type[Careless]:
    return type(f"Careless{100 * often:.0f}", (Careless,), {"often": often})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_bots_interval_holds_on_matches_of_ugo() -> None:
    """No model made these. The truth is what all of them come to; a season is a thirtieth of them."""
    entrants = [*(careless(often) for often in (0.0, 0.1, 0.3, 0.6, 0.8)), "random"]
    log: list[LoggedResult] = []
    for four in combinations(entrants, 4):
        for played in seatwise.play(four, matches=120, seed=len(log)).matches:
            names, endings = played.bots, tuple(ending.name for ending in played.endings)
            log.append(LoggedResult(len(log) + 1, played.match, names, played.points, played.ranks, endings))
    truth = {found.bot: found.value for found in fit_strengths(log).strengths}
    found = tally(truth, 2000, lambda seed: random.Random(seed).sample(log, len(log) // 30))
    print(f"UGO!, {len(log)} matches: {shown(found)}")
    assert min(found.of_bots()) >= 0.93
    assert max(found.of_bots()) <= 0.97
    assert min(found.of_differences()) >= 0.93
    assert max(found.of_differences()) <= 0.97


def shown(found: Tally) -> str:
    """A line for docs/statistics.md."""
    bots, differences = found.of_bots(), found.of_differences()
    return (
        f"bots {mean(bots):.3f} ({min(bots):.3f} to {max(bots):.3f}), "
        f"differences {mean(differences):.3f} ({min(differences):.3f} to {max(differences):.3f})"
    )
