"""A constant of a module means the same wherever its name stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "client_sdk/seatwise",
    "client_sdk/seatwise_fast",
    "referee/seatwise_referee",
    "server/seatwise_server",
)

ONE_MEANING = {
    "ATTEND_METHOD": "the gRPC method by which a bot attends the lobby",
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
    "PLAY_METHOD": "the gRPC method by which a bot plays",
    "POINTS": "the key of a view's points on the wire",
    "PROGRESS_EVERY_S": "seconds between two lines of progress",
    "SEAT": "the encoded seats of a view",
    "T": "a type variable",
    "TEXTS": "the texts of all cards of a game",
}
"""The names that more than one module gives to a constant, with the one meaning that each of them has.

A name with an underscore before it counts as the same name: a reader who searches for it finds both.
"""


def test_constants_of_one_name_have_one_meaning() -> None:
    shared = {name: places for name, places in _constants().items() if len(places) > 1}
    unexplained = {name: places for name, places in shared.items() if name not in ONE_MEANING}
    assert not unexplained, "rename them, or import one from the other: " + repr(unexplained)
    assert ONE_MEANING.keys() <= shared.keys(), "not shared by now: take them off the list"


def _constants() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*.py"):
            if "_pb2" not in path.name:
                for name in _assigned(ast.parse(path.read_text())):
                    found[name].append(str(path.relative_to(ROOT)))
    return found


def _assigned(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in module.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        names.update(it.id.lstrip("_") for it in targets if isinstance(it, ast.Name) and it.id.isupper())
    return names
