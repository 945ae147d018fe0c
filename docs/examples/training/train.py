"""Trains a policy for UGO! with four seats, in some minutes on two cores.

    python docs/examples/training/train.py --minutes 5

All four seats of 256 tables play one policy (self-play, REINFORCE). The reward of a card is the lead at the end of its
round: the own points, less the mean of the others. The mean lead of all cards played with as many cards in the hand is the
baseline. `learned_bot.py` plays what this has written.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from learned_bot import POLICY_FILE, Policy
from numpy.typing import NDArray

from seatwise.rl import observation_size, open_batch
from seatwise.rl.deals import random_deals

SEATS = 4
TABLES = 256
HIDDEN = 128
FIRST_ORDER = 45
RATE = 2e-3


def new_policy(chance: np.random.Generator) -> Policy:
    """Return a policy with small random weights."""
    size = observation_size(SEATS)
    shapes = {"w1": (size, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, FIRST_ORDER), "b2": (FIRST_ORDER,)}
    scale = {"w1": 1 / np.sqrt(size / 8), "b1": 0, "w2": 0.1 / np.sqrt(HIDDEN), "b2": 0}
    return Policy(
        {name: (chance.normal(size=shape) * scale[name]).astype(np.float32) for name, shape in shapes.items()}
    )


def probabilities_of(scores: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return how likely each legal card is."""
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def play_round(policy: Policy, chance: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Play a round at all tables. Return observations, masks, cards and leads of all moves with a choice."""
    batch = open_batch(random_deals(TABLES, 1, chance), SEATS)
    moves = []
    while not batch.is_over.all():
        moves.append(play_card(batch, policy, chance))
    points = batch.points.astype(np.float32)
    leads = points - (points.sum(axis=1, keepdims=True) - points) / (SEATS - 1)
    observations, masks, cards = (np.concatenate(column) for column in list(zip(*moves, strict=True))[:3])
    tables, seats = (np.concatenate([move[column] for move in moves]) for column in (3, 4))
    return observations, masks, cards, leads[tables, seats]


def play_card(batch: Any, policy: Policy, chance: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Take an action at each table: a card by the policy, or the default order of won cards."""
    observations, mask, asked = batch.observe(), batch.mask(), batch.asked
    plays = np.flatnonzero(mask[:, :FIRST_ORDER].any(axis=1))
    actions = np.full(batch.count, FIRST_ORDER, np.int64)
    legal = mask[plays, :FIRST_ORDER]
    likely = probabilities_of(policy.score_cards(observations[plays]), legal)
    cards = np.minimum((likely.cumsum(axis=1) < chance.random((len(plays), 1))).sum(axis=1), FIRST_ORDER - 1)
    cards = np.where(legal[np.arange(len(plays)), cards], cards, likely.argmax(axis=1))
    actions[plays] = cards
    batch.step(actions)
    choices = legal.sum(axis=1) > 1
    return observations[plays][choices], legal[choices], cards[choices], plays[choices], asked[plays][choices]


class Adam:
    """Kingma and Ba, 2014."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self._weights = weights
        self._mean = {name: np.zeros_like(value) for name, value in weights.items()}
        self._square = {name: np.zeros_like(value) for name, value in weights.items()}
        self._steps = 0

    def climb(self, slopes: dict[str, NDArray[np.float32]]) -> None:
        """Change the weights, upwards."""
        self._steps += 1
        for name, slope in slopes.items():
            self._mean[name] += 0.1 * (slope - self._mean[name])
            self._square[name] += 0.001 * (slope**2 - self._square[name])
            mean = self._mean[name] / (1 - 0.9**self._steps)
            square = self._square[name] / (1 - 0.999**self._steps)
            self._weights[name] += RATE * mean / (np.sqrt(square) + 1e-8)


def slopes_of(policy: Policy, observations: Any, masks: Any, cards: Any, leads: Any) -> dict[str, Any]:
    """Return the slope of the expected lead, with a little entropy so that the policy keeps trying."""
    weights, inputs = policy.weights, observations.astype(np.float32)
    hidden = np.maximum(inputs @ weights["w1"] + weights["b1"], 0)
    likely = probabilities_of(hidden @ weights["w2"] + weights["b2"], masks)
    held = observations[:, :FIRST_ORDER].sum(axis=1)
    baseline = np.array([leads[held == size].mean() if (held == size).any() else 0 for size in range(11)])
    advantage = (leads - baseline[held]) / (leads.std() + 1e-6)
    chosen = np.zeros_like(likely)
    chosen[np.arange(len(cards)), cards] = 1
    logs = np.log(np.maximum(likely, 1e-8))
    entropy = -(likely * logs).sum(axis=1, keepdims=True)
    slope = advantage[:, None].astype(np.float32) * (chosen - likely) - 0.01 * likely * (logs + entropy)
    slope /= len(cards)
    back = (slope @ weights["w2"].T) * (hidden > 0)
    return {"w1": inputs.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ slope, "b2": slope.sum(axis=0)}


def train(minutes: float, path: Path, seed: int = 1) -> int:
    """Train for some minutes, show the progress, and write the policy. Return the number of rounds played."""
    chance = np.random.default_rng(seed)
    policy = new_policy(chance)
    adam, updates, end_s = Adam(policy.weights), 0, time.monotonic() + 60 * minutes
    while time.monotonic() < end_s or updates == 0:
        observations, masks, cards, leads = play_round(policy, chance)
        adam.climb(slopes_of(policy, observations, masks, cards, leads))
        updates += 1
        if updates % 50 == 0:
            left_s = max(0, end_s - time.monotonic())
            print(f"{updates * TABLES:,} rounds, {left_s:.0f} s left", flush=True)
    np.savez(path, **policy.weights)
    return updates * TABLES


def main() -> None:
    """Read the arguments, and train."""
    parser = argparse.ArgumentParser(description="Train a policy for UGO! with four seats.")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to train (default: %(default)s)")
    parser.add_argument(
        "--policy", type=Path, default=POLICY_FILE, help="file for the policy (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rounds = train(given.minutes, given.policy, given.seed)
    print(f"{given.policy}: {rounds:,} rounds")


if __name__ == "__main__":
    main()
