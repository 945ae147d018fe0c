"""UGO! as a game of OpenSpiel: one round, for its algorithms. Import this module, then load `python_seatwise_ugo`.

    import pyspiel
    from seatwise.rl import openspiel_ugo

    game = pyspiel.load_game("python_seatwise_ugo(players=3)")

Every state plays at the referee itself. Each dealt card is a chance node. A state can be resampled for a player
(`resample_from_infostate`), so OpenSpiel's IS-MCTS in Python searches it; the one in C++ does not work with games in
Python. The actions are those of `seatwise.rl.actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import numpy as np
import pyspiel
from numpy.typing import NDArray

from seatwise.kits.ugo.samples import RoundModel
from seatwise.rl.actions import ACTION_COUNT, CARD_ACTIONS, LAYING_ORDERS, move_of_action
from seatwise.rl.observation import encode_view, observation_size
from seatwise_referee.game import Seat
from seatwise_referee.games.ugo import CARDS, Ugo, UgoRound, UgoState, UgoTable
from seatwise_referee.games.ugo.cards import TEXTS, cards_of, mask_of
from seatwise_referee.games.ugo.kingdoms import EMPTY_KINGDOM
from seatwise_referee.games.ugo.state import FARMER_SUPPLY, HAND_SIZE
from seatwise_referee.games.ugo.tricks import legal_mask

SPIEL_RULES: Final = Ugo()
LEAST_ROUND_POINTS: Final = -45.0
MOST_ROUND_POINTS: Final = 40.0
DEALS_TRIED: Final = 100
"""Deals at random that are tried."""

GAME_TYPE: Final = pyspiel.GameType(
    short_name="python_seatwise_ugo",
    long_name="UGO! of Seatwise, one round",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.GENERAL_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=4,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"players": 2},
)


class SpielUgoGame(pyspiel.Game):  # type: ignore[misc]
    """One round of UGO!."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        """Prepare a game. `params` has `players`, 2 to 4."""
        given = dict(params or {})
        self.players = int(given.get("players", 2))
        facts = pyspiel.GameInfo(
            num_distinct_actions=ACTION_COUNT,
            max_chance_outcomes=len(CARDS),
            num_players=self.players,
            min_utility=LEAST_ROUND_POINTS,
            max_utility=MOST_ROUND_POINTS,
            utility_sum=None,
            max_game_length=longest_round(self.players),
        )
        super().__init__(GAME_TYPE, facts, given)

    def new_initial_state(self) -> SpielUgoState:
        """Return a state before the deal."""
        return SpielUgoState(self)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> SpielUgoObserver:
        """Return an observer: of the information state if it has perfect recall, else of the view."""
        return SpielUgoObserver(
            iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), self.players, params
        )


def longest_round(players: int) -> int:
    """Return the most moves of a round: each card, and an order for each trick."""
    return HAND_SIZE * players + HAND_SIZE


class SpielUgoState(pyspiel.State):  # type: ignore[misc]
    """A state of a round, or of its deal."""

    def __init__(self, game: SpielUgoGame) -> None:
        """Begin before the deal."""
        super().__init__(game)
        self.players = game.players
        self.dealt: list[int] = []
        """The cards dealt so far: ten for player 0, then ten for player 1, and so on."""
        self.log: list[tuple[int, int]] = []
        """Player and action of each move."""
        self.ugo: UgoState | None = None

    def current_player(self) -> int:
        """Return the player that is asked, or the mark for chance or the end."""
        if self.ugo is None:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL if self.ugo.asked is None else self.ugo.asked)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the cards that may be dealt next, each with the same probability."""
        left = [card for card in range(len(CARDS)) if card not in self.dealt]
        return [(card, 1 / len(left)) for card in left]

    def _legal_actions(self, player: int) -> list[int]:
        assert self.ugo is not None
        if self.ugo.table.won:
            return list(range(CARD_ACTIONS, CARD_ACTIONS + len(LAYING_ORDERS[self.players])))
        return list(map(int, cards_of(legal_mask(self.ugo.hands[player], self.ugo.trick))))

    def _apply_action(self, action: int) -> None:
        if self.ugo is not None:
            assert self.ugo.asked is not None
            self.log.append((int(self.ugo.asked), action))
            self.ugo = SPIEL_RULES.play(self.ugo, self.ugo.asked, move_of_action(action, self.ugo.table.won))
            return
        self.dealt.append(action)
        if len(self.dealt) == HAND_SIZE * self.players:
            self.ugo = state_of_deal(self.dealt, self.players)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"deal {TEXTS[action]}"
        return TEXTS[action] if action < CARD_ACTIONS else f"order {action - CARD_ACTIONS}"

    def is_terminal(self) -> bool:
        """Return whether the round is over."""
        return self.ugo is not None and self.ugo.asked is None

    def returns(self) -> list[float]:
        """Return the points of the round by player; 0 before its end."""
        if self.ugo is None or self.ugo.asked is not None:
            return [0.0] * self.players
        return list(map(float, self.ugo.round.points[0]))

    def hand_dealt(self, player: int) -> list[int]:
        """Return the cards that a player was dealt, as far as they are."""
        return self.dealt[HAND_SIZE * player : HAND_SIZE * (player + 1)]

    def resample_from_infostate(self, player: int, probability_sampler: Callable[[], float]) -> SpielUgoState:
        """Return a state that this player cannot tell from this one. `probability_sampler` returns random numbers from 0 to 1."""
        assert self.ugo is not None
        chance = Random(int(probability_sampler() * 2**53))
        dealt = resample_deal(self, self.ugo, player, chance)
        other: SpielUgoState = self.get_game().new_initial_state()
        for action in (*dealt, *(action for _, action in self.log)):
            other.apply_action(action)
        return other

    def __str__(self) -> str:
        cards = " ".join(TEXTS[card] for card in self.dealt)
        return f"{cards} | {' '.join(f'{player}:{action}' for player, action in self.log)}"


