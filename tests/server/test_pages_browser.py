"""The pages in a real browser: accessible in both themes, no wider than the screen, and moving while a match is played."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import House, dealt
from harness.browser import BrowserPage, find_browser, open_browser

if TYPE_CHECKING:
    from harness.table import Chair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(find_browser() is None, reason="needs a browser: install chromium"),
]

AXE = find_spec("axe_playwright_python")
"""It brings the script axe.min.js, and nothing else of it is used."""
FINDINGS = "axe.run().then((found) => found.violations.map((each) => [each.id, each.nodes[0].target.join()]))"
IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
SAID = 'document.querySelector(".sentence")?.textContent ?? ""'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    with open_browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


def address_of(house: House) -> str:
    assert house.server
    return house.server.http_address


async def play_some(house: House) -> list[str]:
    """Plays a match, and returns the URLs of all kinds of pages but leagues and ladders that have something to show."""
    async with dealt(house, rounds=2) as (table, chair, _):
        await table.play_out()
        bot = chair.wire.bot
        return ["/", "/matches", f"/{table.name}", f"/{bot}", "/operators", "/rules/ugo", "/rules/ubongo"]


@pytest.mark.skipif(AXE is None, reason="needs axe: pip install '.[browser]'")
async def test_axe_finds_nothing_on_any_page_in_any_theme(http_house: House, browser: BrowserPage) -> None:
    assert AXE
    assert AXE.origin
    axe = (Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    urls = await play_some(http_house)

    def look_at_all() -> dict[str, object]:
        found = {}
        for url in urls:
            for is_dark in (False, True):
                browser.open(address_of(http_house) + url, 390, is_dark=is_dark)
                browser.wait_for(
                    "document.querySelector('#viewer') === null || document.querySelector('.sentence') !== null"
                )
                browser.ask(f"{axe}; true")
                found[f"{url} {is_dark}"] = browser.ask(FINDINGS)
        return found

    found = await asyncio.to_thread(look_at_all)
    assert {url: each for url, each in found.items() if each} == {}


@pytest.mark.parametrize("width", [390, 1280, 2560])
async def test_no_page_is_wider_than_the_screen_or_breaks_its_policy(
    http_house: House, browser: BrowserPage, width: int
) -> None:
    urls = await play_some(http_house)
    browser.faults.clear()

    def look_at_all() -> list[str]:
        wide = []
        for url in urls:
            browser.open(address_of(http_house) + url, width)
            if browser.ask(IS_TOO_WIDE):
                wide.append(url)
        return wide

    assert await asyncio.to_thread(look_at_all) == []
    assert browser.faults == []


async def test_a_page_follows_a_match_and_then_shows_its_replay(
    http_house: House, browser: BrowserPage
) -> None:
    async with dealt(http_house, rounds=2) as (table, chair, _):
        url = f"{address_of(http_house)}/{table.name}"
        await asyncio.to_thread(browser.open, url)
        await asyncio.to_thread(browser.wait_for, f"({SAID}) !== ''")
        live = "document.querySelector('#viewer').dataset.live"
        assert await asyncio.to_thread(browser.ask, live) == f"/{table.name}/live"
        await watch_one_move(chair, browser)
        await table.play_out()
        await asyncio.to_thread(
            browser.wait_for, "document.querySelector('#viewer')?.dataset.frames !== undefined"
        )
        await asyncio.to_thread(browser.wait_for, f"({SAID}) !== ''")
        browser.press("End")
        assert "The match is over" in await asyncio.to_thread(browser.ask, SAID)


async def watch_one_move(chair: Chair, browser: BrowserPage) -> None:
    """One move, and the page shows it."""
    before = await asyncio.to_thread(browser.ask, SAID)
    await chair.move()
    await asyncio.to_thread(browser.wait_for, f"({SAID}) !== {json.dumps(before)}")


async def test_the_home_page_shows_a_new_match_by_itself(http_house: House, browser: BrowserPage) -> None:
    await asyncio.to_thread(browser.open, f"{address_of(http_house)}/")
    async with dealt(http_house) as (table, _, _):
        link = f"document.querySelector('#live-matches a[href=\"/{table.name}\"]') !== null"
        await asyncio.to_thread(browser.wait_for, link)
        await table.play_out()
