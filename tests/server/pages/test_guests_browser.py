"""The seat of a guest in a real browser: by keys alone, by mouse and by touch, against house bots."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory
from harness.axe import AXE, find_violations
from harness.browser import BrowserPage, find_browser, open_browser
from harness.fleet import fleet

from seatwise_server.config import HttpSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(find_browser() is None, reason="needs a browser: install chromium"),
]

SAID = 'document.querySelector(".sentence")?.textContent ?? ""'
ON_CARD = "document.activeElement.matches('.tile-button:not(:disabled)')"
IS_AT_SEAT = "location.pathname.startsWith('/seats/')"
MOST_MOVES = 400
MOST_TABS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    with open_browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest_house() -> AsyncIterator[House]:
    """A server with guests and its own house bots."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        settings = {"http": HttpSettings(port=0, guests=9), "guests": 9, "ws_port": 0, "house_bots": True}
        async with house_in(Path(folder), **settings) as house:
            yield house


def take_seat(browser: BrowserPage, house: House, game: str, width: int = 1280) -> None:
    """Goes from the home page to a seat by keys alone, and waits for the cards."""
    assert house.server
    take_seat_at(browser, house.server.http_address, game, width)


def take_seat_at(browser: BrowserPage, address: str, game: str, width: int = 1280) -> None:
    """The same at the server with this address."""
    browser.faults.clear()
    browser.open(f"{address}/", width)
    press_until(browser, f"document.activeElement.value === {json.dumps(game)}")
    browser.press("Enter")
    browser.wait_for(IS_AT_SEAT)
    browser.wait_for(f"({SAID}) !== '' && !({SAID}).startsWith('The page waits')")


def check_both_themes(browser: BrowserPage) -> None:
    """Without axe there is nothing to check."""
    for is_dark in (True, False) if AXE else ():
        browser.use_theme(is_dark=is_dark)
        assert find_violations(browser) == []


def press_until(browser: BrowserPage, condition: str, most: int = MOST_TABS) -> None:
    for _ in range(most):
        if browser.ask(condition):
            return
        browser.press("Tab")
    if not browser.ask(condition):
        raise AssertionError(f"no key leads to {condition}")


def play_by_keys(browser: BrowserPage) -> int:
    """Plays the first card that may be played until the match is over, and returns how many moves that took."""
    asked, over = (
        f"(/^Y|^The match is/.test({SAID}) || !({IS_AT_SEAT}))",
        f"!({IS_AT_SEAT}) || ({SAID}).startsWith('The match is')",
    )
    for move in range(MOST_MOVES):
        browser.wait_for(f"document.readyState === 'complete' && {asked}")
        tabs = (
            0 if move else MOST_TABS
        )  # only the first card needs to be looked for: the focus stays in the hand
        if browser.ask(over):
            return move
        press_until(browser, f"({ON_CARD}) || ({over})", most=tabs)
        browser.press("Enter")
    raise AssertionError("the match does not end")


async def test_a_person_plays_ugo_to_the_end_by_keys_alone(guest_house: House, browser: BrowserPage) -> None:
    def play() -> int:
        take_seat(browser, guest_house, "ugo")
        check_both_themes(browser)
        return play_by_keys(browser)

    assert await asyncio.to_thread(play) > 30
    await asyncio.to_thread(browser.wait_for, "location.pathname.startsWith('/matches/')")
    text = "document.body.textContent"
    await asyncio.to_thread(browser.wait_for, f"{text}.includes('the winner first')")
    assert not await asyncio.to_thread(browser.ask, f"/gave up|ran out|forfeited|resigned/.test({text})")
    assert browser.faults == []


async def test_a_guest_plays_at_one_of_several_referees_by_any_name_of_the_host(browser: BrowserPage) -> None:
    def play(address: str) -> None:
        take_seat_at(browser, address, "ugo")
        press_until(browser, "document.activeElement.textContent === 'Resign'")
        browser.press("Enter")
        browser.press("Enter")
        browser.wait_for("location.pathname.startsWith('/matches/')")

    front = ("--referees", "2", "--guests", "3", "--ws-port", "0", "--http-port", "0")
    async with fleet(referees=0, front=front) as (ships, _):
        told = [each["http_address"] for each in ships.processes[0].log if each["event"] == "server_started"]
        [address] = filter(None, told)
        for host in ("127.0.0.1", "localhost"):
            await asyncio.to_thread(play, address.replace("127.0.0.1", host))
            assert browser.faults == []


CARD = "document.querySelectorAll('[data-card]')"
LAID = f"[...{CARD}].filter((each) => !each.hasAttribute('transform')).length"


def centre_of(browser: BrowserPage, selector: str) -> tuple[float, float]:
    box = browser.ask(f"(({selector}).getBoundingClientRect()).toJSON()")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def test_ubongo_is_played_by_keys_by_mouse_and_by_touch(
    guest_house: House, browser: BrowserPage
) -> None:
    def play() -> list[int]:
        counts = []
        take_seat(browser, guest_house, "ubongo", 800)
        browser.ask("document.querySelector('.build').scrollIntoView(); true")
        press_until(browser, "document.activeElement.matches('[data-card]')")
        for key in ("Enter", "ArrowRight", "ArrowDown", "r"):
            browser.press(key)
        check_both_themes(browser)
        counts.append(browser.ask(LAID))
        assert "turned by 90 degrees" in browser.ask("document.activeElement.getAttribute('aria-label')")
        board = centre_of(browser, "document.querySelector('.grid')")
        browser.drag(centre_of(browser, f"{CARD}[4]"), (board[0] + 60, board[1]))
        counts.append(browser.ask(LAID))
        browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
        browser.drag_by_touch(centre_of(browser, f"{CARD}[5]"), (board[0] - 60, board[1] + 20))
        browser.send("Emulation.setTouchEmulationEnabled", enabled=False)
        counts.append(browser.ask(LAID))
        press_until(browser, "document.activeElement.textContent.startsWith('Agree to end')")
        browser.press("Enter")
        browser.press("Enter")
        browser.press("Enter")
        browser.wait_for("document.querySelector('[aria-pressed=true]') !== null")
        press_until(browser, "document.activeElement.textContent === 'Resign'")
        browser.press("Enter")
        browser.press("Enter")
        browser.wait_for("location.pathname.startsWith('/matches/')")
        return counts

    assert await asyncio.to_thread(play) == [1, 2, 3]
    assert browser.faults == []
