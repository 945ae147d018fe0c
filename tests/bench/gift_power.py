"""How often gifts of a few points are found by the cards that give them: seasons of UGO! that are drawn from judged matches.

    python tests/bench/gift_power.py [--seats 3] [--matches N] [--friends N] [--seasons N] [--deals N]

Matches of `greedy` with 0 to 50 % random cards are played and judged as `seatwise league gifts` judges them. Each match of a season is
one of them by lot, with four (or three) of eight names at its seats by lot, so nobody has a friend. Then one bot's gift to another is made larger
in two ways: by so many points in each match, and by matches of a bot that has a friend and chooses its cards for both.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from tempfile import TemporaryDirectory

from matches_needed import Careless

import seatwise
from seatwise import Card
from seatwise.samples.ugo_gifts import SAMPLED_DEALS, MatchGifts, measure_gifts, sample_points
from seatwise.ugo import View
from seatwise_server.competition.statistics.decision_gifts import find_gifts

PARTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""The share of random cards of each bot."""
BOTS = tuple(f"bot-{number}" for number in range(len(PARTS)))
SEASON = 400
"""Matches of a season."""
OTHER_SEASONS = (100, 200, 800)
GIFTS = (1.0, 2.0, 3.0, 5.0)
RATE = 0.3
"""What a point for its friend is worth to a bot that has one, in points of its own."""
LOOKED_AT = 16
"""Deals in which a bot with a friend looks at its cards."""

Matrix = tuple[tuple[float, ...], ...]


class Friend(Careless):
    """Sits at seat 0, and plays another card than it would if that is clearly better for itself and seat 1 together."""

    def __init__(self, part: float, rate: float) -> None:
        super().__init__(part)
        self._rate = rate

    def choose(self, view: View) -> Card:
        usual = super().choose(view)
        if len(view.legal_cards) == 1:
            return usual
        points = sample_points(view, self.chance, LOOKED_AT)
        worth = {
            card: own + self._rate * (taken - fmean(rest)) for card, (own, taken, *rest) in points.items()
        }
        best = max(worth, key=worth.__getitem__)
        return best if worth[best] > worth[usual] + 1 else usual


def judged(number: int, rate: float, deals: int, seats: int) -> Matrix:
    """The gifts by seat of one match of so many of the bots. If there is a rate, seat 0 is a friend of seat 1."""
    chance = Random(f"gift-power/{number}")
    first, *others = chance.sample(PARTS, seats)
    bots = [partial(Friend, first, rate) if rate else partial(Careless, first)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        players = [*bots, *(partial(Careless, part) for part in others)]
        seatwise.play(players, matches=1, seed=number, records=file)
        return measure_gifts(file.read_text().splitlines()[0], deals).gifts


def season(
    found: Sequence[Matrix], friends: Sequence[Matrix], matches: int, gift: float, chance: Random
) -> list[MatchGifts]:
    """A season in which the first bot has the second for a friend, if there is a gift or there are matches of friends.

    A gift is so many points a match, taken from the other bots in equal parts.
    """
    played, seats = [], len(found[0])
    for _ in range(matches):
        names, gifts = chance.sample(BOTS, seats), [list(row) for row in chance.choice(found)]
        if {BOTS[0], BOTS[1]} <= set(names):
            if friends:
                names = [*BOTS[:2], *(name for name in names if name not in BOTS[:2])]
                gifts = [list(row) for row in chance.choice(friends)]
            giver, taker = names.index(BOTS[0]), names.index(BOTS[1])
            for seat in set(range(seats)) - {giver}:
                gifts[giver][seat] += gift if seat == taker else -gift / (seats - 2)
        played.append(MatchGifts(tuple(names), tuple(map(tuple, gifts))))
    return played


def show_power(
    found: Sequence[Matrix], friends: Sequence[Matrix], matches: int, gift: float, seasons: int
) -> None:
    named = right = 0
    for number in range(seasons):
        tested = find_gifts(season(found, friends, matches, gift, Random(f"{gift}/{number}")))
        is_named = (
            bool(tested) and tested[0].is_remarkable
        )  # in a short season no pair may have met often enough
        named += is_named
        right += is_named and (tested[0].giver, tested[0].taker) == BOTS[:2]
    print(
        f"    {matches} matches, gift {gift:g}: a pair is named in {100 * named / seasons:.1f} %, "
        f"the right one first in {100 * right / seasons:.1f} %",
        flush=True,
    )


def gaps(gifts: Matrix) -> list[float]:
    """The gift to each other seat, less the mean of the rest."""
    return [
        row[taker] - (sum(row) - row[giver] - row[taker]) / (len(row) - 2)
        for giver, row in enumerate(gifts)
        for taker in range(len(row))
        if taker != giver
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matches", type=int, default=200, help="judged matches without friends")
    parser.add_argument("--friends", type=int, default=60, help="judged matches with friends")
    parser.add_argument("--seasons", type=int, default=200)
    parser.add_argument("--deals", type=int, default=SAMPLED_DEALS, help="deals in which a card is judged")
    parser.add_argument("--seats", type=int, choices=(3, 4), default=4)
    given = parser.parse_args()
    os.nice(5)
    judge = partial(judged, deals=given.deals, seats=given.seats)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(partial(judge, rate=0.0), range(given.matches)))
        friends = list(pool.map(partial(judge, rate=RATE), range(10**6, 10**6 + given.friends)))
    spread = stdev(gap for each in found for gap in gaps(each))
    print(f"{given.matches} matches; the gap of a match has a standard deviation of {spread:.1f}")
    show_power(found, [], SEASON, 0.0, 5 * given.seasons)
    for gift in GIFTS:
        show_power(found, [], SEASON, gift, given.seasons)
    for matches in OTHER_SEASONS:
        show_power(found, [], matches, 3.0, given.seasons)
    gap = fmean(gifts[0][1] - fmean(gifts[0][2:]) for gifts in friends)
    gift = gap * (given.seats - 2) / (given.seats - 1)
    print(f"{given.friends} matches of friends, a mean gap of {gap:.1f}: a gift of {gift:.1f}")
    for matches in (*OTHER_SEASONS, SEASON):
        show_power(found, friends, matches, 0.0, given.seasons)


if __name__ == "__main__":
    main()
