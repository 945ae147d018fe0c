"""Games of OpenSpiel as games from outside: `openspiel-hearts`, `openspiel-leduc-poker` and many others.

The state of a match is the history of all actions, those of chance included. OpenSpiel's own state object is a cache of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyspiel

from seatwise.hosting import Chance, HostedGame

MOST_SEATS = 10
WEIGHT = 2**48  # a probability becomes this many parts of a whole number
CACHED_STATES = 512
FRACTIONS = "its results are not always whole numbers"
NOT_SUITABLE = {
    "bridge": "a step takes 80 ms; at most 20 are allowed",
    "go_fish": FRACTIONS,
    "pig": FRACTIONS,
    "quoridor": FRACTIONS,
    "skat": FRACTIONS,
    "tiny_bridge_2p": FRACTIONS,
    "yacht": FRACTIONS,
}
"""Games that OpenSpiel's own facts let through, and why they are refused. Measured with OpenSpiel 2.0 and random moves."""


class History(NamedTuple):
    """A state: the seats of the table, and all actions so far."""

    seats: int
    actions: tuple[int, ...] = ()


class OpenSpielGame(HostedGame[History]):
    """One game of OpenSpiel."""

    rules_version = "1"

    def __init__(self, kind: Any) -> None:
        """Host the game of this type."""
        self._kind = kind
        self.name = name_of(kind)  # type: ignore[misc]  # class variables of other games
        self.title = kind.long_name  # type: ignore[misc]
        self.table_sizes = range(max(2, kind.min_num_players), min(kind.max_num_players, MOST_SEATS) + 1)  # type: ignore[misc]
        self._games: dict[int, Any] = {}
        self._cache: OrderedDict[History, Any] = OrderedDict()

    def start_match(self, seats: int, options: Any, chance: Chance) -> History:
        """Begin, and let chance deal."""
        return self._draw(History(seats), self._load(seats).new_initial_state(), chance)

    def find_turn(self, state: History) -> int | None:
        """Return the player of OpenSpiel that is to move."""
        own = self._restore(state)
        return None if own.is_terminal() else int(own.current_player())

    def list_moves(self, state: History) -> list[int]:
        """List OpenSpiel's actions, which are numbers."""
        return [int(action) for action in self._restore(state).legal_actions()]

    def play_move(self, state: History, move: int, chance: Chance) -> History:
        """Apply an action to a copy, and let chance draw what follows."""
        own = self._restore(state).clone()
        own.apply_action(move)
        return self._draw(History(state.seats, (*state.actions, move)), own, chance)

    def show_state(self, state: History, seat: int | None) -> dict[str, Any]:
        """Show a seat OpenSpiel's text of what it knows, and the names of its moves. A spectator sees only the end."""
        own = self._restore(state)
        if seat is None:
            return {"end": str(own)} if own.is_terminal() else {}
        is_asked = not own.is_terminal() and own.current_player() == seat
        names = (
            {str(each): own.action_to_string(seat, each) for each in own.legal_actions()} if is_asked else {}
        )
        if self._kind.provides_information_state_string:
            return {"information": own.information_state_string(seat), "moves": names}
        return {"information": own.observation_string(seat), "moves": names}

    def count_points(self, state: History) -> list[int]:
        """Return OpenSpiel's returns, which must be whole numbers."""
        returns = self._restore(state).returns()
        if any(each != int(each) for each in returns):
            raise ValueError(f"OpenSpiel returns {returns}, and points are whole numbers")
        return [int(each) for each in returns]

    def _load(self, seats: int) -> Any:
        if seats not in self._games:
            is_fixed = self._kind.min_num_players == self._kind.max_num_players
            parameters = {} if is_fixed else {"players": seats}
            self._games[seats] = pyspiel.load_game(self._kind.short_name, parameters)
        return self._games[seats]

    def _draw(self, state: History, own: Any, chance: Chance) -> History:
        actions = state.actions
        while own.is_chance_node():
            outcomes = [(int(action), round(share * WEIGHT)) for action, share in own.chance_outcomes()]
            actions = (*actions, chance.draw_outcome(outcomes))
            own.apply_action(actions[-1])
        after = History(state.seats, actions)
        self._keep(after, own)
        return after

    def _restore(self, state: History) -> Any:
        own = self._cache.get(state)
        if own is None:
            own = self._load(state.seats).new_initial_state()
            for action in state.actions:
                own.apply_action(action)
            self._keep(state, own)
        return own

    def _keep(self, state: History, own: Any) -> None:
        self._cache[state] = own
        if len(self._cache) > CACHED_STATES:
            self._cache.popitem(last=False)


def name_of(kind: Any) -> str:
    """Return the name under which a game of OpenSpiel is hosted."""
    return f"openspiel-{kind.short_name.replace('_', '-')}"


def why_refused(kind: Any) -> str:
    """Return why a game cannot be hosted; empty if it can."""
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        return "its seats move at the same time"
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        return "it does not list the outcomes of chance"
    if kind.max_num_players < 2:
        return "it is played by one"
    if not kind.default_loadable:
        return "it cannot be loaded without parameters"
    if kind.min_num_players != kind.max_num_players and "players" not in kind.parameter_specification:
        return "its number of seats cannot be chosen"
    if not (kind.provides_information_state_string or kind.provides_observation_string):
        return "it has no text of what a seat knows"
    return NOT_SUITABLE.get(kind.short_name, "")


def list_games() -> Iterator[OpenSpielGame]:
    """Yield the games that can be hosted: the entry point."""
    for kind in pyspiel.registered_games():
        if not why_refused(kind):
            yield OpenSpielGame(kind)
