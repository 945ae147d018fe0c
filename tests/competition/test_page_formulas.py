"""Computes published figures again as docs/statistics.md words them, with none of the code that publishes them."""

from __future__ import annotations

import hmac
import math
from collections import defaultdict
from random import Random

import numpy as np
import pytest
from seasons.simulated_points import season

from seatwise.kits.ugo.match_luck import mean_playout_points
from seatwise_server.competition.numeric.student_t import half_width_errors
from seatwise_server.competition.schedules.round_robin import RoundRobin
from seatwise_server.competition.schedules.schedule import Duplicate
from seatwise_server.competition.statistics.luck_correction import correct_by_measures
from seatwise_server.competition.statistics.season_statistics import (
    bootstrap_orders,
    estimate_differences,
    estimate_entrant_means,
)

BOTS = tuple(f"bots/{name}/versions/1" for name in "abcde")
COLOURS, LANDS_OPEN = "RBGYK", (0, 0, 1, 3, 5)
CARDS = [colour + str(value) for colour in COLOURS for value in range(9)]
WON = (0, 0, 0, 2, 2, 2, 1, 1, 0)


@pytest.fixture(params=["none", "travelling", "rotation"])
def played(request):
    plan = RoundRobin(BOTS, 2, 6, Duplicate(request.param))
    return season(plan.all_matches(), dict(zip(BOTS, (9, 4, 3, 0, -5), strict=True)), Random(11))


def deal_of(result):
    return result.deal or result.match


def residuals_of(results, values):
    """What the bot and each of its opponents do not explain, match by match."""
    rows, chance = [], []
    for result, own in zip(results, values, strict=True):
        for seat, value in enumerate(own):
            row = np.zeros(2 * len(BOTS))
            row[BOTS.index(result.bots[seat])] = 1
            for other in result.bots[:seat] + result.bots[seat + 1 :]:
                row[len(BOTS) + BOTS.index(other)] += 1
            rows.append(row)
            chance.append(value)
    left = iter(chance - np.array(rows) @ np.linalg.lstsq(np.array(rows), np.array(chance), rcond=None)[0])
    return [[next(left) for _ in own] for own in values]


def half_width(amounts, deals, count):
    """Steps 1 to 3 of "Means, differences, orders"."""
    square = sum(each * each for each in amounts) * deals / (deals - 1) * count / max(1, count - len(BOTS))
    return half_width_errors(deals - 1) * math.sqrt(square)


def half_width_of_mean(bot, results, values, taken):
    count, matches = sum(map(len, values)), sum(bot in result.bots for result in results)
    own, all_bots = defaultdict(float), defaultdict(float)
    for result, left, less in zip(results, residuals_of(results, values), taken, strict=True):
        all_bots[deal_of(result)] += sum(less) / count
        if bot in result.bots:
            own[deal_of(result)] += left[result.bots.index(bot)] / matches
    return half_width([own.get(deal, 0.0) + each for deal, each in all_bots.items()], len(own), count)


def half_width_of_difference(one, other, results):
    values = [result.points for result in results]
    means = defaultdict(lambda: defaultdict(list))
    for result, left in zip(results, residuals_of(results, values), strict=True):
        for bot, each in zip(result.bots, left, strict=True):
            means[deal_of(result)][bot].append(each)
    chance = [
        np.mean(deal[one]) - np.mean(deal[other]) for deal in means.values() if {one, other} <= deal.keys()
    ]
    count = len(chance)
    return half_width([(each - np.mean(chance)) / count for each in chance], count, sum(map(len, values)))


def test_the_interval_of_a_mean(played):
    values = [result.points for result in played]
    for bot, found in estimate_entrant_means(played).items():
        half = half_width_of_mean(bot, played, values, [[0.0] * 2 for _ in values])
        assert found.high - found.value == pytest.approx(half, rel=1e-6)


