"""Games from outside for tests: the example of docs/, a small game that is right, and games that do wrong."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import pytest

from seatwise.hosting import Chance, HostedGame, HostedKit, HostedOption
from seatwise.kits import KITS
from seatwise.kits.codecs import CODECS
from seatwise.kits.game_kit import GameKit
from seatwise.kits.hosted.installed_games import make_kit
from seatwise.units.plan import UnitAnswer
from seatwise_referee.games.registry import GAMES
from seatwise_server.lobby.seating import QUEUES, Queue
from seatwise_server.play import game_views
from seatwise_server.play.game_views import ViewMaker

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def load_example(name: str) -> ModuleType:
    """The module of docs/examples/NAME."""
    sys.path.insert(0, str(EXAMPLES / name))
    try:
        return import_module(f"seatwise_{name}")
    finally:
        sys.path.remove(str(EXAMPLES / name))


def load_leduc() -> type[HostedGame[Any]]:
    """The game of docs/examples/leduc."""
    found: type[HostedGame[Any]] = load_example("leduc").Leduc
    return found


def use_game(monkeypatch: pytest.MonkeyPatch, game: object, package: str = "") -> GameKit:
    """Add a game to those of this process, as if its package were installed, until the test ends."""
    kit = make_kit(game if not isinstance(game, HostedGame) else HostedKit(game), package)
    monkeypatch.setitem(KITS, kit.name, kit)
    monkeypatch.setitem(GAMES, kit.name, kit.game)
    monkeypatch.setitem(CODECS, kit.name, kit.load_codec())
    for queue in kit.queues:
        monkeypatch.setitem(QUEUES, queue.name, Queue(queue.name, kit.name, queue.seats))
    return kit


class InlineViews:
    """Does in this process what `GameViews` has another process do, which knows installed packages only."""

    name = "inline"

    def __init__(self) -> None:
        self._maker = ViewMaker()

    async def run_unit(self, number: int, told: Any) -> UnitAnswer:
        result, note = self._maker.answer_request(number, json.loads(json.dumps(told)))
        return UnitAnswer(number, json.loads(json.dumps(result)), note, self.name)

    async def stop(self) -> None:
        """Nothing has to be ended."""


def use_inline_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the games of this process, until the test ends."""

    async def start_worker() -> InlineViews:
        return InlineViews()

    monkeypatch.setattr(game_views, "start_worker", start_worker)
    monkeypatch.setattr(game_views, "CHECK_S", 0.3)  # the event loop waits for it here


class Pile(NamedTuple):
    """A state of `Highest`."""

    hands: tuple[tuple[int, ...], ...]
    played: tuple[int, ...] = ()


class Highest(HostedGame[Any]):
    """Each seat has three cards, and lays one in its turn. The sum of a seat's cards is its points."""

    name = "highest"
    table_sizes = range(2, 5)
    options: ClassVar[dict[str, HostedOption]] = {
        "cards": HostedOption(3, range(1, 6)),
        "deck": HostedOption("short", ("short", "long")),
    }

    def start_match(self, seats: int, options: Any, chance: Chance) -> Any:
        deck = chance.shuffle_items(range(1, 41 if options["deck"] == "long" else 21))
        count = options["cards"]
        return Pile(tuple(tuple(sorted(deck[seat * count : (seat + 1) * count])) for seat in range(seats)))

    def find_turn(self, state: Any) -> int | None:
        seat = len(state.played) % len(state.hands)
        return seat if state.hands[seat] else None

    def list_moves(self, state: Any) -> list[Any]:
        seat = self.find_turn(state)
        assert seat is not None
        return [{"card": card} for card in state.hands[seat]]

    def play_move(self, state: Any, move: Any, chance: Chance) -> Any:
        seat = self.find_turn(state)
        hands = tuple(
            tuple(card for card in hand if each != seat or card != move["card"])
            for each, hand in enumerate(state.hands)
        )
        return Pile(hands, (*state.played, move["card"]))

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        return {"hand": [] if seat is None else list(state.hands[seat]), "played": list(state.played)}

    def count_points(self, state: Any) -> list[int]:
        return [sum(state.played[seat :: len(state.hands)]) for seat in range(len(state.hands))]

    def resample_state(self, state: Any, seat: int | None, chance: Chance) -> Any:
        own = set() if seat is None else set(state.hands[seat])
        left = sorted(set(range(1, 41)) - set(state.played) - own)

        def draw() -> int:
            return left.pop(chance.draw_outcome((place, 1) for place in range(len(left))))

        return state._replace(
            hands=tuple(
                hand if each == seat else tuple(sorted(draw() for _ in hand))
                for each, hand in enumerate(state.hands)
            )
        )


