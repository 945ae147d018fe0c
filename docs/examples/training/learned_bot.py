"""A bot that plays a policy from a file. The same class plays at home, on a server and on a ladder.

seatwise play ugo docs/examples/training/learned_bot.py:LearnedBot greedy greedy greedy --matches 100
seatwise bot docs/examples/training/learned_bot.py:LearnedBot --name learned
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatwise import Bot, Card, Offer
from seatwise.rl import encode_view, observation_size
from seatwise.ugo import CARDS, View

POLICY_FILE = Path(os.environ.get("POLICY", Path(__file__).parent / "policy.npz"))


class Policy:
    """A network with one hidden layer, from an observation to a number for each of the 45 cards."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.weights = weights

    @classmethod
    def load(cls, path: Path = POLICY_FILE) -> Policy:
        """Return the policy that `train.py` has written."""
        if not path.is_file():
            raise SystemExit(f"{path}: no policy yet; run docs/examples/training/train.py first")
        with np.load(path) as file:
            return cls({name: file[name] for name in file.files})

    @property
    def seats(self) -> int:
        """The number of seats for which it was trained: the size of an observation tells it."""
        return next(seats for seats in (2, 3, 4) if observation_size(seats) == len(self.weights["w1"]))

    def score_cards(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Return a number for each card: (observations, 45)."""
        hidden = np.maximum(observations.astype(np.float32) @ self.weights["w1"] + self.weights["b1"], 0)
        scores: NDArray[np.float32] = hidden @ self.weights["w2"] + self.weights["b2"]
        return scores


class LearnedBot(Bot):
    """Plays the legal card that the policy prefers; the referee's order lays its cards."""

    policy: Policy | None = None

    def setup(self, offer: Offer) -> None:
        """Load the policy once for all matches, and refuse a table for which it was not trained."""
        policy = LearnedBot.policy = self.policy or Policy.load()
        if len(offer.bots) != policy.seats:
            raise ValueError(f"this policy was trained for {policy.seats} seats, not for {len(offer.bots)}")

    def choose(self, view: View) -> Card:
        """Encode the view, and take the best legal card."""
        assert self.policy
        scores = self.policy.score_cards(encode_view(view)[None])[0]
        return CARDS[max(view.legal_cards, key=lambda card: scores[card])]