def test_the_interval_of_a_corrected_mean_has_the_luck_of_all_deals(played):
    luck = [
        tuple(Random(f"luck/{deal_of(result)}/{seat}").gauss(0, 9) for seat in (0, 1)) for result in played
    ]
    points = correct_by_measures(played, [luck], [0.5])
    taken = [
        [value - less for value, less in zip(result.points, own, strict=True)]
        for result, own in zip(played, points.values, strict=True)
    ]
    for bot, found in estimate_entrant_means(played, points).items():
        half = half_width_of_mean(bot, played, points.values, taken)
        assert found.high - found.value == pytest.approx(half, rel=1e-6)


def test_the_interval_of_a_paired_difference(played):
    for (one, other), found in estimate_differences(played).items():
        if found.clusters > 1:
            half = half_width_of_difference(one, other, played)
            assert found.high - found.value == pytest.approx(half, rel=1e-6, abs=1e-9)


def test_the_draws_of_the_bootstrap(played):
    deals: dict[str, list[tuple[str, float]]] = {}
    for result in played:
        deals.setdefault(deal_of(result), []).extend(zip(result.bots, result.points, strict=True))
    chance, found = Random("bootstrap/s7"), bootstrap_orders(played, seed="s7")
    firsts = dict.fromkeys(BOTS, 0)
    for _ in range(found.draws):
        points = defaultdict(list)
        for deal in chance.choices(list(deals.values()), k=len(deals)):
            for bot, each in deal:
                points[bot].append(each)
        firsts[min(points, key=lambda bot: (-sum(points[bot]) / len(points[bot]), bot))] += 1
    for bot in BOTS:
        assert found.rank_probabilities[bot][0] == pytest.approx(firsts[bot] / found.draws)


def winner_of(trick):
    best = max(int(card[1]) for card in trick)
    equal = [card for card in trick if int(card[1]) == best]
    return trick.index(next((card for card in equal if card[0] == trick[0][0]), equal[0]))


def farmers_of(card, winning):
    if card == winning:
        return WON[int(card[1])]
    return {"1": 1 if card[0] == winning[0] else 2, "2": int(card[0] != winning[0])}.get(card[1], 0)


def score(tops, farmers):
    held = (0, 0, min(farmers, 2), min(max(farmers - 2, 0), 3), min(max(farmers - 5, 0), 4))
    points = 0
    for place, needed in enumerate((0, 0, 2, 3, 4)):
        missing = needed - held[place]
        if place < len(tops):
            points += -5 * missing if missing else tops[place]
        elif not missing:
            points += LANDS_OPEN[place]
    return points


def lay_trick(tops, trick):
    highest: dict[str, int] = {}
    for card in sorted(trick, key=lambda card: -int(card[1])):
        highest.setdefault(card[0], int(card[1]))
    tops |= highest


def simulate(hands, leader, wish):
    """One simulation of a round by the players of the page."""
    seats = len(hands)
    hands, tops, farmers = [sorted(hand, key=wish.get) for hand in hands], [{} for _ in hands], [0] * seats
    while hands[leader]:
        trick = [hands[leader].pop()]
        for turn in range(1, seats):
            hand = hands[(leader + turn) % seats]
            trick.append(hand.pop(next((at for at, card in enumerate(hand) if card[0] == trick[0][0]), 0)))
        won = winner_of(trick)
        for turn, card in enumerate(trick):
            farmers[(leader + turn) % seats] += farmers_of(card, trick[won])
        leader = (leader + won) % seats
        lay_trick(tops[leader], trick)
    return [score(list(own.values()), min(9, count)) for own, count in zip(tops, farmers, strict=True)]


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_playouts_of_a_deal(seats):
    for number in range(4):
        seed = bytes([number]) * 32
        chance, sums = Random(seed), [0] * seats
        for index in range(4):
            names = [f"ugo/round/{index + 1}:{card}".encode() for card in CARDS]
            order = [
                name.decode()[-2:]
                for name in sorted(names, key=lambda name: hmac.digest(seed, name, "sha256"))
            ]
            hands = [order[10 * seat : 10 * seat + 10] for seat in range(seats)]
            for _ in range(32):
                wish = {card: int(card[1]) + 12 * chance.random() for card in CARDS}
                sums = [a + b for a, b in zip(sums, simulate(hands, index % seats, wish), strict=True)]
        assert mean_playout_points(seats, seed, {"rounds": 4}) == tuple(each / 32 for each in sums)
