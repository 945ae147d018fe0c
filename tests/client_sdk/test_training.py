"""The environments, the data set and the observations of `seatwise.rl`. PettingZoo and Gymnasium need the extra `rl`."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="training needs NumPy")

from leaks.resample import resampled  # noqa: E402

import seatwise  # noqa: E402
from seatwise.errors import UsageError  # noqa: E402
from seatwise.replay import record_units  # noqa: E402
from seatwise.rl import encode_view, observation_layout  # noqa: E402
from seatwise.rl.actions import legal_actions  # noqa: E402
from seatwise.rl.dataset import read_dataset  # noqa: E402
from seatwise.units import LocalWorkers, RayWorkers  # noqa: E402
from seatwise_referee.game import Seat  # noqa: E402
from seatwise_referee.games.ugo import Ugo  # noqa: E402

GAME = Ugo()
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "training"
GOLDEN = Path(__file__).parent / "data" / "observations-v1.json"


def random_states(seats: int, seed: int, rounds: int = 2) -> Any:
    chance = Random(seed)
    state = GAME.deal(seats, bytes([seed]) * 32, {"rounds": rounds})
    while state.asked is not None:
        yield state
        legal = list(GAME.legal_moves(state, state.asked))
        state = GAME.play(state, state.asked, legal[int(chance.random() * len(legal))])
    yield state


# Observations


def golden_observations() -> dict[str, list[int]]:
    """The places of all numbers but 0, and the numbers, in some states of a match for each number of seats."""
    found = {}
    for seats in (2, 3, 4):
        for number, state in enumerate(random_states(seats, seats)):
            if number % 17 == 0:
                encoded = encode_view(GAME.view(state, Seat(number % seats)))
                places = np.flatnonzero(encoded)
                found[f"{seats} seats, state {number}"] = [
                    int(each) for pair in zip(places, encoded[places], strict=True) for each in pair
                ]
    return found


def test_observations_of_version_1_never_change() -> None:
    assert golden_observations() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_a_tensor_is_the_same_in_two_worlds_that_a_seat_cannot_tell_apart(seats: int) -> None:
    chance = Random(seats)
    for state in random_states(seats, 9):
        for seat in map(Seat, range(seats)):
            twin = resampled("ugo", state, seat, chance)
            views = [GAME.view(each, seat) for each in (state, twin)]
            assert np.array_equal(*map(encode_view, views))
            assert legal_actions(views[0]) == legal_actions(views[1])


def test_a_batch_shows_the_same_in_two_worlds() -> None:
    """Tables with the same cards for one seat, and other cards for all others, look the same to it."""
    from seatwise.rl import open_batch
    from seatwise.rl.deals import random_deals

    pytest.importorskip("seatwise_fast", reason="seatwise_fast is not compiled: no C compiler is here")
    chance = np.random.default_rng(5)
    deals = random_deals(1, 1, chance).repeat(20, axis=0)
    for deal in deals[1:, 0]:
        deal[10:] = chance.permutation(deal[10:])
    batch = open_batch(deals, 4)
    seen = batch.observe(0)
    assert (seen == seen[0]).all()
    assert (batch.mask() == batch.mask()[0]).all()
    batch.step(np.full(20, np.flatnonzero(batch.mask()[0])[0]))
    assert (batch.observe(0) == batch.observe(0)[0]).all()
    assert not (batch.observe(1) == batch.observe(1)[0]).all()


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_views_of_matches_in_turn_are_encoded_like_those_of_one_match(seats: int) -> None:
    """The encoder remembers the tricks of the view before, which may be one of another match."""
    matches = [list(random_states(seats, seed)) for seed in (21, 22)]
    alone = [[encode_view(GAME.view(state, Seat(0))) for state in states] for states in matches]
    for pair, expected in zip(zip(*matches, strict=False), zip(*alone, strict=False), strict=True):
        for state, numbers in zip(pair, expected, strict=True):
            assert np.array_equal(encode_view(GAME.view(state, Seat(0))), numbers)


def test_a_spectator_has_no_observation() -> None:
    with pytest.raises(ValueError, match="only a seat has an observation"):
        encode_view(GAME.view(GAME.deal(2, bytes(32), {"rounds": 1}), None))


# Data sets


def test_records_become_arrays(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    played = seatwise.play(
        ["greedy", "random", "random"], matches=2, seed="rows", options={"rounds": 2}, records=str(records)
    )
    told: list[tuple[int, int]] = []
    data = read_dataset([records], seats=3, on_record=lambda read, total: told.append((read, total)))
    at_workers = read_dataset([records], seats=3, workers=LocalWorkers(1))
    assert all(np.array_equal(one, other) for one, other in zip(data, at_workers, strict=True))
    assert len(told) == 2
    assert told[-1] == (records.stat().st_size,) * 2
    assert set(data.matches) == {0, 1}
    assert data.masks[np.arange(len(data.actions)), data.actions].all()
    asked = observation_layout(3)["asked"]
    assert (data.observations[:, asked][:, 0] == 1).all()
    cards = data.actions < 45
    assert cards.sum() == 2 * 2 * 30
    assert data.observations[np.flatnonzero(cards), data.actions[cards]].all()  # each card was in the hand
    mean = sum(standing.mean_points * 2 for standing in played.standings)
    firsts = {
        (match, seat, hand): int(points)
        for match, seat, hand, points in zip(
            data.matches, data.seats, map(bytes, data.observations[:, :45]), data.points, strict=True
        )
        if hand.count(1) == 10
    }
    assert sum(firsts.values()) == mean


def test_a_data_set_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_units, "BATCH_LINES", 2)
    records, parts = tmp_path / "records.jsonl", [tmp_path / "part0.jsonl", tmp_path / "part1.jsonl"]
    seatwise.play(["greedy", "random"], matches=5, seed="p", options={"rounds": 1}, records=str(records))
    whole = read_dataset([records], seats=2)
    first = read_dataset([records], seats=2, units=range(1), out=parts[0])
    read_dataset([records], seats=2, units=range(1, 3), out=parts[1])
    assert set(first.matches) == {0, 1}
    merged = read_dataset([records], seats=2, merge=parts)
    assert all(np.array_equal(one, other) for one, other in zip(whole, merged, strict=True))
    with pytest.raises(UsageError, match="units are missing: 0:1"):
        read_dataset([records], seats=2, merge=parts[1:])
    records.write_bytes(records.read_bytes() + records.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(UsageError, match="another plan"):
        read_dataset([records], seats=2, merge=parts)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")  # an error in a thread of Ray would keep its answer for ever
def test_a_data_set_is_read_on_ray(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'seatwise[ray]'")
    records = tmp_path / "records.jsonl"
    seatwise.play(["random"] * 2, matches=70, seed="r", options={"rounds": 1}, records=str(records))
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, logging_level="error")
    try:
        found = read_dataset([records], seats=2, workers=RayWorkers("ray"))
    finally:
        ray.shutdown()
    whole = read_dataset([records], seats=2)
    assert all(np.array_equal(one, other) for one, other in zip(whole, found, strict=True))


def test_only_the_moves_of_some_bots_become_rows(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    seatwise.play(["greedy", "random"], matches=1, seed="some", options={"rounds": 1}, records=str(records))
    [line] = records.read_text().splitlines()
    bots = {seat["bot"]: seat["seat"] for seat in json.loads(line)["seats"]}
    greedy = next(bot for bot in bots if "greedy" in bot)
    data = read_dataset([records], seats=2, bots=[greedy])
    assert set(data.seats) == {bots[greedy]}
    assert len(read_dataset([records], seats=4).actions) == 0


def test_a_wrong_record_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "records.jsonl"
    wrong.write_text("{}\n")
    with pytest.raises(UsageError, match=r"records\.jsonl, line 1: the record is wrong"):
        read_dataset([wrong], seats=4)
    with pytest.raises(UsageError, match=r"records\.jsonl, line 1: the record is wrong"):
        read_dataset([wrong], seats=4, workers=LocalWorkers(1))
    with pytest.raises(UsageError, match="name a file of records"):
        read_dataset([tmp_path / "none"], seats=4)


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A file of a stranger must not fill the memory."""
    wrong = tmp_path / "records.jsonl"
    with wrong.open("wb") as out:
        out.truncate(128 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="line 1: the record is wrong: is no record: longer than"):
            read_dataset([wrong], seats=4)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


