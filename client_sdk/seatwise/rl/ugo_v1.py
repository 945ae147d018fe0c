"""UGO! as an environment of PettingZoo, turn by turn (AEC): `ugo_v1.env(seats=4)`.

The environment plays at the referee itself. An agent is a seat. Its observation is `{"observation", "action_mask"}`: its
view as `seatwise.rl.encode_view` writes it, and its legal actions. Its reward are the points of a round, when that ends.
`raw_env` has no wrappers and is more than twice as fast; there an illegal action raises `IllegalMove` or `ValueError`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from seatwise.rl.actions import ACTION_COUNT, bits_of_legal_actions, move_of_action
from seatwise.rl.observation import POINTS_LIMIT, array_of_bits, encode_view, observation_size
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import Ugo, UgoState, UgoView

UGO_RULES = Ugo()


def env(seats: int = 4, rounds: int = 4, render_mode: str | None = None) -> Any:
    """Return the environment with PettingZoo's usual wrappers: an illegal action ends the match for its agent.

    Args:
        seats: Number of seats, 2 to 4.
        rounds: Number of rounds, 1 to 8.
        render_mode: "ansi" for text, or none.
    """
    wrapped = wrappers.TerminateIllegalWrapper(raw_env(seats, rounds, render_mode), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(wrapped))


class raw_env(AECEnv):  # type: ignore[misc]  # noqa: N801 - PettingZoo's name for it
    """A match of UGO! without wrappers."""

    metadata = {"name": "ugo_v1", "render_modes": ["ansi", "human"], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, seats: int = 4, rounds: int = 4, render_mode: str | None = None) -> None:
        """Prepare an environment; `reset` deals. The arguments are those of `env`."""
        super().__init__()
        self.render_mode = render_mode
        self.possible_agents = [f"seat_{seat}" for seat in range(seats)]
        self._seats = {agent: Seat(seat) for seat, agent in enumerate(self.possible_agents)}
        self._options = UGO_RULES.complete_options({"rounds": rounds})
        self._chance: np.random.Generator | None = None
        space = spaces.Dict(
            {
                "observation": spaces.Box(-POINTS_LIMIT, POINTS_LIMIT, (observation_size(seats),), np.int8),
                "action_mask": spaces.Box(0, 1, (ACTION_COUNT,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: spaces.Discrete(ACTION_COUNT) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        """Return the space of what an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of actions."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Deal a match. Without a seed the random numbers go on, so that the next match is another one."""
        if seed is not None or self._chance is None:
            self._chance = np.random.default_rng(seed)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._state: UgoState = UGO_RULES.deal(len(self.agents), self._chance.bytes(32), self._options)
        self._select_asked()

    def _select_asked(self) -> None:
        assert self._state.asked is not None
        self.agent_selection = self.possible_agents[self._state.asked]

    def view_of(self, agent: str) -> UgoView:
        """Return the view of an agent, as a bot of this product gets it."""
        return UGO_RULES.view(self._state, self._seats[agent])

    def observe(self, agent: str) -> dict[str, NDArray[np.int8]]:
        """Return what an agent sees, and its legal actions: none unless it is asked."""
        view = self.view_of(agent)
        mask = array_of_bits(bits_of_legal_actions(view), ACTION_COUNT)
        return {"observation": encode_view(view), "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Take an action of the agent that is selected."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        state = self._state
        move = move_of_action(int(action or 0), state.table.won)
        self._state = UGO_RULES.play(state, self._seats[agent], move)
        self._give_points(len(state.round.points))
        if self._state.asked is None:
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[0]
        else:
            self._select_asked()

    def _give_points(self, before: int) -> None:
        """Reward the agents with the points of a round that has ended."""
        rounds = self._state.round.points
        if len(rounds) > before:
            self.rewards = dict(zip(self.agents, map(float, rounds[-1]), strict=True))
            self._accumulate_rewards()

    def render(self) -> str | None:
        """Return the table as all see it, for the mode "ansi"; print it for "human"."""
        text = repr(UGO_RULES.view(self._state, None))
        if self.render_mode == "human":
            print(text)
        return text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Do nothing: there is no window."""
