"""The accessibility rules of axe, where its script is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.browser import BrowserPage

AXE: Final = find_spec("axe_playwright_python")
"""It brings the script axe.min.js, and nothing else of it is used."""
WITHOUT_AXE: Final = "needs axe: pip install '.[browser]'"
_FINDINGS: Final = (
    "axe.run().then((found) => found.violations.map((each) => [each.id, each.nodes[0].target.join()]))"
)


def find_violations(browser: BrowserPage) -> Any:
    """Return the rules that the open page breaks, each with the first place."""
    assert AXE
    assert AXE.origin
    script = (Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    browser.ask(f"{script}; true")
    return browser.ask(_FINDINGS)
