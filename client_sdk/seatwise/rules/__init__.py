"""The rules of the games as HTML, made from docs/rules/ by `docs/rules/build_pages.py`. A page that shows them adds a head and a body."""

from __future__ import annotations

import re
from html import unescape
from importlib.resources import files


def read_rules(game: str) -> str:
    """Return the rules of a game as HTML without head and body; "" for a game of which no rules are written here.

    The pictures in it are coloured by the style sheet `drawing.css` of the viewer (`seatwise.replay.page`).
    """
    page = files("seatwise.rules").joinpath(f"{game}.html")
    return page.read_text(encoding="utf-8") if page.is_file() else ""


def read_rules_text(game: str) -> str:
    """Return the rules of a game as plain text, without the pictures; "" for a game of which no rules are written here."""
    html = re.sub(r"<svg.*?</svg>", "", read_rules(game), flags=re.DOTALL)
    html = re.sub(r"</(td|th)>\s*", " | ", html)
    html = re.sub(r"<li>", "- ", html)
    return re.sub(r"\n\s*\n+", "\n", unescape(re.sub(r"<[^>]+>", "", html))).strip()
