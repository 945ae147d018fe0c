"""A constant of a module means the same wherever its name stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "client_sdk/seatwise",
    "client_sdk/seatwise_fast",
    "referee/seatwise_referee",
    "server/seatwise_server",
)

ONE_MEANING = {
    "BY_TEXT": "the cards of a game, by their text",
    "CARDS": "all cards of a game",
    "CODEC": "the codec of a game",
    "COMMAND": "the command of a module of the command line",
    "DAY_S": "the seconds of a day",
    "EPILOG": "the text below the options of a command",
    "FIRST_CLOSE_CODE": "the code that is added to a refusal's own when a WebSocket is closed",
    "FRAME_WRITER": "what writes the positions of a game for replays",
    "FROM_WIRE": "the cards of a game, by their number on the wire",
    "HAND": "the key of a view's hand on the wire",
    "HAND_SIZE": "the cards that a game deals to each seat",
    "KIT": "what the product knows of a game",
    "LAST_ROUND": "the key of a view's last round on the wire",
    "NAMES": "the form of the names of one kind of resource",
    "NUMBER_FIELDS": "the fields of a time control that are one number",
    "POINTS": "the key of a view's points on the wire",
    "SEAT": "the encoded seats of a view",
    "T": "a type variable",
    "TEXTS": "the texts of all cards of a game",
}
"""The names that more than one module gives to a constant, with the one meaning that each of them has.

A name with an underscore before it counts as the same name: a reader who searches for it finds both.
"""

OF_EACH_GAME = {"HAND_SIZE"}
"""Numbers that are a rule of one game, so each game has its own."""


def test_constants_of_one_name_have_one_meaning() -> None:
    shared = {name: places for name, places in _constants().items() if len(places) > 1}
    unexplained = {name: places for name, places in shared.items() if name not in ONE_MEANING}
    assert not unexplained, "rename them, or import one from the other: " + repr(unexplained)
    assert ONE_MEANING.keys() <= shared.keys(), "not shared by now: take them off the list"


def test_numbers_of_one_name_are_equal() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for module in map(_parsed, _modules()):
        for name, value in _values(module):
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                found[name].add(repr(value.value))
    differ = {name: sorted(values) for name, values in found.items() if len(values) > 1}
    assert differ.keys() == OF_EACH_GAME, "rename one of them: " + repr(differ)


def _constants() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in _modules():
        for name in {name for name, _ in _values(_parsed(path))}:
            found[name].append(str(path.relative_to(ROOT)))
    return found


def _modules() -> list[Path]:
    return [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if "_pb2" not in path.name]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _values(module: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each constant of a module, and the expression that it is."""
    for node in module.body:
        if isinstance(node, ast.Assign):
            named = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            named = [(node.target, node.value)]
        else:
            continue
        yield from (
            (it.id.lstrip("_"), value) for it, value in named if isinstance(it, ast.Name) and it.id.isupper()
        )
