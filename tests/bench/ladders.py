"""What a ladder's arithmetic costs, by the time that a core really had: a pass of pairing, the ratings and the strengths of a whole log.

python tests/bench/ladders.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from harness.ladder import recompute_ratings
from openskill.models import PlackettLuce, PlackettLuceRating
from table import Row, at_most, show

from seatwise_referee.ending import Ending
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import fit_strengths
from seatwise_server.ladder.ladder_pairing import AttendingBot, PairingRules

ATTENDING = 10_000
RESULTS = 100_000
BOTS, REFITTED = 300, 20_000
PASSES = 7


def rows() -> list[Row]:
    """Both bars of the ladder, and what its intervals take, which no referee waits for."""
    return [
        at_most(f"a pass of pairing over {ATTENDING:,} bots, four seats", pairing_ms(4), 50, "ms"),
        at_most(f"recompute of {RESULTS:,} results, four seats", (ours := recompute_s()), 10, "s"),
        at_most("... beside openskill's own time", ours / openskill_s(), 1.3, "x"),
        at_most(f"refit of {BOTS} bots from {REFITTED:,} results, four seats", refit_s(), 1.0, "s"),
    ]


def pairing_ms(seats: int) -> float:
    """All wait, of 3,000 owners, with full memories; every table that can be filled is. The best of some passes: the others had company."""
    chance = random.Random(1)
    floor = [_attending(number, chance) for number in range(ATTENDING)]
    return 1000 * min(
        _seconds(lambda: PairingRules(seats).pair_tables(floor, ATTENDING)) for _ in range(PASSES)
    )


def _attending(number: int, chance: random.Random) -> AttendingBot:
    recent = tuple(_name(chance.randrange(ATTENDING)) for _ in range(12))
    counts = tuple(chance.randrange(20) for _ in range(4))
    owner = f"owner{chance.randrange(3000)}"
    return AttendingBot(_name(number), chance.gauss(25, 6), 10 * chance.random(), owner, recent, counts)


def recompute_s() -> float:
    """Of as many bots as are refitted, with ties."""
    log = _log_of_results()
    return _seconds(lambda: recompute_ratings(log))


def openskill_s() -> float:
    """The same ratings by openskill itself, which keeps them from result to result, without anything of ours."""
    model = PlackettLuce(tau=0.0)
    rated: dict[str, PlackettLuceRating] = {}
    matches = [(result.bots, list(map(float, result.ranks))) for result in _log_of_results()]

    def rate_all() -> None:
        for bots, ranks in matches:
            after = model.rate([[rated.get(bot) or model.rating()] for bot in bots], ranks=ranks)
            rated.update((bot, new) for bot, [new] in zip(bots, after, strict=True))

    return _seconds(rate_all)


def _log_of_results() -> list[LoggedResult]:
    chance = random.Random(2)
    return [_result(seq, chance) for seq in range(1, RESULTS + 1)]


def refit_s() -> float:
    """With every interval and every difference ready to be asked for."""
    chance = random.Random(3)
    log = [_result(seq, chance) for seq in range(1, REFITTED + 1)]
    return _seconds(lambda: fit_strengths(log))


def _result(seq: int, chance: random.Random) -> LoggedResult:
    bots = tuple(map(_name, chance.sample(range(BOTS), 4)))
    points = tuple(chance.randrange(12) for _ in bots)
    ranks = tuple(1 + sum(other > own for other in points) for own in points)
    return LoggedResult(seq, f"matches/{seq}", bots, points, ranks, (Ending.COMPLETED,) * 4)


def _name(number: int) -> str:
    return f"bots/b{number}/versions/1"


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    show(rows())
