"""Many matches of UGO! as one environment of Gymnasium, for self-play: `UgoVectorEnv(1024)`.

At each table the seat that is asked acts, so one policy plays all seats. The tables are those of `open_batch`, which needs
`seatwise_fast`. Where a match is over, the next step begins another one, and its action
is ignored (Gymnasium's `AutoresetMode.NEXT_STEP`).
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from seatwise.rl.actions import ACTION_COUNT
from seatwise.rl.deals import open_batch, random_deals
from seatwise.rl.observation import POINTS_LIMIT, observation_size

Observations = dict[str, NDArray[Any]]


class UgoVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Matches of UGO! side by side.

    `observations` are `{"observation", "action_mask"}` of the seat that is asked at each table. `rewards` are given to the
    action that ends a round: the points of that seat, less the mean of the others. `infos` has `asked`, the seat that is asked,
    and `round_points`, the points that every seat got in this step.
    """

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int, seats: int = 4, rounds: int = 4) -> None:
        """Prepare the tables; `reset` deals.

        Args:
            num_envs: Number of tables.
            seats: 2 to 4.
            rounds: 1 to 8.
        """
        self.num_envs, self._seats, self._rounds = num_envs, seats, rounds
        self._chance = np.random.default_rng()
        self.single_observation_space = spaces.Dict(
            {
                "observation": spaces.Box(-POINTS_LIMIT, POINTS_LIMIT, (observation_size(seats),), np.int8),
                "action_mask": spaces.Box(0, 1, (ACTION_COUNT,), np.int8),
            }
        )
        self.single_action_space = spaces.Discrete(ACTION_COUNT)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Observations, dict[str, Any]]:
        """Deal a match at every table."""
        if seed is not None:
            self._chance = np.random.default_rng(seed)
        deals = random_deals(self.num_envs, self._rounds, self._chance)
        self._batch = open_batch(deals, self._seats)
        self._points = self._batch.points
        self._is_over = self._batch.is_over
        return self._observe(), self._infos(np.zeros_like(self._points))

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one action at each table. Raises `ValueError` for one that is not legal."""
        asked, was_over = self._batch.asked.astype(np.int64), self._is_over
        self._batch.step(actions)
        self._deal_where(was_over)
        points = self._batch.points
        gained = np.where(was_over[:, None], 0, points - self._points)
        self._points, self._is_over = points, self._batch.is_over
        own = gained[np.arange(self.num_envs), asked]
        rewards = own - (gained.sum(axis=1) - own) / (self._seats - 1)
        return self._observe(), rewards, self._is_over, np.zeros(self.num_envs, np.bool_), self._infos(gained)

    def _deal_where(self, was_over: NDArray[np.bool_]) -> None:
        numbers = np.flatnonzero(was_over)
        if len(numbers):
            self._batch.deal_again(numbers, random_deals(len(numbers), self._rounds, self._chance))

    def _observe(self) -> Observations:
        return {"observation": self._batch.observe(), "action_mask": self._batch.mask().astype(np.int8)}

    def _infos(self, round_points: NDArray[np.int32]) -> dict[str, Any]:
        return {"asked": self._batch.asked, "round_points": round_points}
