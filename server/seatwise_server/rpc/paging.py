"""Page sizes and page tokens, the same in every list."""

from __future__ import annotations

from seatwise_server.refusal import Refusal

USUAL = 50
MOST = 1000


def page_size(asked: int) -> int:
    """0 means the usual size, more than the most means the most; `Refusal` for less than 0."""
    if asked < 0:
        raise Refusal("INVALID_ARGUMENT", f"page_size is {asked}; it must be 0 (for {USUAL}) to {MOST}")
    return min(asked or USUAL, MOST)


def place_of(token: str, otherwise: int = 0) -> int:
    """The place that a page token names, `otherwise` where there is none; `Refusal` for what names no place."""
    if not token:
        return otherwise
    if not (token.isascii() and token.isdigit() and len(token) < 15):
        raise strange_token()
    return int(token)


def strange_token() -> Refusal:
    """For a page token that no list has given out."""
    return Refusal("INVALID_ARGUMENT", "the page token is not one that this list gave out")
