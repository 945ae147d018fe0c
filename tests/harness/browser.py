"""A real browser, for tests of pages: Chromium without a window, driven by its DevTools protocol."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import which
from typing import Any

from websockets.sync.client import ClientConnection, connect

START_S = 60.0
ANSWER_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")

KEY_CODES = {
    "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9, "Enter": 13,
    " ": 32, "ArrowUp": 38, "ArrowDown": 40, "Delete": 46,
}  # fmt: skip


def find_browser() -> str | None:
    """Return the program; `None` where there is none."""
    return next((found for name in NAMES if (found := which(name))), None)


class BrowserPage:
    """One page of a running browser."""

    def __init__(self, link: ClientConnection) -> None:
        self._link = link
        self._numbers = count(1)
        self.faults: list[str] = []
        """What the page has reported: exceptions, and what its policy has blocked."""
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command, and return its result."""
        number = next(self._numbers)
        self._link.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._link.recv(timeout=ANSWER_S))
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]
            self._note_event(told)

    def _note_event(self, told: dict[str, Any]) -> None:
        if told["method"] == "Runtime.exceptionThrown":
            self.faults.append(str(told["params"]["exceptionDetails"]))
        elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
            self.faults.append(told["params"]["entry"]["text"])

    def open(self, url: str, width: int = 1280, height: int = 900, *, is_dark: bool = False) -> None:
        """Open a page on a screen of this size, and wait until it is loaded."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.use_theme(is_dark=is_dark)
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def use_theme(self, *, is_dark: bool) -> None:
        """Show the page as to a person who prefers a dark or a light one."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def wait_for(self, condition: str) -> None:
        """Wait until this expression is true."""
        deadline = time.monotonic() + ANSWER_S
        while not self.ask(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def ask(self, expression: str) -> Any:
        """Return the value of an expression in the page, after its promise."""
        told = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def used_cpu_ms(self) -> float:
        """Return the CPU time that the page has used since it was first asked for it: scripts, layout and paint."""
        self.send("Performance.enable", timeDomain="threadTicks")
        told = self.send("Performance.getMetrics")["metrics"]
        return float(1000 * next(each["value"] for each in told if each["name"] == "TaskDuration"))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with the mouse from one point of the window to another."""
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        kinds = ("mouseMoved", "mousePressed", "mouseMoved", "mouseMoved", "mouseReleased")
        for kind, (x, y) in zip(kinds, (start, start, middle, end, end), strict=True):
            button = "none" if kind == "mouseMoved" and (x, y) == start else "left"
            self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button=button,
                clickCount=1,
                buttons=int(button == "left"),
            )

    def drag_by_touch(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with a finger from one point of the window to another."""
        middle = {"x": (start[0] + end[0]) / 2, "y": (start[1] + end[1]) / 2}
        for kind, points in (
            ("touchStart", [{"x": start[0], "y": start[1]}]),
            ("touchMove", [middle]),
            ("touchMove", [{"x": end[0], "y": end[1]}]),
            ("touchEnd", []),
        ):
            self.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = KEY_CODES.get(key, ord(key[0].upper()))
        text = {"text": "\r" if key == "Enter" else key} if key == "Enter" or len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)


@contextmanager
def open_browser(folder: Path) -> Iterator[BrowserPage]:
    """Start a browser whose files are in this folder, and stop it at the end."""
    program = find_browser()
    assert program is not None
    process = subprocess.Popen(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
         "--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with connect(_find_page(process, folder), max_size=None, open_timeout=START_S) as link:
            yield BrowserPage(link)
    finally:
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _find_page(process: subprocess.Popen[bytes], folder: Path) -> str:
    """Return the address of the page, when the browser has written its port."""
    from urllib.request import urlopen

    written, deadline = folder / "DevToolsActivePort", time.monotonic() + START_S
    while not written.is_file() or (
        not written.read_text().endswith("\n") and len(written.read_text().split()) < 2
    ):
        assert process.poll() is None, "the browser has ended"
        assert time.monotonic() < deadline, "the browser does not start"
        time.sleep(0.05)
    port = written.read_text().split()[0]
    while True:
        with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=ANSWER_S) as answer:
            pages = [each for each in json.load(answer) if each["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"])
        assert time.monotonic() < deadline, "the browser has no page"
        time.sleep(0.05)
