"""The page of a replay in a real browser: keys, links, viewpoints, screens of any width. Skipped where there is no browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.hosted_games import Highest, use_game
from harness.axe import AXE, find_violations
from harness.browser import BrowserPage, find_browser, open_browser
from matches.race_scenes import RACES
from matches.scenes import TURNS, smooth

import seatwise
from seatwise.replay import MatchReplay, read_replay
from seatwise.replay.page import render_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="needs a browser: install chromium"),
]

SAID = 'document.querySelector(".sentence").textContent'
SHOWN = 'document.querySelector("#match").textContent'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    with open_browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="module")
def replay() -> MatchReplay:
    return read_replay(TURNS["smooth"](3, 2).line())


def write_page(folder: Path, replay: MatchReplay) -> str:
    path = folder / "match.html"
    path.write_text(render_page(replay), encoding="utf-8")
    return path.as_uri()


def test_a_match_is_stepped_through_by_keys_alone(
    browser: BrowserPage, replay: MatchReplay, tmp_path: Path
) -> None:
    browser.open(write_page(tmp_path, replay))
    frames, last = replay.frames, len(replay.frames) - 1
    second = next(step for step, frame in enumerate(frames) if frame.kind == "round")
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("PageDown", second), ("PageUp", 0),
                      ("End", last), ("ArrowRight", last), ("Home", 0)):  # fmt: skip
        browser.press(key)
        assert browser.ask(SAID) == frames[step].says
        assert browser.ask('document.querySelector("[aria-current=step]").textContent').startswith(
            frames[step].says
        )
    browser.press("ArrowRight")
    browser.wait_for('location.hash === "#step=1"')
    assert browser.faults == []


def test_play_runs_on_and_stops(browser: BrowserPage, replay: MatchReplay, tmp_path: Path) -> None:
    browser.open(write_page(tmp_path, replay))
    browser.press(" ")
    browser.wait_for("Number(document.documentElement.dataset.step) >= 2")
    browser.press(" ")
    assert browser.ask('document.querySelector(".play").textContent') == "Play"


def test_a_link_shows_its_step_from_its_viewpoint(
    browser: BrowserPage, replay: MatchReplay, tmp_path: Path
) -> None:
    frame = replay.frames[4]
    hands: Any = [own["hand"] for own in frame.own]  # type: ignore[index,call-overload]
    browser.open(f"{write_page(tmp_path, replay)}#step=4&see=1")
    assert browser.ask(SAID) == frame.says
    titles = browser.ask(
        '[...document.querySelectorAll("svg.drawn")].map((each) => each.getAttribute("aria-label")).join()'
    )
    assert " ".join(hands[1]) in titles
    assert " ".join(hands[0]) not in titles
    assert browser.ask('document.querySelectorAll(".times:not(:empty)").length') == 1
    browser.press("v")  # nothing has the focus, and a lone letter may come from speech input
    assert browser.ask('document.querySelectorAll(".times:not(:empty)").length') == 1
    browser.ask('document.querySelector(".play").focus()')
    browser.press("v")
    browser.wait_for('location.hash === "#step=4&see=2"')
    assert browser.ask('document.querySelectorAll(".times:not(:empty)").length') == 1
    browser.press("v")
    browser.wait_for('location.hash === "#step=4"')
    assert browser.ask('document.querySelectorAll(".times:not(:empty)").length') == 3


SCREENS = ((390, 844), (768, 1024), (1280, 800), (1920, 1080))
LOWEST_BOARD = "Math.max(...[...document.querySelectorAll('.boards section')].map((each) => each.getBoundingClientRect().bottom))"


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("scene", ["four_rounds", "eventful_race"])
def test_a_match_opens_at_its_decisive_moment_with_the_boards_of_all_seats_above_the_bar(
    browser: BrowserPage, tmp_path: Path, screen: tuple[int, int], scene: str
) -> None:
    match = smooth(4, 4) if scene == "four_rounds" else RACES[scene]()
    replay = read_replay(match.line())
    browser.open(write_page(tmp_path, replay), *screen)
    assert browser.ask(SAID) == replay.frames[replay.decisive_step].says
    bar = browser.ask("document.querySelector('div.bar').getBoundingClientRect().top")
    assert browser.ask(LOWEST_BOARD) <= bar + 1 <= screen[1]


IS_LISTED = """(() => {
  const list = document.querySelector(".moves").getBoundingClientRect();
  const move = document.querySelector("[aria-current=step]").getBoundingClientRect();
  return move.top >= list.top && move.bottom <= list.bottom;
})()"""
"""Whether the list of moves shows the move of this step."""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_list_of_moves_shows_the_step_and_the_options_link_to_it(
    browser: BrowserPage, replay: MatchReplay, tmp_path: Path, width: int
) -> None:
    step = len(replay.frames) // 2
    browser.open(f"{write_page(tmp_path, replay)}#step={step}&see=1", width)
    assert browser.ask(IS_LISTED)
    browser.press("ArrowLeft")
    assert browser.ask(IS_LISTED)
    link = 'document.querySelector(".options a").getAttribute("href")'
    assert browser.ask(link) == f"#step={step - 1}&see=1"


@pytest.mark.parametrize("hash_", ["#step=9999", "#step=-3", "#step=x&see=99", "#", "#see=constructor"])
def test_a_broken_link_shows_the_match_all_the_same(
    browser: BrowserPage, replay: MatchReplay, tmp_path: Path, hash_: str
) -> None:
    browser.open(write_page(tmp_path, replay) + hash_)
    shown = (0, replay.decisive_step, -1)
    assert browser.ask(SAID) in {replay.frames[step].says for step in shown}
    assert browser.faults == []


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("scene", ["eventful", "eventful_race"])
def test_nothing_is_wider_than_the_screen(
    browser: BrowserPage, tmp_path: Path, width: int, scene: str
) -> None:
    match = ({**TURNS, **RACES})[scene]()
    url = write_page(tmp_path, read_replay(match.line()))
    browser.open(url, width)
    for _ in range(12):
        browser.press("ArrowRight")
        assert browser.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    browser.press("End")
    assert browser.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.faults == []


def test_the_rest_of_the_page_keeps_its_keys_and_its_links(
    browser: BrowserPage, replay: MatchReplay, tmp_path: Path
) -> None:
    browser.open(f"{write_page(tmp_path, replay)}#step=4")
    browser.ask('document.querySelector(".wide").focus()')
    browser.press("ArrowRight")
    assert browser.ask(SAID) == replay.frames[4].says
    browser.ask('location.hash = "#match"')
    browser.wait_for('location.hash === "#match"')
    assert browser.ask(SAID) == replay.frames[4].says
    browser.ask('location.hash = "#step=7"')
    browser.wait_for(f"{SAID} === {json.dumps(replay.frames[7].says)}")


def test_the_name_of_a_bot_stays_text(browser: BrowserPage, replay: MatchReplay, tmp_path: Path) -> None:
    name = "<img src=x onerror=document.title='gone'>"
    browser.open(write_page(tmp_path, replace(replay, bots=(f"bots/{name}", *replay.bots[1:]))))
    assert name in browser.ask(SHOWN)
    assert browser.ask('document.querySelectorAll("img").length') == 0
    assert browser.ask("document.title") != "gone"


WALK = """(() => {
  const slider = document.querySelector("input[type=range]"), last = Number(slider.max);
  const tell = (node) => node.nodeType === Node.TEXT_NODE ? node.data : [
    node.localName, ...[...node.attributes].filter(({ value }) => value).map(({ name, value }) => `${name}=${value}`).sort(),
    ...[...node.childNodes].map(tell)].join("|");
  const drawn = (step) => {
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    return tell(document.querySelector(".stage"));
  };
  const steps = Array.from({ length: last + 1 }, (_, step) => step);
  const forwards = steps.map(drawn);
  const backwards = steps.toReversed().map(drawn).toReversed();
  const jumping = steps.map((step) => (drawn(last - step), drawn(step)));
  return steps.filter((step) => forwards[step] !== backwards[step] || forwards[step] !== jumping[step]);
})()"""
"""The steps that look otherwise where one came from another step: a drawing only changes what differs."""


@pytest.mark.parametrize("scene", ["eventful", "eventful_race", "smooth", "resigned"])
def test_a_step_looks_the_same_from_wherever_one_comes(
    browser: BrowserPage, tmp_path: Path, scene: str
) -> None:
    match = ({**TURNS, **RACES})[scene]()
    browser.open(write_page(tmp_path, read_replay(match.line())))
    assert browser.ask(WALK) == []
    assert browser.faults == []


class Drawn(Highest):
    """Draws all that a drawing may have."""

    name = "drawn"

    def draw(self, view: Any, seat: int | None) -> Any:  # noqa: ARG002
        cards = [{"text": str(card), "colour": "red", "marked": True} for card in view["played"]]
        pieces = [{"row": 2, "column": 18, "text": "X<b>", "colour": "blue", "owner": 1}]
        owned = [{"zone": "Hand", "owner": each, "cards": [{"face": "down"}] * 6} for each in (0, 1)]
        points = [{"counter": "Points", "owner": each, "value": len(cards) * each} for each in (0, 1)]
        board = {"board": "Board", "rows": 19, "columns": 19, "pieces": pieces}
        return [
            {"zone": "Played", "cards": cards, "layout": "stack"},
            {"text": "word " * 40},
            board,
            *owned,
            *points,
        ]


@pytest.mark.parametrize(("width", "is_dark"), [(390, False), (1280, True)])
def test_a_game_from_outside_is_drawn_as_it_says(
    browser: BrowserPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int, is_dark: bool
) -> None:
    use_game(monkeypatch, Drawn)
    out = tmp_path / "records.jsonl"
    seatwise.play(["random", "random"], game="drawn", matches=1, seed=1, records=str(out))
    browser.open(write_page(tmp_path, read_replay(out.read_bytes())), width, is_dark=is_dark)
    browser.press("End")
    table, *seats = browser.ask(
        '[...document.querySelectorAll("#match svg[role=img]")].map((each) => each.getAttribute("aria-label"))'
    )
    assert "X<b> in row 3, column 19" in table
    assert "(marked)" in table
    assert [each.count("face down") for each in seats] == [6, 6]
    assert "points" in browser.ask('document.querySelector(".boards .points").textContent')
    assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
    assert browser.ask('document.querySelectorAll("#match b").length') <= 2  # of turns alone
    assert browser.faults == []
    if AXE:
        assert find_violations(browser) == []
