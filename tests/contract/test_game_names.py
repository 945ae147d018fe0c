"""No module of the product names a game, except the modules of that game, and the few that list all games."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import seatwise
import seatwise_referee
import seatwise_server
from seatwise.kits import OWN_KITS

PACKAGES = [Path(str(each.__file__)).parent for each in (seatwise, seatwise_referee, seatwise_server)]
NAMES = re.compile("|".join(kit.name for kit in OWN_KITS), re.IGNORECASE)

BATCH = "seatwise/rl/"
"""The folder of UGO! in batches, for bots that train: a folder of that game alone."""

LISTS = {
    "seatwise_referee/games/registry.py": "the rules of our games",
    "seatwise/kits/__init__.py": "the kits of our games",
    "seatwise/kits/bot_methods.py": "the methods that a bot inherits",
    "seatwise/cli/doctor.py": "the help for users says which game the bot must play",
    "seatwise/__init__.py": "names that users import: Card, Colour and View",
}
"""The modules that may name games, and what they list."""


def names_in(source: str) -> Iterator[str]:
    """Every identifier, module and text outside of docstrings that names a game."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not is_docstring(each)]  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        for value in vars(node).values():
            if isinstance(value, str) and NAMES.search(value):
                yield value


def is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            name = f"{package.name}/{path.relative_to(package).as_posix()}"
            if (
                not name.endswith(("_pb2.py", "_pb2_grpc.py"))
                and not NAMES.search(name)
                and not name.startswith(BATCH)
            ):
                yield name, path


def test_no_module_outside_of_its_own_names_a_game() -> None:
    named = {
        name: found
        for name, path in modules()
        if name not in LISTS and (found := [*names_in(path.read_text())])
    }
    assert named == {}, "ask the kit of the game instead: seatwise.kits.KITS"


def test_every_exception_is_still_needed() -> None:
    there = dict(modules())
    assert [name for name in LISTS if not [*names_in(there[name].read_text())]] == []


@pytest.mark.parametrize(
    "source", ['x = "ugo"', "import seatwise.ubongo", "def ugo_line(): pass", "x = view.ugo"]
)
def test_a_name_is_found(source: str) -> None:
    assert [*names_in(source)]


def test_a_docstring_may_name_a_game_as_an_example() -> None:
    assert not [*names_in('def f():\n    """The game, as in "ugo"."""\n')]