# PettingZoo and Gymnasium


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pettingzoo")  # of its own modules
@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")  # its own games with masks have such spaces too
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_environment_passes_the_tests_of_pettingzoo(seats: int) -> None:
    pytest.importorskip("pettingzoo", reason="install the extra `rl`: pip install '.[rl]'")
    from pettingzoo.test import api_test, render_test, seed_test

    from seatwise.rl import ugo_v1

    api_test(ugo_v1.env(seats=seats, rounds=1), num_cycles=200)
    api_test(ugo_v1.raw_env(seats=seats, rounds=1), num_cycles=200)
    seed_test(lambda: ugo_v1.env(seats=seats, rounds=1), num_cycles=50)
    render_test(lambda render_mode=None: ugo_v1.env(seats=seats, rounds=1, render_mode=render_mode))


def test_the_environment_rewards_with_the_points_of_rounds() -> None:
    pytest.importorskip("pettingzoo", reason="install the extra `rl`: pip install '.[rl]'")
    from seatwise.rl import ugo_v1

    env = ugo_v1.env(seats=3, rounds=2)
    env.reset(seed=4)
    totals = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, is_over, _, _ = env.last()
        totals[agent] += reward
        assert np.array_equal(observation["observation"], encode_view(env.unwrapped.view_of(agent)))
        env.step(None if is_over else int(np.flatnonzero(observation["action_mask"])[0]))
    assert list(totals.values()) == [
        sum(points[seat] for points in env.unwrapped.view_of("seat_0").points) for seat in range(3)
    ]


