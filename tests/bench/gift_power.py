"""How often gifts of a few points are found by the cards that give them: seasons of UGO! that are drawn from judged matches.

    python tests/bench/gift_power.py [--matches N] [--seasons N]

Matches of `greedy` with 0 to 50 % random cards are played and judged as `seatwise league gifts` judges them. Each match of a season is
one of them by lot, with four of eight names at its seats by lot, so nobody has a friend. Then one bot's gift to another is made larger.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import stdev
from tempfile import TemporaryDirectory

from matches_needed import Careless

import seatwise
from seatwise.samples.ugo_gifts import MatchGifts, measure_gifts
from seatwise_server.competition.statistics.decision_gifts import find_gifts

PARTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""The share of random cards of each bot."""
BOTS = tuple(f"bot-{number}" for number in range(len(PARTS)))
SEASON = 400
GIFTS = (0.0, 2.0, 3.0, 5.0)

Matrix = tuple[tuple[float, ...], ...]


def judged(number: int) -> Matrix:
    """The gifts by seat of one match of four of the bots."""
    chance = Random(f"gift-power/{number}")
    bots = [partial(Careless, part) for part in chance.sample(PARTS, 4)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        seatwise.play(bots, matches=1, seed=number, records=file)
        return measure_gifts(file.read_text().splitlines()[0]).gifts


def season(found: Sequence[Matrix], gift: float, chance: Random) -> list[MatchGifts]:
    """A season in which the first bot gives the second so many points a match, taken from the other two in equal parts."""
    played = []
    for _ in range(SEASON):
        names, gifts = chance.sample(BOTS, 4), [list(row) for row in chance.choice(found)]
        if {BOTS[0], BOTS[1]} <= set(names):
            giver, taker = names.index(BOTS[0]), names.index(BOTS[1])
            for seat in {0, 1, 2, 3} - {giver}:
                gifts[giver][seat] += gift if seat == taker else -gift / 2
        played.append(MatchGifts(tuple(names), tuple(map(tuple, gifts))))
    return played


def show_power(found: Sequence[Matrix], gift: float, seasons: int) -> None:
    named = right = 0
    for number in range(seasons):
        first = find_gifts(season(found, gift, Random(f"{gift}/{number}")))[0]
        named += first.is_remarkable
        right += first.is_remarkable and (first.giver, first.taker) == BOTS[:2]
    print(
        f"gift {gift:g}: named {100 * named / seasons:.0f} %, the right pair first {100 * right / seasons:.0f} %",
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
    parser.add_argument("--matches", type=int, default=61)
    parser.add_argument("--seasons", type=int, default=60)
    given = parser.parse_args()
    os.nice(5)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(judged, range(given.matches)))
    print(
        f"{given.matches} matches; the gap of a match has a standard deviation of {stdev(gap for each in found for gap in gaps(each)):.1f}"
    )
    for gift in GIFTS:
        show_power(found, gift, given.seasons)


if __name__ == "__main__":
    main()
