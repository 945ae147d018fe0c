"""The docstrings of what users call: complete, in the imperative, and with examples that run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import seatwise
from seatwise import async_client, client, errors, local, standings, ubongo, ugo
from seatwise.bot import check_bot
from seatwise.kits.bot_methods import GameMethods
from seatwise.kits.ubongo import text
from seatwise.kits.ubongo.solver import solve
from seatwise.samples import sample

MODULES = (
    "seatwise",
    "seatwise.bot",
    "seatwise.race_steps",
    "seatwise.kits.ubongo.text",
    "seatwise.errors",
    "seatwise.local.matches",
    "seatwise.replay.sentences",
    "seatwise.replay.text",
    "seatwise.replay.text_blocks",
    "seatwise.samples",
    "seatwise.standings",
    "seatwise.ubongo",
    "seatwise.ugo",
    "seatwise_referee.game",
    "seatwise_referee.games.ubongo.cards",
    "seatwise_referee.games.ubongo.geometry",
    "seatwise_referee.games.ubongo.listing",
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

THIRD_PERSON = re.compile(r"[A-Z][a-z]+[^s]s$")
"""`Returns` is no imperative."""


def functions_of(owner: Any, names: Iterator[str] | list[str]) -> Iterator[Callable[..., Any]]:
    """The public functions among them, and the public methods of the classes among them."""
    for name in names:
        found = getattr(owner, name)
        if inspect.isclass(found):
            public = [each for each in vars(found) if not each.startswith("_")]
            yield from functions_of(found, public)
        elif inspect.isfunction(found) or inspect.ismethod(found):
            yield found


PUBLIC = list(
    dict.fromkeys(
        [
            seatwise.play,
            seatwise.run,
            seatwise.run_async,
            check_bot,
            text.draw,
            errors.from_rpc,
            sample,
            solve,
            *functions_of(seatwise, ["Bot", "Card", "Result"]),
            *(
                method
                for cls in GameMethods.__bases__
                for method in functions_of(cls, [*vars(cls)])
                if method.__name__[0] != "_"
            ),
            *functions_of(local, local.__all__),
            *functions_of(standings, ["Results"]),
            *functions_of(async_client, ["AsyncClient"]),
            *functions_of(client, ["Client"]),
            *functions_of(ugo, ugo.__all__),
            *functions_of(ubongo, ubongo.__all__),
        ]
    )
)

NAMES = {function.__qualname__ for function in PUBLIC}


@pytest.mark.parametrize(
    "name", [*MODULES, *(pytest.param(name, marks=pytest.mark.needs_sources) for name in COMPILED)]
)
def test_every_example_of_a_docstring_runs(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed


@pytest.mark.needs_sources
def test_the_public_functions_are_found() -> None:
    assert {
        "play",
        "run",
        "Client.create_match",
        "AsyncClient.create_match",
        "UbongoMethods.build",
        "UgoCard.parse",
        "Results.standing",
        "is_fitting",
        "winner_of",
    } <= NAMES


@pytest.mark.parametrize("function", PUBLIC, ids=lambda each: each.__qualname__)
def test_a_public_function_says_what_it_takes_and_gives(function: Callable[..., Any]) -> None:
    assert not list(faults_of(function))


@pytest.mark.parametrize("shown", [seatwise.run, async_client.AsyncClient, client.Client])
def test_an_example_that_needs_a_server_compiles_and_calls_what_is_there(shown: Any) -> None:
    code = textwrap.dedent(section_of(inspect.getdoc(shown) or "", "Example"))
    compile(code, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    called = re.findall(r"\b(seatwise|client)\.(\w+)\(", code)
    assert called
    assert all(hasattr(seatwise if owner == "seatwise" else shown, name) for owner, name in called)


def faults_of(function: Callable[..., Any]) -> Iterator[str]:
    """Return the faults of its docstring."""
    text = inspect.getdoc(function) or ""
    first = text.partition("\n")[0]
    if not first.endswith("."):
        yield "the first line is no sentence"
    if not text or THIRD_PERSON.match(text.split()[0]):
        yield "the first line is not in the imperative"
    if (elsewhere := re.search(r"\bSee `([\w.]+)`\.", text)) is not None:
        if elsewhere[1] not in NAMES:
            yield f"there is no {elsewhere[1]} to see"
        return
    signature = inspect.signature(function)
    for name in signature.parameters.keys() - {"self", "cls"}:
        if not re.search(rf"^    [*]*{name}: [A-Z`]", section_of(text, "Args"), re.MULTILINE):
            yield f"Args has no {name}"
    if signature.return_annotation not in (None, "None", "Any") and not re.search(
        r"^(Returns|Yields):$|^Return ", text, re.MULTILINE
    ):
        yield "it does not say what it returns"


def section_of(text: str, title: str) -> str:
    """The indented lines under this title; empty if there is none."""
    found = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return found[1] if found else ""


# The test can fail


def test_faults_of_a_docstring_are_found() -> None:
    def stranger(card: int) -> int:
        """Returns it

        Args:
            other: Not there.
        """
        return card

    assert sorted(faults_of(stranger)) == [
        "Args has no card",
        "it does not say what it returns",
        "the first line is no sentence",
        "the first line is not in the imperative",
    ]

    def traveller() -> None:
        """Look elsewhere. See `Client.nowhere`."""

    assert list(faults_of(traveller)) == ["there is no Client.nowhere to see"]
