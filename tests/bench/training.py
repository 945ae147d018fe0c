"""The bars of the fast rules and of `seatwise.rl`, each beside its yardstick in the same run, by the time that a core really had.

    python tests/bench/training.py

A bar is skipped, with a sentence, where a package is missing: open-spiel, the compiled rules, or PettingZoo with rlcard.
"""

from __future__ import annotations

import importlib
import random
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 2.0
ROUNDS = 3
"""How often both sides are measured in turn; the middle ratio is shown."""


def moves_a_second(play: Callable[[], int], seconds: float = SECONDS) -> float:
    """Moves for each second of this core, over whole matches."""
    moves, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        moves += play()
    return moves / (time.process_time() - began)


def open_spiel_match(name: str) -> Callable[[], int]:
    """A random match of a game of OpenSpiel, through Python."""
    import pyspiel

    if name == "python_liars_poker":
        importlib.import_module("open_spiel.python.games.liars_poker")
    if name.startswith("python_seatwise_ugo"):
        importlib.import_module("seatwise.rl.openspiel_ugo")
    game, chance = pyspiel.load_game(name), random.Random(1).random

    def play() -> int:
        state, moves = game.new_initial_state(), 0
        while not state.is_terminal():
            moves += not state.is_chance_node()
            legal = state.legal_actions()
            state.apply_action(legal[int(chance() * len(legal))])
        return moves

    return play


def one_table() -> Callable[[], int]:
    """A random match at one compiled table, with a deal as the referee makes it."""
    from seatwise.rl.deals import deals_of_seed
    from seatwise_fast import FastTable

    chance = random.Random(1).random

    def play() -> int:
        table, moves = FastTable(deals_of_seed(secrets.token_bytes(32)), 4), 0
        actions = table.legal_actions()
        while actions:
            actions = table.act(actions[int(chance() * len(actions))])
            moves += 1
        return moves

    return play


def batch(tables: int) -> Callable[[], int]:
    """Random matches side by side: mask, random actions and step."""
    import numpy as np

    from seatwise.rl.deals import open_batch, random_deals

    start = open_batch(random_deals(tables, 4, np.random.default_rng(1)), 4)

    def play() -> int:
        matches, moves = start.copy(), 0
        while live := tables - int(matches.is_over.sum()):
            matches.mask()
            matches.step(matches.random_actions())
            moves += live
        return moves

    return play


def pettingzoo_match(make: Callable[[], Any]) -> Callable[[], int]:
    """A random match in an environment of PettingZoo."""
    import numpy as np

    env, chance = make(), random.Random(1).random
    env.reset(seed=1)

    def play() -> int:
        env.reset()
        moves = 0
        for _ in env.agent_iter():
            seen, _, is_terminated, is_truncated, infos = env.last()
            if is_terminated or is_truncated:
                env.step(None)
                continue
            mask = seen["action_mask"] if isinstance(seen, dict) else infos["action_mask"]
            legal = np.flatnonzero(mask)
            env.step(int(legal[int(chance() * len(legal))]))
            moves += 1
        return moves

    return play


def our_environment(kind: str) -> Callable[[], int]:
    """`env` or `raw_env` with four seats."""
    return pettingzoo_match(getattr(importlib.import_module("seatwise.rl.ugo_v1"), kind))


def texas_holdem() -> Callable[[], int]:
    """PettingZoo's own game, with its wrappers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pettingzoo_match(importlib.import_module("pettingzoo.classic.texas_holdem_v4").env)


BARS: tuple[tuple[str, Callable[[], Callable[[], int]], Callable[[], Callable[[], int]], float], ...] = (
    (
        "4,096 compiled tables / spades",
        lambda: batch(4096),
        lambda: open_spiel_match("spades"),
        20,
    ),
    ("one compiled table / spades", one_table, lambda: open_spiel_match("spades"), 0.9),
    ("raw_env / texas_holdem", lambda: our_environment("raw_env"), texas_holdem, 3),
    ("env / texas_holdem", lambda: our_environment("env"), texas_holdem, 1.3),
    (
        "python_seatwise_ugo / python_liars_poker",
        lambda: open_spiel_match("python_seatwise_ugo(players=4)"),
        lambda: open_spiel_match("python_liars_poker"),
        1,
    ),
)


def ratios(ours: Callable[[], int], theirs: Callable[[], int]) -> Iterator[float]:
    """Both in turn, some times."""
    for _ in range(ROUNDS):
        yield moves_a_second(ours) / moves_a_second(theirs)


def main() -> None:
    """Print the table."""
    print("| measure | middle of three ratios | bar | met |\n|---|---|---|---|")
    for name, ours, theirs, bar in BARS:
        try:
            found = sorted(ratios(ours(), theirs()))[ROUNDS // 2]
        except ImportError as error:
            print(f"| {name} | not measured: {error} | >= {bar} | |")
            continue
        print(f"| {name} | {found:.2f} | >= {bar} | {'yes' if found >= bar else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
