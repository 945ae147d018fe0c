"""The pages of the rules: they name every rule, and say what the code does; their pictures are those of the viewer."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from shutil import which
from types import ModuleType
from typing import Any

import pytest

from seatwise.kits import KITS
from seatwise.rules import read_rules
from seatwise_referee.games.ubongo import Placement, Touch, UbongoCard, is_fitting, layout_from_json, touch
from seatwise_referee.games.ugo import CARDS, UgoCard, farmers_gained, score_section, winner_of

FOLDER = Path(__file__).parents[2] / "docs" / "rules"
RULES = {"ugo": ("U", 33), "ubongo": ("K", 15)}


def text_of(game: str) -> str:
    return (FOLDER / f"{game}.md").read_text(encoding="utf-8")


def build_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_pages", FOLDER / "build_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("game", RULES)
def test_the_page_of_a_game_names_all_its_rules(game: str) -> None:
    letter, last = RULES[game]
    assert {int(number) for number in re.findall(rf"\b{letter}(\d+)\b", text_of(game))} == set(
        range(1, last + 1)
    )


@pytest.mark.parametrize("game", RULES)
def test_the_page_for_the_server_is_made_of_the_text_and_the_pictures(game: str) -> None:
    page = read_rules(game)
    assert page == build_pages().render_page(game), "run `docs/rules/build_pages.py --draw`"
    assert page.count("<svg ") == len(re.findall(r"!\[.*?\]\(", text_of(game), re.DOTALL)) >= 3
    assert not re.findall(r"<script|<style|style=|<img|\bon\w+=", page)


@pytest.mark.skipif(not which("node"), reason="needs Node to draw the pictures")
def test_the_pictures_are_drawn_by_the_viewer() -> None:
    drawn = build_pages().draw_pictures()
    assert sorted(drawn) == sorted(path.name for path in FOLDER.glob("*.svg"))
    for name, svg in drawn.items():
        assert svg == (FOLDER / name).read_text(encoding="utf-8"), (
            f"{name}: run `docs/rules/build_pages.py --draw`"
        )


def test_a_game_without_rules_has_no_page() -> None:
    assert read_rules("hearts") == ""
    assert set(RULES) <= set(KITS)


# What the pages say is so


def table_under(heading: str, game: str) -> list[list[str]]:
    [rows] = re.findall(rf"^## {heading}$.*?^\|---.*?$\n(.*?)^$", text_of(game), re.MULTILINE | re.DOTALL)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()]


def test_the_table_of_farmers_is_right() -> None:
    seen = set()
    for values, *told in table_under("Farmers", "ugo"):
        for value in map(int, re.findall(r"\d", values)):
            seen.add(value)
            card = UgoCard.parse(f"R{value}")
            assert farmers_gained((card, UgoCard.parse("K0")), 0)[0] == int(told[0])
            for other, expected in (("R8", told[1]), ("B8", told[2])):
                if other != str(card):
                    assert farmers_gained((UgoCard.parse(other), card), 0)[1] == int(expected)
    assert seen == {card.value for card in CARDS}


def test_the_tricks_of_the_picture_are_won_as_it_says() -> None:
    [told] = re.findall(r"!\[Three tricks\. (.*?)\]", text_of("ugo"), re.DOTALL)
    tricks = re.findall(r"((?:[RBGYK]\d(?:, )?)+): ([RBGYK]\d) wins", told)
    assert len(tricks) == 3
    for cards, winner in tricks:
        played = list(map(UgoCard.parse, cards.split(", ")))
        assert str(played[winner_of(played)]) == winner


def test_the_kingdom_of_the_picture_scores_what_it_says() -> None:
    drawing = (FOLDER / "pictures.js").read_text(encoding="utf-8")
    [(sections, farmers)] = re.findall(r"KINGDOM = \{ sections: (\[.*?\]), farmers: (\d) \}", drawing)
    [scores] = re.findall(r"drawUgoKingdom\(KINGDOM, \d+, \d+, (\[.*?\])\)", drawing)
    assert int(farmers) == 5
    tops: Any = [stack[-1] for stack in json.loads(sections)]
    standing = (0, 0, 2, 3, 0)
    own = [score_section(place, UgoCard.parse(top), standing[place]) for place, top in enumerate(tops)]
    assert own == json.loads(scores)
    assert f"7 + 0 + 5 + 6 - 20 = {sum(own)}" in text_of("ugo")


def test_the_contacts_of_the_pictures_are_as_they_say() -> None:
    drawing = (FOLDER / "pictures.js").read_text(encoding="utf-8")
    pairs = re.findall(r'drawPair\(\d+, (\[.*?\]), "([A-H]{6})", "(wrong)?"\)', drawing)
    assert [kind for _, _, kind in pairs] == [""] * 3 + ["wrong"] * 4
    one, other = UbongoCard(0), UbongoCard(1)
    for place, symbols, kind in pairs:
        found = touch(Placement(one, 0, 0, 0), "ABCDEF", Placement(other, *json.loads(place)), symbols)
        assert found is (Touch.WRONG if kind else Touch.FITTING)


def test_the_layout_of_the_picture_fits() -> None:
    example = json.loads((FOLDER / "example_layout.json").read_text(encoding="utf-8"))
    layout = layout_from_json(example["layout"])
    assert len(layout) == 7
    assert is_fitting(layout, {UbongoCard.parse(card): symbols for card, symbols in example["sides"]})
