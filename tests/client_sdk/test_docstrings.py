"""The examples in the docstrings of what users call run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from importlib import import_module
from typing import Any

import pytest

import seatwise
from seatwise import async_client, client

MODULES = (
    "seatwise",
    "seatwise.bot",
    "seatwise.kits.race_steps",
    "seatwise.kits.ubongo.text",
    "seatwise.errors",
    "seatwise.local.matches",
    "seatwise.replay.frame_builder",
    "seatwise.replay.text",
    "seatwise.replay.text",
    "seatwise.samples",
    "seatwise.standings",
    "seatwise.ubongo",
    "seatwise.ugo",
    "seatwise_referee.game",
    "seatwise_referee.games.ubongo.cards",
    "seatwise_referee.games.ubongo.geometry",
    "seatwise_referee.games.ubongo.moves",
    "seatwise_referee.games.ugo.cards",
    "seatwise_referee.journal",
    "seatwise_referee.time_control",
)
"""The modules with examples in docstrings, ..."""

COMPILED = (
    "seatwise_referee.ending",
    "seatwise_referee.games.ugo.kingdoms",
    "seatwise_referee.games.ugo.tricks",
)
"""... and those of them that the optional build compiles. They have no docstrings there."""


@pytest.mark.parametrize(
    "name", [*MODULES, *(pytest.param(name, marks=pytest.mark.needs_sources) for name in COMPILED)]
)
def test_every_example_of_a_docstring_runs(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("shown", [seatwise.run, async_client.AsyncClient, client.Client])
def test_an_example_that_needs_a_server_compiles_and_calls_what_is_there(shown: Any) -> None:
    code = textwrap.dedent(section_of(inspect.getdoc(shown) or "", "Example"))
    compile(code, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    called = re.findall(r"\b(seatwise|client)\.(\w+)\(", code)
    assert called
    assert all(hasattr(seatwise if owner == "seatwise" else shown, name) for owner, name in called)


def section_of(text: str, title: str) -> str:
    """The indented lines under this title; empty if there is none."""
    found = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return found[1] if found else ""
