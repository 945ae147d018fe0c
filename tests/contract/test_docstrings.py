"""The functions that users call explain their arguments, units, results and errors, and docstrings keep to one mood."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from prose.public_functions import PublicFunction, public_functions

ROOT = Path(__file__).parents[2]
DESCRIBING = sorted(
    ROOT / "server" / "seatwise_server" / folder
    for folder in (
        "embedded",
        "lobby",
        "pages",
        "play",
        "rest",
        "rpc",
        "services",
        "store",
        "tls",
        "ws",
    )
)
"""Folders in which a docstring says what a function does: "Returns the view". Elsewhere it begins: "Return the view"."""


def test_the_names_that_users_know_are_among_those_that_are_looked_at() -> None:
    names = {each.name for each in public_functions()}
    assert {
        "seatwise.remote.run",
        "seatwise.async_client.AsyncClient.create_match",
        "seatwise.client.Client.watch_match",
        "seatwise.bot.Bot.ended",
        "seatwise_referee.game.Game.play",
        "seatwise_referee.hosted.hosted_game.HostedGame.play_move",
        "seatwise_referee.time_control.TimeControl.bank_after",
    } <= names


@pytest.mark.parametrize("function", list(public_functions()), ids=str)
def test_a_function_that_users_call_explains_itself(function: PublicFunction) -> None:
    assert function.doc, "it has no docstring"
    assert function.find_gaps() == []


@pytest.mark.parametrize(
    ("doc", "gaps"),
    [
        ("Wait at most `limit_s` seconds for the bot; return whether it came. Raises `KeyError`.", []),
        (
            "Wait at most `limit_s` for the bot; return whether it came. Raises `KeyError`.",
            ["unit of limit_s"],
        ),
        ("Wait some seconds.", ["parameter bot", "parameter limit_s", "what it returns", "raises KeyError"]),
    ],
)
def test_gaps_are_found(doc: str, gaps: list[str]) -> None:
    [node] = ast.parse("def wait(bot: str, limit_s: float) -> bool:\n    raise KeyError(bot)").body
    assert isinstance(node, ast.FunctionDef)
    assert PublicFunction("wait", node, doc).find_gaps() == gaps


def test_docstrings_of_a_folder_keep_to_one_mood() -> None:
    sources = [each for top in ("referee", "client_sdk", "server") for each in (ROOT / top).rglob("*.py")]
    wrong = [
        str(source.relative_to(ROOT))
        for source in sources
        if source.parent.name != "seatwise_server"  # modules beside the folders
        and (mood := '"""Return ' if _is_describing(source) else '"""Returns ')
        and re.search(rf"^ +{mood}", source.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert wrong == []


def _is_describing(source: Path) -> bool:
    return any(source.is_relative_to(folder) for folder in DESCRIBING)
