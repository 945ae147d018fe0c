"""Whole matches as text, so that the diff of a golden file is the change of a rule.

`python tests/golden/golden.py --write` writes them anew. Each state is its prompt, what every seat and
a spectator see, and the move that follows. A line `all` holds what is the same in all these views.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ubongo import Ubongo

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
PLAYED = {"ubongo": Ubongo(), **GAMES}


class Golden(NamedTuple):
    """A match that is named by all that decides it."""

    game: str
    seats: int
    seed: int
    options: dict[str, Any]
    listed: int = 60
    """Moves are picked among so many that are listed first."""

    moves: int = 60
    """After so many in one prompt the time runs out for all."""

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / f"{self.game}-{self.seats}-{self.seed}.txt"


GOLDENS = (
    Golden("ugo", 2, 1, {"rounds": 1}),
    Golden("ugo", 3, 2, {"rounds": 1}),
    Golden("ugo", 4, 3, {"rounds": 2}),
    Golden("ubongo", 2, 8, {"rounds": 3, "deck": "easy"}, listed=4, moves=20),
    Golden("ubongo", 3, 7, {"rounds": 2, "false_call": "ends", "deck": "easy"}, listed=4, moves=32),
)


def text(golden: Golden) -> str:
    """The whole match."""
    return "\n".join(lines(golden)) + "\n"


def lines(golden: Golden) -> Iterator[str]:
    """A title, the deals, each state with the move that follows, and the outcome."""
    game, chance = PLAYED[golden.game], Random(golden.seed)
    seed = sha256(str(golden.seed).encode()).digest()
    options = game.complete_options(golden.options)
    yield f"{golden.game}, {golden.seats} seats, deal seed {seed.hex()}, options {json.dumps(options)}"
    yield from (json.dumps(deal) for deal in game.deals_in_clear(golden.seats, seed, options))
    state, number, moves = game.deal(golden.seats, seed, options), 0, 0
    while (prompt := game.prompt(state)) is not None:
        yield f"\n#{prompt.number} {prompt.pace} of seat {', '.join(map(str, sorted(prompt.seats)))}"
        yield from views(game, state, golden.seats)
        number, moves = prompt.number, moves + 1 if prompt.number == number else 1
        if moves > golden.moves:
            yield "the time runs out"
            state = game.end_round(state)  # only in a race are there so many moves in one prompt
            continue
        seat = picked(sorted(prompt.seats), chance)
        move = picked(list(islice(game.legal_moves(state, seat), golden.listed)), chance)
        yield f"seat {seat}: {json.dumps(game.move_to_json(move))}"
        state = game.play(state, seat, move)
    yield "\nover"
    yield from views(game, state, golden.seats)
    yield str(game.outcome(state))


def picked(items: list[Any], chance: Random) -> Any:
    """One of them; `random()` is the one draw that Python promises never to change."""
    return items[int(chance.random() * len(items))]


def views(game: Any, state: Any, seats: int) -> Iterator[str]:
    """What all see alike, then what only a seat sees, field by field."""
    seen = {
        name: {field.name: getattr(view, field.name) for field in fields(view)}
        for name, view in (
            *((f"seat {seat}", game.view(state, Seat(seat))) for seat in range(seats)),
            ("spectator", game.view(state, None)),
        )
    }
    spectator = seen["spectator"]
    common = {name for name in spectator if all(view[name] == spectator[name] for view in seen.values())}
    yield from (f"  all {name} = {short(spectator[name])}" for name in spectator if name in common)
    for viewer, view in seen.items():
        yield f"  {viewer}: " + ", ".join(
            f"{name} = {short(view[name])}" for name in view if name not in common
        )


def short(value: Any) -> str:
    """The value without the names of what it is made of."""
    if is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in fields(value))
    if isinstance(value, tuple):
        return f"({' '.join(map(short, value))})"
    return "-" if value is None else str(value)


def write() -> None:
    """Writes all of them anew."""
    for golden in GOLDENS:
        golden.path.write_text(text(golden), encoding="utf-8", newline="\n")
        print(golden.path.name)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/golden/golden.py --write")
    write()
