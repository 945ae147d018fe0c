"""The rules of the games as HTML, made from docs/rules/ by `make rules`. A page that shows them adds a head and a body."""

from __future__ import annotations

from importlib.resources import files


def read_rules(game: str) -> str:
    """Return the rules of a game as HTML without head and body; "" for a game of which no rules are written here.

    The pictures in it are coloured by the style sheet `drawing.css` of the viewer (`seatwise.replay.viewer_files`).
    """
    page = files("seatwise.rules").joinpath(f"{game}.html")
    return page.read_text(encoding="utf-8") if page.is_file() else ""