def state_of_deal(dealt: Sequence[int], players: int) -> UgoState:
    """Return the referee's state after a deal: ten cards each, player 0 starts."""
    hands = tuple(
        mask_of(CARDS[card] for card in dealt[first : first + HAND_SIZE])
        for first in range(0, HAND_SIZE * players, HAND_SIZE)
    )
    table = UgoTable(Seat(0), (EMPTY_KINGDOM,) * players, FARMER_SUPPLY[players], (), ())
    return UgoState(Seat(0), 1, hands, (), table, UgoRound(b"", rounds=1, number=1, points=(), last_round=()))


def resample_deal(state: SpielUgoState, ugo: UgoState, player: int, chance: Random) -> list[int]:
    """Deal again what a player has not seen, as far as the missing colours allow. Return the cards as `dealt` has them.

    Where no deal is found, which is rare, it is the true one.
    """
    model = RoundModel(SPIEL_RULES.view(ugo, Seat(player)), chance)
    for _ in range(DEALS_TRIED):
        sampled = model.sample_hands()
        if model.may_hold(sampled):
            hands = [iter(hand) for hand in sampled]
            return [
                card if seat == player or not ugo.hands[seat] >> card & 1 else int(next(hands[seat]))
                for seat in range(state.players)
                for card in state.hand_dealt(seat)
            ]
    return state.dealt


class SpielUgoObserver:
    """Writes what a player knows as a tensor and as text."""

    def __init__(self, iig_obs_type: Any, players: int, params: dict[str, Any] | None) -> None:
        """Make the tensor: with perfect recall the player's cards and all moves, else the view of version 1. `params` must be empty."""
        if params:
            raise ValueError(f"this observer has no parameters, and was given {sorted(params)}")
        self._has_recall = bool(iig_obs_type.perfect_recall)
        self.dict: dict[str, NDArray[np.float32]] = {}
        shapes: dict[str, tuple[int, ...]] = {"player": (players,), "view": (observation_size(players),)}
        if self._has_recall:
            shapes = {
                "player": (players,),
                "hand": (len(CARDS),),
                "moves": (longest_round(players), players + ACTION_COUNT),
            }
        self.tensor = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()), np.float32)
        first = 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            self.dict[name] = self.tensor[first : first + size].reshape(shape)
            first += size

    def set_from(self, state: SpielUgoState, player: int) -> None:
        """Write what a player knows of a state to `tensor`."""
        self.tensor.fill(0)
        self.dict["player"][player] = 1
        if self._has_recall:
            self.dict["hand"][state.hand_dealt(player)] = 1
            for number, (mover, action) in enumerate(state.log):
                self.dict["moves"][number, mover] = 1
                self.dict["moves"][number, state.players + action] = 1
        elif state.ugo is None:
            self.dict["view"][state.hand_dealt(player)] = 1
        else:
            self.dict["view"][:] = encode_view(SPIEL_RULES.view(state.ugo, Seat(player)))

    def string_from(self, state: SpielUgoState, player: int) -> str:
        """Return what a player knows of a state, as text."""
        hand = " ".join(TEXTS[card] for card in sorted(state.hand_dealt(player)))
        if self._has_recall or state.ugo is None:
            return f"player {player}: {hand} | {' '.join(f'{mover}:{action}' for mover, action in state.log)}"
        return repr(SPIEL_RULES.view(state.ugo, Seat(player)))


pyspiel.register_game(GAME_TYPE, SpielUgoGame)