def test_a_vector_environment_begins_new_matches() -> None:
    pytest.importorskip("gymnasium", reason="install the extra `rl`: pip install '.[rl]'")
    pytest.importorskip("seatwise_fast", reason="seatwise_fast is not compiled: no C compiler is here")
    from seatwise.rl.ugo_vector import UgoVectorEnv

    env = UgoVectorEnv(16, seats=3, rounds=1)
    seen, _ = env.reset(seed=1)
    ended = 0
    for _ in range(100):
        assert env.observation_space.contains(seen)
        seen, rewards, is_over, _, infos = env.step(seen["action_mask"].argmax(axis=1))
        ended += int(is_over.sum())
        gained = infos["round_points"]
        assert (gained[~is_over] == 0).all()
        assert (rewards[~is_over] == 0).all()
    assert ended >= 32
    first, again = (UgoVectorEnv(4).reset(seed=2)[0] for _ in range(2))
    assert np.array_equal(first["observation"], again["observation"])


def test_a_hand_of_ubongo_is_built_to_a_call() -> None:
    pytest.importorskip("gymnasium", reason="install the extra `rl`: pip install '.[rl]'")
    from seatwise.rl.ubongo_v1 import CALL_ACTION, ILLEGAL_REWARD, MOST_CHOICES, STOP_ACTION, UbongoEnv

    env = UbongoEnv(render_mode="ansi")
    rewards = []
    for seed in range(12):
        seen, infos = env.reset(seed=seed)
        is_over = False
        while not is_over:
            assert env.observation_space.contains(seen)
            mask = infos["action_mask"]
            placements = np.flatnonzero(mask[:MOST_CHOICES])
            action = CALL_ACTION if mask[CALL_ACTION] else placements[-1] if len(placements) else STOP_ACTION
            seen, reward, is_over, _, infos = env.step(int(action))
        rewards.append(reward)
    assert 10.0 in rewards
    assert env.reset(seed=3)[0]["hand"].tolist() == env.reset(seed=3)[0]["hand"].tolist()
    *_, reward, is_over, _, infos = env.step(CALL_ACTION)
    assert (reward, is_over, infos["action_mask"].any()) == (ILLEGAL_REWARD, True, False)
    with pytest.raises(ValueError, match="the hand is over"):
        env.step(STOP_ACTION)


def test_the_environment_of_ubongo_passes_the_check_of_gymnasium() -> None:
    checker = pytest.importorskip(
        "gymnasium.utils.env_checker", reason="install the extra `rl`: pip install '.[rl]'"
    )
    from seatwise.rl.ubongo_v1 import UbongoEnv

    checker.check_env(UbongoEnv(render_mode="ansi"), skip_render_check=True)


