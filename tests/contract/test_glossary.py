"""Every word of the glossary is there once, and what it names exists in the code."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| word "))
]
PLACES = sorted({place for row in ROWS for place in re.findall(r"`([\w.]+)`", row[2])})


def find(dotted: str) -> Any:
    """The module, class, method or field of that name; a field of a dataclass or an attribute counts as found."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for name in parts[count:]:
            if not hasattr(found, name) and name in source_of(found):
                return name
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


def source_of(found: Any) -> str:
    module = found if inspect.ismodule(found) else importlib.import_module(found.__module__)
    return Path(module.__file__ or "").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", PLACES)
def test_every_name_in_the_glossary_exists(place: str) -> None:
    assert find(place) is not None


@pytest.mark.needs_sources
def test_a_name_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(AttributeError):
        find("seatwise_referee.match.Match.no_such_name")
    with pytest.raises(ModuleNotFoundError):
        find("no_such_package.thing")


def test_each_word_is_explained_once_and_has_a_place_in_the_code() -> None:
    words = [word.strip() for row in ROWS for word in row[0].split(",")]
    assert len(words) > 80
    assert sorted(set(words)) == sorted(words)
    assert all(re.search(r"`[\w.]+`", row[2]) for row in ROWS)
