"""The functions that users call explain their arguments, units, results and errors, and docstrings keep to one mood."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from prose.public_functions import PublicFunction, public_functions

ROOT = Path(__file__).parents[2]


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


def test_every_function_that_users_call_explains_itself() -> None:
    gaps = {each.name: each.find_gaps() if each.doc else ["no docstring"] for each in public_functions()}
    assert {name: found for name, found in gaps.items() if found} == {}


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


def test_docstrings_are_requests() -> None:
    """They say "Return the view." and not "Returns the view."."""
    sources = [each for top in ("referee", "client_sdk", "server") for each in (ROOT / top).rglob("*.py")]
    others = [
        source.relative_to(ROOT).as_posix()
        for source in sources
        if "_pb2" not in source.name
        and re.search(r'^ +"""Returns ', source.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert others == []
