"""Texts of a server, made fit for a terminal and a log."""

from __future__ import annotations

from typing import Final

LONGEST_SERVER_TEXT: Final = 1000
"""The most characters that are shown of a text of a server."""


def clean_text(text: str, longest: int = LONGEST_SERVER_TEXT) -> str:
    """Return the text on one line, without control characters, and not longer than this: a terminal would obey them.

    Args:
        text: A text of a server.
        longest: The most characters to keep.
    """
    shown = text if len(text) <= longest else f"{text[: longest - 3]}..."
    if shown.isprintable():
        return shown
    return "".join(letter if letter.isprintable() else "?" for letter in shown)
