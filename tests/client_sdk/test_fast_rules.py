"""The fast rules against the referee, which is the authority: `seatwise_fast`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

np = pytest.importorskip("numpy", reason="the fast rules in batches need NumPy")

from seatwise.rl import encode_view, observation_layout, observation_size, open_batch  # noqa: E402
from seatwise.rl.actions import ACTION_COUNT, action_of_move, legal_actions, move_of_action  # noqa: E402
from seatwise.rl.deals import deals_of_seed, random_deals  # noqa: E402
from seatwise_referee.game import Seat  # noqa: E402
from seatwise_referee.games.ugo import CARDS, Play, Ugo  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatwise_fast.fast_batch import UgoBatch
    from seatwise_referee.games.ugo import UgoState, UgoView

GAME = Ugo()
SDK = Path(__file__).parents[2] / "client_sdk"
FAST = SDK / "seatwise_fast"
IS_COMPILED = any(FAST.glob("_ugo_rules*.so"))
needs_fast = pytest.mark.skipif(
    not IS_COMPILED, reason="seatwise_fast is not compiled: no C compiler is here"
)
FIELDS = (
    "hand", "played", "points", "section", "top", "farmers", "missing", "asked", "supply", "round", "is_laying", "is_over",
)  # fmt: skip


def state_of_seed(seed: bytes, seats: int, rounds: int) -> UgoState:
    return GAME.deal(seats, seed, {"rounds": rounds})


def views_of_match(seed: int, seats: int, rounds: int = 2) -> Iterator[UgoView]:
    """The views of the seat that is asked, in a match of random moves."""
    chance = Random(seed)
    state = state_of_seed(chance.randbytes(32), seats, rounds)
    while state.asked is not None:
        yield GAME.view(state, state.asked)
        state = GAME.play(state, state.asked, chance.choice([*GAME.legal_moves(state, state.asked)]))


def play_both(number: int, seats: int, rounds: int) -> int:
    """Play a match at the referee and at a compiled table; every legal action must be the same. Return the moves."""
    from seatwise_fast import FastTable

    chance = Random(number)
    seed = chance.randbytes(32)
    state, table = state_of_seed(seed, seats, rounds), FastTable(deals_of_seed(seed, rounds), seats)
    actions, moves = table.legal_actions(), 0
    while state.asked is not None:
        legal = list(GAME.legal_moves(state, state.asked))
        expected = (
            tuple(range(45, 45 + len(legal))) if state.table.won else tuple(int(move.card) for move in legal)  # type: ignore[union-attr]
        )
        assert (table.asked, actions) == (state.asked, expected), (number, moves)
        chosen = int(chance.random() * len(legal))
        state = GAME.play(state, state.asked, legal[chosen])
        actions = table.act(actions[chosen])
        moves += 1
    assert (table.asked, actions) == (None, ())
    outcome = GAME.outcome(state)
    assert outcome
    assert table.points == outcome.points
    return moves


@needs_fast
def test_a_compiled_table_is_equal_to_the_referee() -> None:
    """Over 400 matches of one round; `make nightly` plays 100,000 of four rounds."""
    assert sum(play_both(number, 2 + number % 3, rounds=1) for number in range(400)) > 12_000


@needs_fast
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_compiled_table_is_equal_to_the_referee_in_100_000_matches() -> None:
    assert sum(play_both(number, 2 + number % 3, rounds=4) for number in range(100_000)) > 10_000_000


@needs_fast
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_batch_is_equal_to_the_referee_in_every_observation(seats: int) -> None:
    chance, count, rounds = Random(seats), 10, 2
    seeds = [chance.randbytes(32) for _ in range(count)]
    states = [state_of_seed(seed, seats, rounds) for seed in seeds]
    deals = np.array([list(deals_of_seed(seed, rounds)) for seed in seeds]).reshape(count, rounds, 45)
    batch = open_batch(deals, seats)
    while not batch.is_over.all():
        actions = np.zeros(count, np.int64)
        mask = batch.mask()
        seen = [batch.observe(seat) for seat in range(seats)]
        for number, state in enumerate(states):
            for seat in range(seats):
                expected = encode_view(GAME.view(state, Seat(seat)))
                assert np.array_equal(seen[seat][number], expected), (number, seat)
            if state.asked is None:
                assert not mask[number].any()
                continue
            view = GAME.view(state, state.asked)
            assert tuple(np.flatnonzero(mask[number])) == legal_actions(view)
            actions[number] = chance.choice(legal_actions(view))
            move = move_of_action(int(actions[number]), view.won_cards)
            states[number] = GAME.play(state, state.asked, move)
        batch.step(actions)
    outcomes = [GAME.outcome(state) for state in states]
    assert batch.points.tolist() == [list(outcome.points) for outcome in outcomes if outcome]


@needs_fast
@pytest.mark.parametrize(("seats", "seed", "rounds"), [(2, 1, 1), (3, 2, 1), (4, 3, 2)])
def test_the_golden_matches_are_played_to_the_same_points(seats: int, seed: int, rounds: int) -> None:
    """With the deals and moves of tests/golden, whose files hold the moves as JSON."""
    import json
    from hashlib import sha256

    from seatwise_fast import FastTable

    text = (Path(__file__).parents[1] / "golden" / f"ugo-{seats}-{seed}.txt").read_text()
    moves = [json.loads(line.partition(": ")[2]) for line in text.splitlines() if line.startswith("seat ")]
    table = FastTable(deals_of_seed(sha256(str(seed).encode()).digest(), rounds), seats)
    for move in moves:
        table.act(action_of_move(GAME.move_from_json(move)))
    assert table.asked is None
    assert f"points={table.points}" in text.splitlines()[-1]


# Actions


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_one_action_is_one_move(seats: int) -> None:
    for view in views_of_match(seats, seats):
        actions = legal_actions(view)
        moves = [move_of_action(action, view.won_cards) for action in actions]
        assert [action_of_move(move) for move in moves] == list(actions)
        assert max(actions) < ACTION_COUNT


def test_an_action_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="action 69"):
        move_of_action(69, CARDS[:4])
    with pytest.raises(ValueError, match="with 0 won cards"):
        move_of_action(45)
    assert move_of_action(3) == Play(CARDS[3])


# Batches


@needs_fast
def test_an_illegal_action_is_named_and_changes_nothing() -> None:
    batch = open_batch(random_deals(3, 1, np.random.default_rng(1)), 3)
    before = [batch.read_field(name) for name in FIELDS]
    actions = batch.random_actions()
    for wrong in (-1, 45, 69, 2**40):
        actions[1] = wrong
        with pytest.raises(ValueError, match=f"table 1: action {wrong} is not legal"):
            batch.step(actions)
    with pytest.raises(ValueError, match="one for each of 3 tables"):
        batch.step(actions[:2])
    assert all(np.array_equal(old, batch.read_field(name)) for old, name in zip(before, FIELDS, strict=True))


@needs_fast
def test_a_copy_goes_its_own_way() -> None:
    batch = open_batch(random_deals(5, 2, np.random.default_rng(1)), 4)
    batch.seed(3)
    batch.step(batch.random_actions())
    other = batch.copy()
    assert np.array_equal(other.observe(), batch.observe())
    first, second = batch.random_actions(), other.random_actions()
    assert np.array_equal(first, second)
    other.step(second)
    assert not np.array_equal(other.observe(0), batch.observe(0))
    finish(batch)
    finish(other)
    assert batch.is_over.all()
    assert other.is_over.all()


@needs_fast
def test_new_matches_begin_at_some_tables() -> None:
    chance = np.random.default_rng(1)
    batch = open_batch(random_deals(3, 1, chance), 2)
    finish(batch)
    deals = random_deals(2, 1, chance)
    batch.deal_again(np.array([0, 2]), deals)
    assert batch.is_over.tolist() == [False, True, False]
    fresh = open_batch(deals, 2)
    assert np.array_equal(batch.observe()[[0, 2]], fresh.observe())
    finish(batch)
    assert batch.is_over.all()


def finish(batch: UgoBatch) -> None:
    while not batch.is_over.all():
        batch.step(batch.random_actions())


@needs_fast
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_table_set_from_a_view_shows_that_view_and_plays_on(seats: int) -> None:
    batch = open_batch(random_deals(1, 2, np.random.default_rng(1)), seats)
    for view in views_of_match(7, seats):
        assert view.seat is not None
        batch.set_view(0, view)
        assert np.array_equal(batch.observe()[0], encode_view(view))
        assert tuple(np.flatnonzero(batch.mask()[0])) == legal_actions(view)
        batch.step(np.array([legal_actions(view)[-1]]))


@needs_fast
def test_a_view_of_another_match_is_refused() -> None:
    batch = open_batch(random_deals(1, 1, np.random.default_rng(1)), 3)
    state = state_of_seed(bytes(32), 3, 1)
    with pytest.raises(ValueError, match="spectator"):
        batch.set_view(0, GAME.view(state, None))
    with pytest.raises(ValueError, match="other seats or rounds"):
        batch.set_view(0, GAME.view(state_of_seed(bytes(32), 3, 2), Seat(0)))


@needs_fast
def test_deals_that_cannot_be_are_refused() -> None:
    deals = random_deals(2, 1, np.random.default_rng(1))
    with pytest.raises(ValueError, match="2 to 4, not by 5"):
        open_batch(deals, 5)
    with pytest.raises(ValueError, match="1 to 8 rounds"):
        open_batch(deals[:, :, :44], 4)
    deals[1, 0, 0] = deals[1, 0, 1]
    with pytest.raises(ValueError, match="each card from 0 to 44 once"):
        open_batch(deals, 4)


# One table


@needs_fast
def test_a_compiled_table_refuses_what_cannot_be() -> None:
    from seatwise_fast import FastTable

    deals = deals_of_seed(bytes(32), 1)
    for wrong in (b"", deals[:44], deals * 9, bytes(45)):
        with pytest.raises(ValueError, match="deals"):
            FastTable(wrong, 2)
    with pytest.raises(ValueError, match="seats"):
        FastTable(deals, 1)
    table = FastTable(deals, 2)
    copied, actions = table.copy(), table.legal_actions()
    with pytest.raises(ValueError, match="action 68 is not legal"):
        table.act(68)
    assert table.legal_actions() == actions
    table.act(actions[0])
    assert copied.legal_actions() == actions
    assert table.asked != copied.asked


# Worlds and search


@needs_fast
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_worlds_keep_to_what_the_view_allows(seats: int) -> None:
    from seatwise_fast import sample_worlds

    for seed, view in enumerate(views_of_match(11, seats)):
        layout, encoded = observation_layout(seats), encode_view(view)
        missing = [set(np.flatnonzero(encoded[layout[f"missing/{place}"]])) for place in range(seats)]
        seen = {*view.trick, *(card for trick in view.tricks for card in trick.cards)}
        for hands in sample_worlds(view, 5, seed):
            held = [{card for card in CARDS if hand >> card & 1} for hand in hands]
            assert tuple(map(len, held)) == view.hand_sizes
            assert held[view.seat or 0] == set(view.hand)
            assert not any(one & other for one, other in combinations([*held, seen], 2))
            for seat, cards in enumerate(held):
                assert not {card // 9 for card in cards} & missing[(seat - (view.seat or 0)) % seats]


@needs_fast
def test_worlds_are_drawn_uniformly() -> None:
    """Late in a round with missing colours all possible worlds are listed; each must be drawn as often as any other."""
    from seatwise_fast import sample_worlds

    view = next(
        view
        for seed in range(100)
        for view in views_of_match(seed, 3, rounds=1)
        if sum(view.hand_sizes) <= 4
        and view.legal_cards
        and len(list(possible_worlds(view))) in range(40, 4000)
    )
    worlds = list(possible_worlds(view))
    draws = 40 * len(worlds)
    counts = dict.fromkeys(worlds, 0)
    for hands in sample_worlds(view, draws, seed=1):
        counts[hands] += 1
    chi_square = sum((count - 40) ** 2 / 40 for count in counts.values())
    freedom = len(worlds) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5


def possible_worlds(view: UgoView) -> Iterator[tuple[int, ...]]:
    """All hands that fit a view of three seats, worked out from the view alone."""
    seats, viewer = len(view.hand_sizes), int(view.seat or 0)
    tricks = [*((trick.leader, trick.cards) for trick in view.tricks), (view.leader, view.trick)]
    played = {card for _, cards in tricks for card in cards}
    missing: list[set[int]] = [set() for _ in range(seats)]
    for leader, cards in tricks:
        for place, card in enumerate(cards):
            if card // 9 != cards[0] // 9:
                missing[(leader + place) % seats].add(cards[0] // 9)
    unseen = {int(card) for card in CARDS} - played - set(view.hand)
    first, second = (seat for seat in range(seats) if seat != viewer)
    for one in combinations(
        [card for card in unseen if card // 9 not in missing[first]], view.hand_sizes[first]
    ):
        rest = [card for card in unseen - set(one) if card // 9 not in missing[second]]
        for other in combinations(rest, view.hand_sizes[second]):
            hands = [sum(1 << card for card in view.hand)] * seats
            hands[first], hands[second] = (sum(1 << card for card in cards) for cards in (one, other))
            yield tuple(hands)


@needs_fast
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_search_is_legal_and_the_same_with_the_same_seed(seats: int) -> None:
    from seatwise_fast import search_card

    for view in views_of_match(5, seats, rounds=1):
        if not view.legal_cards:
            with pytest.raises(ValueError, match="not asked for a card"):
                search_card(view, 10)
            continue
        found = search_card(view, 100, seed=9)
        assert found.card in view.legal_cards
        assert found.iterations == (100 if len(view.legal_cards) > 1 else 0)
        assert search_card(view, 100, seed=9) == found


@needs_fast
def test_a_search_needs_a_limit_and_keeps_to_its_time() -> None:
    from seatwise_fast import search_card

    view = next(views_of_match(1, 4))
    with pytest.raises(ValueError, match="number of iterations, or a number of seconds"):
        search_card(view)
    with pytest.raises(ValueError, match="iterations: 1 to"):
        search_card(view, 0)
    assert search_card(view, seconds=0.01).iterations > 10
    assert search_card(view, iterations=50, seconds=3600).iterations == 50


@needs_fast
def test_a_search_sees_what_the_view_shows_and_nothing_else() -> None:
    """Two worlds that look the same to a seat give the same search."""
    from leaks.resample import resampled

    from seatwise_fast import search_card

    chance = Random(3)
    state = state_of_seed(bytes(32), 3, 1)
    for _ in range(8):
        assert state.asked is not None
        state = GAME.play(state, state.asked, next(GAME.legal_moves(state, state.asked)))
        if state.asked is not None and not state.table.won:
            twin = resampled("ugo", state, state.asked, chance)
            first, second = (search_card(GAME.view(each, state.asked), 200, seed=1) for each in (state, twin))
            assert first == second


@needs_fast
def test_a_view_that_no_deal_fits_is_refused() -> None:
    from dataclasses import replace

    from seatwise_fast import sample_worlds, search_card
    from seatwise_referee.games.ugo import Trick

    view = GAME.view(state_of_seed(bytes(32), 2, 1), Seat(0))
    cards = [card for card in CARDS if card not in view.hand]
    led = [next(card for card in cards if card // 9 == colour) for colour in range(5)]
    answers = [
        next(card for card in cards if card // 9 == (colour + 1) % 5 and card not in led)
        for colour in range(5)
    ]
    tricks = tuple(Trick(Seat(0), pair, Seat(0), pair) for pair in zip(led, answers, strict=True))
    forged = replace(view, tricks=tricks)
    with pytest.raises(ValueError, match="no deal fits this view"):
        sample_worlds(forged, 1)
    with pytest.raises(ValueError, match="no deal fits this view"):
        search_card(forged, 10)


def test_the_size_of_an_observation_is_published() -> None:
    assert [observation_size(seats) for seats in (2, 3, 4)] == [478, 661, 844]


# Building


def test_without_the_compiled_rules_a_batch_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['seatwise_fast'] = None\n"
        "import numpy as np\n"
        "from seatwise.rl import open_batch\n"
        "from seatwise.rl.deals import random_deals\n"
        "try: open_batch(random_deals(1, 1, np.random.default_rng(1)), 2)\n"
        "except ImportError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "batches need the compiled rules; from a clone: pip install" in told.stdout


@needs_fast
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_rules_and_the_search_are_clean_under_sanitizers(tmp_path: Path) -> None:
    """Whole matches, observations, worlds, searches and counted deals, with addresses and undefined behaviour checked."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is here")
    program = tmp_path / "driver"
    flags = [
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    driver = Path(__file__).parent / "data" / "ugo_rules_driver.c"
    build = subprocess.run(
        [compiler, *flags, f"-I{FAST}", str(driver), "-o", str(program), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "sanitize" in build.stderr and build.returncode:
        pytest.skip("this compiler has no sanitizers")
    assert build.returncode == 0, build.stderr
    told = subprocess.run([program, "300"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == "300 matches"


@needs_fast
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_wheel_is_built_for_all_later_versions_of_python(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build_wheel", FAST / "build_wheel.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wheel = module.build_wheel(tmp_path)
    assert "-cp311-abi3-" in wheel.name
