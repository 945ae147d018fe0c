"""The levels of UGO!: samples from random to searching, which an operator may choose as house bots."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import seatwise
from seatwise.kits import KITS, search_limit
from seatwise.kits.game_kit import is_search_installed
from seatwise.kits.search_limit import SearchLimit
from seatwise.offer import TimeLeft
from seatwise.samples import SAMPLES, sample
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Ugo
from seatwise_server import house

GAME = Ugo()
LEVELS = (
    "random", "half-greedy", "greedy", "counting", "counting-ahead", "search-500", "search-2000", "search-time",
)  # fmt: skip
needs_search = pytest.mark.skipif(
    not is_search_installed(), reason="seatwise_fast is not compiled: no C compiler is here"
)


def first_view() -> Any:
    return GAME.view(GAME.deal(4, bytes(32), {"rounds": 1}), Seat(0))


def bot_of(level: str, seed: int = 1, limit_ms: int = 0) -> Any:
    bot = sample(level)()
    bot.chance, bot.time = Random(seed), TimeLeft(limit_ms, 0, 0, 0, 0)
    return bot


@needs_search
def test_there_are_eight_levels_the_weakest_first() -> None:
    assert SAMPLES["ugo"] == LEVELS


def test_without_the_compiled_rules_no_bot_that_searches_is_offered() -> None:
    program = (
        "import sys; sys.modules['seatwise_fast'] = None\n"
        "from seatwise.samples import SAMPLES\n"
        "from seatwise_server.house import choose_house\n"
        "print(SAMPLES['ugo'])\n"
        "try: choose_house(['house-search-500', 'house-greedy', 'house-random'])\n"
        "except ValueError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[0] == str(LEVELS[:5])
    assert "not installed or not compiled; from a clone: pip install ./client_sdk/seatwise_fast" in told


@pytest.mark.parametrize(
    "level", ["half-greedy", "counting-ahead", pytest.param("search-500", marks=needs_search)]
)
def test_a_level_repeats_its_match_with_the_same_seed(level: str) -> None:
    first, second = (
        seatwise.play([level, "greedy"], matches=1, seed="again", options={"rounds": 1}).standings
        for _ in range(2)
    )
    assert [(each.bot, each.mean_points) for each in first] == [
        (each.bot, each.mean_points) for each in second
    ]


def test_half_of_the_moves_of_half_greedy_are_those_of_greedy() -> None:
    view, greedy = first_view(), bot_of("greedy").choose(first_view())
    chosen = [bot_of("half-greedy", seed).choose(view) for seed in range(200)]
    others = sum(card != greedy for card in chosen)
    assert set(chosen) <= set(view.legal_cards)
    assert 60 < others < 120  # half of them at random, and one of ten cards is the same


def test_counting_ahead_scores_every_seat_of_a_simulated_round() -> None:
    """Its model gives the lead that the referee gives, where the deal leaves no choice: one card in each hand."""
    from seatwise.kits.ugo.samples import LeadModel

    chance, compared = Random(4), 0
    for number in range(30):
        state = GAME.deal(3, number.to_bytes(32, "big"), {"rounds": 1})
        while state.asked is not None:
            is_last_trick = all(hand.bit_count() == 1 for hand in state.hands) and not state.table.won
            if is_last_trick and state.table.supply > 9:
                compared += compare_last_trick(state, LeadModel(GAME.view(state, state.asked), chance))
                break
            state = GAME.play(state, state.asked, chance.choice([*GAME.legal_moves(state, state.asked)]))
    assert compared > 20


def compare_last_trick(state: Any, model: Any) -> bool:
    seat = state.asked
    hands = [[GAME.view(state, Seat(each)).hand[0]] for each in range(3)]
    found = model.play_out(hands, hands[seat][0])
    while state.asked is not None:
        state = GAME.play(state, state.asked, GAME.default_move(state, state.asked))
    [points] = state.round.points
    assert found == 3 * points[seat] - sum(points)
    return True


# The share of the machine


@needs_search
def test_a_search_without_time_plays_as_greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = SearchLimit(1)
    monkeypatch.setattr("seatwise.kits.ugo.samples.SEARCH_LIMIT", limit)
    with limit.take_slot(0):
        card = bot_of("search-2000", limit_ms=20).choose(first_view())
    assert card == bot_of("greedy").choose(first_view())


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(search_limit, "monotonic", clock.monotonic)
    monkeypatch.setattr(search_limit, "sleep", clock.sleep)
    return clock


def test_searches_keep_to_less_than_a_core(clock: Clock) -> None:
    """With a quarter of a core three quarters of the time pass between searches, not in them."""
    limit, began_s = SearchLimit(0.25), clock.now_s
    for _ in range(10):
        with limit.take_slot(0) as seconds:
            assert seconds == 0
            clock.sleep(1)
    with limit.take_slot(0):
        assert clock.now_s - began_s == pytest.approx(40)


def test_a_search_that_would_begin_too_late_does_not_begin(clock: Clock) -> None:
    limit = SearchLimit(0.5)
    with limit.take_slot(0):
        clock.sleep(1)
    with limit.take_slot(0.9) as seconds:
        assert seconds is None
    with limit.take_slot(1.5) as seconds:
        assert seconds == pytest.approx(0.5)


def test_two_cores_run_two_searches_and_no_third() -> None:
    limit = SearchLimit(2)
    with limit.take_slot(0), limit.take_slot(0), limit.take_slot(0.01) as third:
        assert third is None
    with limit.take_slot(0.5) as seconds:
        assert seconds is not None


@needs_search
async def test_an_event_loop_answers_while_a_search_runs() -> None:
    from seatwise_fast import search_card

    searching = asyncio.create_task(asyncio.to_thread(search_card, first_view(), 20_000))
    turns = 0
    while not searching.done():
        turns += 1
        await asyncio.sleep(0)
    assert (await searching).iterations == 20_000
    assert turns > 100


# The choice of an operator


def test_without_a_choice_the_house_is_as_it_was() -> None:
    assert house.house_bots() == house.house_bots([])
    assert [name.split("/")[1] for name in house.house_bots()["ugo"]] == [
        "house-counting", "house-greedy", "house-random",
    ]  # fmt: skip


def test_an_operator_chooses_the_house_of_one_game() -> None:
    names = ["house-counting-ahead", "house-greedy", "house-half-greedy"]
    chosen = house.house_bots(names)
    assert chosen["ugo"] == tuple(f"bots/{name}/versions/1" for name in names)
    assert chosen["ubongo"] == house.house_bots()["ubongo"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["house-best"], "--house-bot house-best: no such house bot; there are house-counting, "),
        (["house-greedy"], "a match of ugo can lack 3 bots; choose as many, not 1"),
        (["house-greedy"] * 3, "choose as many, not 1"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(names: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        house.choose_house(names)


@needs_search
async def test_house_bots_that_search_have_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[set[str]] = []
    both = asyncio.Event()

    async def note_players(_: object, players: list[dict[str, str]]) -> int:
        started.append({player["sample"] for player in players if player["game"] == "ugo"})
        if len(started) == 2:
            both.set()
        return await asyncio.Future()

    monkeypatch.setattr(house, "_run_process", note_players)
    names = ["house-search-500", "house-greedy", "house-search-2000"]

    async def holds(*_: object) -> bool:
        return True

    async def no_token(*_: object) -> str:
        return ""

    monkeypatch.setattr(house, "_holds_lease", holds)
    monkeypatch.setattr(house, "_token", no_token)
    store: Any = SimpleNamespace(leases=SimpleNamespace(release_lease=holds))
    running = asyncio.create_task(house.run_house_bots(store, house.HouseLink("localhost:1"), "me", names))
    async with asyncio.timeout(30):
        await both.wait()
    running.cancel()
    await asyncio.wait({running})
    assert sorted(map(sorted, started)) == [["counting", "greedy", "random"], ["search-2000", "search-500"]]


def test_the_demo_has_several_levels() -> None:
    demo = KITS["ugo"].demo
    assert demo
    assert len(set(demo.bots.values())) == 4


# Strength, and long runs


PAIRS = list(pairwise(LEVELS[:-1]))


@needs_search
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("weaker", "stronger"), PAIRS)
def test_adjacent_levels_are_told_apart_at_two_seats(weaker: str, stronger: str) -> None:
    """On rotated deals, by the intervals of `seatwise compare`."""
    from seatwise.local.comparison import ComparisonVerdict, StopRule, compare_versions
    from seatwise.local.deal_block import BlockPlan
    from seatwise.units.workers import LocalWorkers

    plan = BlockPlan("ugo", (weaker, stronger), (weaker, stronger), {"rounds": 1}, "levels")
    rule = StopRule(margin=0.001, most_matches=30_000)
    found = compare_versions(plan, rule, LocalWorkers(2), lambda _: None, lambda _: None)
    assert found.verdict is ComparisonVerdict.BETTER, found.why
    assert found.failures == (0, 0)


@needs_search
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_search_is_never_illegal_in_ten_thousand_deals() -> None:
    for seats, matches in ((2, 4000), (3, 3000), (4, 3000)):
        bots = ["search-500", *["greedy"] * (seats - 1)]
        results = seatwise.play(bots, matches=matches, seed=f"legal {seats}", options={"rounds": 1})
        assert [standing.failures for standing in results.standings] == [0] * seats


@needs_search
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_search_by_time_keeps_to_its_budget() -> None:
    """The 99th percentile of 300 searches is at most 1.1 times the budget, by the search's own thread."""
    from time import thread_time

    from seatwise_fast import search_card

    view, taken = first_view(), []
    for seed in range(300):
        began = thread_time()
        search_card(view, seconds=0.05, seed=seed)
        taken.append(thread_time() - began)
    assert sorted(taken)[296] <= 0.05 * 1.1


def test_the_page_of_training_lists_the_levels() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert all(f"| `{level}` |" in page for level in LEVELS)