# OpenSpiel


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_game_passes_the_random_test_of_openspiel(players: int) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="the game of OpenSpiel needs open-spiel")
    import seatwise.rl.openspiel_ugo  # noqa: F401

    game = pyspiel.load_game(f"python_seatwise_ugo(players={players})")
    pyspiel.random_sim_test(game, num_sims=1, serialize=False, verbose=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_game_passes_the_random_test_of_openspiel_with_serialisation(players: int) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="the game of OpenSpiel needs open-spiel")
    import seatwise.rl.openspiel_ugo  # noqa: F401

    game = pyspiel.load_game(f"python_seatwise_ugo(players={players})")
    pyspiel.random_sim_test(game, num_sims=10, serialize=True, verbose=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_game_passes_the_api_tests_of_openspiel() -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="the game of OpenSpiel needs open-spiel")
    import unittest

    from open_spiel.integration_tests import api_test

    import seatwise.rl.openspiel_ugo  # noqa: F401

    base = getattr(api_test, "EnforceAPIOnPartialTreeBase", None) or api_test.EnforceAPIOnPartialTree
    name = "python_seatwise_ugo(players=2)"
    case: Any = type("Ugo", (base, unittest.TestCase), {"game_name": name, "game": pyspiel.load_game(name)})
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun >= 3
    assert not result.failures + result.errors


@pytest.mark.parametrize("players", [2, 3])
def test_a_resampled_state_looks_the_same_and_is_another_one(players: int) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="the game of OpenSpiel needs open-spiel")
    import seatwise.rl.openspiel_ugo  # noqa: F401

    game, chance, others = pyspiel.load_game(f"python_seatwise_ugo(players={players})"), Random(3), 0
    state = game.new_initial_state()
    while not state.is_terminal():
        if not state.is_chance_node():
            player = state.current_player()
            twin = state.resample_from_infostate(player, chance.random)
            assert twin.information_state_string(player) == state.information_state_string(player)
            assert twin.observation_tensor(player) == state.observation_tensor(player)
            assert twin.legal_actions() == state.legal_actions()
            others += str(twin) != str(state)
        state.apply_action(chance.choice(state.legal_actions()))
    assert others > 10


def test_the_search_of_openspiel_plays_the_game() -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="the game of OpenSpiel needs open-spiel")
    from open_spiel.python.algorithms import ismcts, mcts

    import seatwise.rl.openspiel_ugo  # noqa: F401

    game, chance = pyspiel.load_game("python_seatwise_ugo(players=2)"), Random(1)
    state, numbers = game.new_initial_state(), np.random.RandomState(1)
    while state.is_chance_node():
        state.apply_action(chance.choice(state.legal_actions()))
    bot = ismcts.ISMCTSBot(
        game=game, uct_c=20.0, max_simulations=10, random_state=numbers,
        evaluator=mcts.RandomRolloutEvaluator(1, numbers),
        final_policy_type=ismcts.ISMCTSFinalPolicyType.MAX_VISIT_COUNT,
    )  # fmt: skip
    assert bot.step(state) in state.legal_actions()


# The worked example


def test_the_example_trains_and_its_bot_plays(tmp_path: Path) -> None:
    """One update, which is enough to see that what is trained is what plays."""
    policy = tmp_path / "policy.npz"
    train = [sys.executable, str(EXAMPLE / "train.py"), "--minutes", "0", "--policy", str(policy)]
    subprocess.run(train, check=True, capture_output=True)
    bot = runpy.run_path(str(EXAMPLE / "learned_bot.py"))
    bot["LearnedBot"].policy = bot["Policy"].load(policy)
    results = seatwise.play(
        [bot["LearnedBot"], *["random"] * 3], matches=1, seed="learned", options={"rounds": 1}
    )
    assert [standing.failures for standing in results.standings] == [0] * 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_trained_policy_beats_random(tmp_path: Path) -> None:
    policy = tmp_path / "policy.npz"
    train = [sys.executable, str(EXAMPLE / "train.py"), "--minutes", "4", "--policy", str(policy)]
    subprocess.run(train, check=True, capture_output=True)
    bot = runpy.run_path(str(EXAMPLE / "learned_bot.py"))
    bot["LearnedBot"].policy = bot["Policy"].load(policy)
    results = seatwise.play([bot["LearnedBot"], *["random"] * 3], matches=100, seed="learned")
    by_name = {standing.bot: standing for standing in results.standings}
    others = [standing.mean_points for name, standing in by_name.items() if name.startswith("random")]
    assert by_name["LearnedBot"].interval[0] > max(others)


def test_nothing_of_the_product_imports_training() -> None:
    program = "import sys, seatwise, seatwise.samples, seatwise.local.matches; print([name for name in sys.modules if 'rl' in name.split('.')])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
