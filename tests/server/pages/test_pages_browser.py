"""The pages in a real browser: accessible in both themes, no wider than the screen, and moving while a match is played."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from harness import House, dealt
from harness.axe import AXE, WITHOUT_AXE, find_violations
from harness.browser import BrowserPage, find_browser, open_browser
from harness.ladder import Rung
from seasons.one_season import league_of

from seatwise.async_client import AsyncClient
from seatwise_server.league.settings import Entrant

if TYPE_CHECKING:
    from harness.table import Chair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(find_browser() is None, reason="needs a browser: install chromium"),
]

IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
STEPS = 100
STEP_MS = """(async () => {
  const times = [], step = document.querySelector("[aria-label='One step on']");
  for (let count = 0; count < STEPS; count++) {
    const before = performance.now();
    step.click();
    document.body.getBoundingClientRect();
    times.push(performance.now() - before);
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  }
  return times.sort((one, other) => one - other)[STEPS / 2];
})()""".replace("STEPS", str(STEPS))
"""The median time of a step, with its layout. Each of them is painted."""
PAINT_BUDGET_MS, STEP_BUDGET_MS = 200, 16
LOADS = 5
STEP_IS = "document.documentElement.dataset.step === '{}'"
OPENED = "document.querySelector('.opened')"
SAID = 'document.querySelector(".sentence")?.textContent ?? ""'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    with open_browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


def address_of(house: House) -> str:
    assert house.server
    return house.server.http_address


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def urls(module_http_house: House) -> list[str]:
    """Pages of all kinds, which have something to show."""
    house = module_http_house
    rung = Rung(house, "ladders/looked")
    await rung.create()
    bots = [await house.bot() for _ in range(4)]
    entrants = tuple(Entrant(f"entrant{number}", bot.bot) for number, bot in enumerate(bots))
    settings = json.dumps(league_of(entrants=entrants).to_published_json())
    async with AsyncClient(house.address, house.admin.token) as admin:
        await admin.create_league("leagues/looked", settings)
    async with dealt(house, rounds=2) as (table, chair, _):
        await table.play_out()
        bot = chair.wire.bot
    pages = ["/", "/matches", f"/{table.name}", f"/{bot}", "/operators", "/rules/ugo", "/rules/ubongo"]
    return [*pages, "/ladders/looked", "/leagues/looked", "/matches/none", "/show?ladder=looked"]


@pytest.mark.skipif(AXE is None, reason=WITHOUT_AXE)
async def test_axe_finds_nothing_on_any_page_in_any_theme(
    http_house: House, browser: BrowserPage, urls: list[str]
) -> None:
    def look_at_all() -> dict[str, object]:
        found = {}
        for url in urls:
            for is_dark in (False, True):
                browser.open(address_of(http_house) + url, 390, is_dark=is_dark)
                browser.wait_for(
                    "document.querySelector('#viewer') === null || document.querySelector('.sentence') !== null"
                )
                found[f"{url} {is_dark}"] = find_violations(browser)
        return found

    found = await asyncio.to_thread(look_at_all)
    assert {url: each for url, each in found.items() if each} == {}


@pytest.mark.parametrize("width", [390, 1280, 3840])
async def test_no_page_is_wider_than_the_screen_or_breaks_its_policy(
    http_house: House, browser: BrowserPage, width: int, urls: list[str]
) -> None:
    browser.faults.clear()

    def look_at_all() -> list[str]:
        wide = []
        for url in urls:
            browser.open(address_of(http_house) + url, width)
            if browser.ask(IS_TOO_WIDE):
                wide.append(url)
        return wide

    assert await asyncio.to_thread(look_at_all) == []
    assert [each for each in browser.faults if "404" not in each] == []


async def test_a_match_page_is_painted_and_stepped_through_quickly(
    http_house: House, browser: BrowserPage
) -> None:
    """Prints the figures. The budgets are those of a quiet machine, so a busy one is given ten times as long."""
    async with dealt(http_house, rounds=4) as (table, _, _):
        await table.play_out()

    def look() -> tuple[float, float, float]:
        paints, url = [], f"{address_of(http_house)}/{table.name}"
        for _ in range(LOADS):
            browser.open(url)
            browser.wait_for(f"({SAID}) !== '' && performance.getEntriesByType('paint').length > 1")
            paints.append(browser.ask(FIRST_PAINT))
        before_ms = browser.used_cpu_ms()
        step_ms = browser.ask(STEP_MS)
        return min(paints), step_ms, (browser.used_cpu_ms() - before_ms) / STEPS

    paint_ms, step_ms, cpu_ms = await asyncio.to_thread(look)
    print(
        f"first paint {paint_ms:.0f} ms of {PAINT_BUDGET_MS}, a step {step_ms:.1f} ms of {STEP_BUDGET_MS}, "
        f"and {cpu_ms:.1f} ms of CPU time with its paint"
    )
    assert paint_ms < 10 * PAINT_BUDGET_MS
    assert step_ms < 10 * STEP_BUDGET_MS
    assert cpu_ms < 4 * STEP_BUDGET_MS


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
        stops = "document.querySelectorAll('.moves button[tabindex=\"0\"]').length"
        assert await asyncio.to_thread(browser.ask, stops) == 1


async def test_a_visitor_that_comes_late_steps_back_to_the_deal_and_sees_the_hands_that_are_open(
    http_house: House, browser: BrowserPage
) -> None:
    async with dealt(http_house, rounds=2) as (table, chair, _):
        browser.faults.clear()
        await chair.move()
        await asyncio.to_thread(browser.open, f"{address_of(http_house)}/{table.name}")
        await asyncio.to_thread(browser.wait_for, STEP_IS.format(1))
        await asyncio.to_thread(browser.press, "Home")
        await asyncio.to_thread(browser.wait_for, STEP_IS.format(0))
        assert await asyncio.to_thread(browser.ask, SAID) == "Round 1 is dealt."
        assert await asyncio.to_thread(browser.ask, f"{OPENED}.hidden")
        await asyncio.to_thread(browser.press, "End")
        playing = asyncio.create_task(table.play_out())
        await asyncio.to_thread(browser.wait_for, f"!{OPENED}.hidden")
        assert "round" in await asyncio.to_thread(browser.ask, f"{OPENED}.textContent")
        await playing
    assert browser.faults == []


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
