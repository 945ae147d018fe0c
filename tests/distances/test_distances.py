"""No bot gains in a race by being late, and a bot is charged for its thinking wherever it is; over a network with real distances.

`pytest -s` prints the table that docs/protocol.md has. A machine without namespaces of its own cannot make such a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from harness import distant_network

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not distant_network.is_possible(), reason="this machine allows no namespaces with TUN devices"
    ),
]

ROUNDS = 300
TIE_WINDOW_MS = 10
SIGNIFICANCE = 0.001
MEDIAN_MS, P99_MS = 5, 20
LIARS = (
    "honest", "late pongs", "late acknowledgements", "bursts", "shut window", "sits late", "all but the decisive answer",
)  # fmt: skip
DETERMINED = ("all packets but answers", "all packets but answers, very late")
JITTERS_MS = {
    "honest at 0 ms, jitter 0 ms": 0,
    "honest at 20 ms, jitter 0 ms": 0,
    "honest at 40 ms, jitter 0 ms": 0,
    "honest at 80 ms, jitter 0 ms": 0,
    "honest at 20 ms, jitter 10 ms": 10,
    "honest at 40 ms, jitter 20 ms": 20,
}
NEAR = "honest at 0 ms, jitter 0 ms"
"""The far one of this pair is as near as its twin: it shows what the machine itself adds."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What two bots were charged beyond their thinking, in ms, by round: the first, and its honest twin."""

    beyond: list[float]
    twin: list[float]
    decisive_gains: list[float]
    allowances: list[int]

    @property
    def gains(self) -> list[float]:
        """How much less the first was charged than its twin."""
        return [twin - own for own, twin in zip(self.beyond, self.twin, strict=True)]


def p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


def most_by_chance(rounds: int) -> int:
    """How many of so many rounds are above the median at most, but for one case in a thousand."""
    chance, above = 0.0, rounds
    while chance + comb(rounds, above) / 2**rounds <= SIGNIFICANCE:
        chance += comb(rounds, above) / 2**rounds
        above -= 1
    return above


def read_pair(told: dict[str, Any]) -> Pair:
    own, twin = zip(*told["all"], strict=True)
    decisive = [honest - liar for liar, honest in told["decisive"]]
    return Pair(list(own), list(twin), decisive, [each[0] for each in told["allowance"]])


@pytest.fixture(scope="module")
def pairs() -> dict[str, Pair]:
    """All pairs, after `ROUNDS` rounds each."""
    world = Path(__file__).with_name("play_world.py")
    played = subprocess.run(
        ["unshare", "-rn", sys.executable, str(world), str(ROUNDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr[-3000:]
    told = [json.loads(line) for line in played.stdout.splitlines()]
    found = {each["pair"]: read_pair(each) for each in told}
    for name, pair in sorted(found.items()):
        print(
            f"| {name} | {median(pair.gains):.0f} | {median(pair.decisive_gains):.0f} | {median(pair.beyond):.1f} "
            f"| {p99(pair.beyond):.0f} | {min(pair.allowances)} to {max(pair.allowances)} |"
        )
    return found


def test_the_sign_test_knows_its_quantile() -> None:
    assert most_by_chance(300) == 177
    assert most_by_chance(10) == 9


@pytest.mark.parametrize("name", LIARS)
def test_no_liar_gains_a_tie_window_in_the_median(pairs: dict[str, Pair], name: str) -> None:
    gains = pairs[name].gains
    assert len(gains) >= ROUNDS
    assert sum(gain > TIE_WINDOW_MS for gain in gains) <= most_by_chance(len(gains))


def test_a_bot_that_delays_all_but_the_decisive_answers_gains_nothing_in_the_decisive_rounds(
    pairs: dict[str, Pair],
) -> None:
    gains = pairs["all but the decisive answer"].decisive_gains
    assert sum(gain > TIE_WINDOW_MS for gain in gains) <= most_by_chance(len(gains))


@pytest.mark.parametrize("name", DETERMINED)
def test_a_bot_that_changes_the_packets_of_its_own_machine_gains_no_more_than_its_answers_allow(
    pairs: dict[str, Pair], name: str
) -> None:
    """That is published, and not prevented. No bot can hide more than its whole thinking."""
    pair = pairs[name]
    assert median(pair.gains) <= 160
    assert max(pair.allowances) <= 300


@pytest.mark.parametrize("name", JITTERS_MS)
def test_an_honest_bot_is_charged_for_its_thinking_wherever_it_is(pairs: dict[str, Pair], name: str) -> None:
    beyond, jitter_ms = pairs[name].beyond, JITTERS_MS[name]
    near = p99([*pairs[NEAR].beyond, *pairs[NEAR].twin])
    most_ms = 2 * jitter_ms + MEDIAN_MS if jitter_ms else P99_MS
    assert abs(median(beyond)) <= (jitter_ms or MEDIAN_MS)
    if p99(beyond) > most_ms and near > P99_MS / 2:
        pytest.skip(f"this machine is too busy to tell: {near:.0f} ms at p99 without any distance")
    assert p99(beyond) <= most_ms