class Bids(Highest):
    """All seats lay a card at the same time. The higher card wins both; equal cards are worth nothing."""

    name = "bids"
    table_sizes = range(2, 4)

    def find_turn(self, state: Any) -> Any:
        return [*range(len(state.hands))] if state.hands[0] else None

    def list_choices(self, state: Any, seat: int) -> list[Any]:
        return list(state.hands[seat])

    def play_choices(self, state: Any, moves: Any, chance: Chance) -> Any:
        hands = tuple(
            tuple(card for card in hand if card != moves[seat]) for seat, hand in enumerate(state.hands)
        )
        return Pile(hands, (*state.played, *(moves[seat] for seat in range(len(hands)))))


class Goofspiel(HostedGame[Any]):
    """Both seats bid a card for each prize at the same time, in secret. The higher bid wins the prize; equal bids lose it."""

    name = "goofspiel"
    cards = 5

    def start_match(self, seats: int, options: Any, chance: Chance) -> Any:
        return tuple(chance.shuffle_items(range(1, self.cards + 1))), ()

    def find_turn(self, state: Any) -> Any:
        return [0, 1] if len(state[1]) < self.cards else None

    def list_choices(self, state: Any, seat: int) -> list[Any]:
        bids = [bid[seat] for bid in state[1]]
        return [{"bid": card} for card in range(1, self.cards + 1) if card not in bids]

    def play_choices(self, state: Any, moves: Any, chance: Chance) -> Any:
        return state[0], (*state[1], (moves[0]["bid"], moves[1]["bid"]))

    def show_state(self, state: Any, seat: int | None) -> dict[str, Any]:
        prizes, bids = state
        return {"prizes": list(prizes[: len(bids) + 1]), "bids": [list(bid) for bid in bids]}

    def count_points(self, state: Any) -> list[int]:
        won = [(prize, bid) for prize, bid in zip(*state, strict=True) if bid[0] != bid[1]]
        return [sum(prize for prize, bid in won if bid[seat] == max(bid)) for seat in (0, 1)]

    def resample_state(self, state: Any, seat: int | None, chance: Chance) -> Any:
        seen = len(state[1]) + 1
        return (*state[0][:seen], *chance.shuffle_items(sorted(state[0][seen:]))), state[1]


class Guesses(Highest):
    """Each seat names any whole number up to a billion; a guess of its lowest card is worth that card."""

    name = "guesses"

    def find_turn(self, state: Any) -> int | None:
        return len(state.played) if len(state.played) < len(state.hands) else None

    def list_moves(self, state: Any) -> list[Any]:
        return [{"guess": 0}, {"guess": 1}]

    def check_move(self, state: Any, seat: int, move: Any) -> str:
        is_number = type(move["guess"]) is int and 0 <= move["guess"] < 10**9 and len(move) == 1
        return "" if is_number else "guess a whole number from 0 to 999999999"

    def play_move(self, state: Any, move: Any, chance: Chance) -> Any:
        return state._replace(played=(*state.played, move["guess"]))

    def count_points(self, state: Any) -> list[int]:
        return [hand[0] * (hand[0] == said) for hand, said in zip(state.hands, state.played, strict=True)]
