"""Random matches of any game, for tests that look at every state of them."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from matches.effort import examples
from seatwise_referee.game import IllegalMove, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import Ubongo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatwise_referee.game import Prompt

TESTED = {"ubongo": Ubongo(), **GAMES}
"""By name; a game may be held to the contract before the house hosts it."""

TABLES = [(game, seats) for game in TESTED.values() for seats in game.table_sizes]
every_table = pytest.mark.parametrize(
    ("game", "seats"), TABLES, ids=lambda value: str(getattr(value, "name", value))
)
every_game = pytest.mark.parametrize("game", TESTED.values(), ids=list(TESTED))

OPTIONS: dict[str, dict[str, Any]] = {"ugo": {"rounds": 2}, "ubongo": {"rounds": 3}}
"""Short matches; a game without a line here plays its default ones."""

LISTED = 60
"""As many legal moves as a test looks at; a game need not be able to list them all."""

LIKELY = 4
"""In a race most moves are among so many that are listed first, or nobody would get anywhere."""

MOVES_IN_ONE_PROMPT = 20
"""Of each seat; after so many the time runs out, or a game of building would never end."""


class Step(NamedTuple):
    """A state with the question it puts, and who answers it how; no seat: the time runs out for all."""

    state: Any
    prompt: Prompt
    seat: Seat | None
    move: Any
    after: Any


def dealt(game: Any, seats: int, chance: Random) -> Any:
    return game.deal(seats, chance.randbytes(32), game.complete_options(OPTIONS.get(game.name, {})))


def match(game: Any, seats: int, chance: Random) -> Iterator[Step]:
    """A match of random legal moves in which now and then the time runs out."""
    state, answers = dealt(game, seats, chance), 0
    while (prompt := game.prompt(state)) is not None:
        is_enough = answers >= MOVES_IN_ONE_PROMPT * len(prompt.seats)
        if is_enough or chance.random() < (0.01 if prompt.race else 0.05):
            seat, move = None, None
            after = timed_out(game, state, prompt)
        else:
            seat = chance.choice(sorted(prompt.seats))
            listed = LIKELY if prompt.race and chance.random() < 0.8 else LISTED
            move = chance.choice(list(islice(game.legal_moves(state, seat), listed)))
            after = game.play(state, seat, move)
        yield Step(state, prompt, seat, move, after)
        following = game.prompt(after)
        answers = answers + 1 if following and following.number == prompt.number else 0
        state = after


def timed_out(game: Any, state: Any, prompt: Prompt) -> Any:
    """The state after the time of all seats has run out, by what the referee does then."""
    if prompt.race:
        return game.end_round(state)
    for seat in sorted(prompt.seats):
        state = game.play(state, seat, game.default_move(state, seat))
    return state


def some(steps: Iterator[Step], chance: Random, share: float) -> Iterator[Step]:
    """Some of the steps, where all of them would take too long."""
    return (step for step in steps if chance.random() < share)


def viewers(seats: int) -> list[Seat | None]:
    return [*map(Seat, range(seats)), None]


LEGAL = "legal"


def answer(game: Any, state: Any, seat: Seat, move: Any) -> str:
    try:
        game.play(state, seat, move)
    except IllegalMove as refused:
        return str(refused)
    return LEGAL


Chances = st.integers(0, 2**32).map(Random)


def bounded(most: int) -> Callable[[Any], Any]:
    """The same examples on every run, and a third of them in `make test`."""
    return settings(max_examples=examples(most, max(2, most // 3)))
