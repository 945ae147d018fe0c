"""The levels of house bots that a game from outside brings: as samples, and as house bots that an operator chooses; and its rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from doubles.hosted_games import Highest, load_leduc, use_game
from hosted.packages import install_package, run_seatwise

import seatwise
from seatwise.samples import sample
from seatwise_server.pages.home_page import render_rules

RULES = """Lay *cards*.

| a | b |
|:--|--:|
| 1 | 2 |

[good](https://example.org) and a<b
"""


class Levelled(Highest):
    """Has two levels, and rules."""

    name = "levelled"
    rules = RULES
    house_bots: ClassVar[dict[str, Any]] = {
        "low": lambda view, moves, chance: moves[0],
        "high": lambda view, moves, chance: moves[-1],
    }


def test_levels_are_samples_of_rising_strength(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kit = use_game(monkeypatch, Levelled)
    assert list(kit.samples) == ["random", "low", "high"]
    out = tmp_path / "records.jsonl"
    seatwise.play(["low", "high"], game="levelled", matches=1, seed=1, records=str(out))
    entries = json.loads(out.read_bytes())["entries"]
    cards: dict[int, list[int]] = {0: [], 1: []}
    for entry in entries:
        if entry["kind"] == "move":
            cards[entry["seat"]].append(entry["move"]["card"])
    assert cards == {0: sorted(cards[0]), 1: sorted(cards[1], reverse=True)}
    assert sample("low", "levelled").__mro__[1] is seatwise.Bot


def test_a_table_of_more_seats_has_more_house_bots_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    kit = use_game(monkeypatch, Levelled)
    names = [each.bot for each in kit.other_house_bots if each.sample == "low"]
    assert names == ["house-levelled-low", "house-levelled-low-2", "house-levelled-low-3"]
    assert kit.house_bots == ()  # an operator chooses them


@pytest.mark.slow
def test_an_operator_may_choose_a_level_of_an_installed_game(tmp_path: Path) -> None:
    source = (Path(sys.modules[load_leduc().__module__].__file__ or "")).read_text()
    install_package(tmp_path, "seatwise_leduc", source, "leduc = seatwise_leduc:Leduc")
    assert "bold" in run_seatwise(tmp_path, "games", "--json").stdout
    told = subprocess.run(
        [sys.executable, "-c", "from seatwise_server.house import house_bots; print(house_bots(['house-leduc-bold'])['leduc'])"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**__import__("os").environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert told.stdout == "('bots/house-leduc-bold/versions/1',)\n", told.stderr


def test_the_rules_of_a_game_are_a_page_without_foreign_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    use_game(monkeypatch, Levelled)
    render_rules.cache_clear()
    page = render_rules("levelled")
    render_rules.cache_clear()
    assert page.startswith("<h1>The rules of levelled</h1>")
    assert "<em>cards</em>" in page
    assert "<td>1</td>" in page
    assert "a&lt;b" in page
    assert 'href="https://example.org"' in page
    for text in ("<img", "style=", "<script"):
        assert text not in page
    assert render_rules("nothing") == ""
