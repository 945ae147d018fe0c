"""Page sizes, the same in every list."""

from __future__ import annotations

from seatwise_server.refusal import Refusal

USUAL = 50
MOST = 1000


def page_size(asked: int) -> int:
    """0 means the usual size, more than the most means the most; `Refusal` for less than 0."""
    if asked < 0:
        raise Refusal("INVALID_ARGUMENT", f"page_size is {asked}; it must be 0 (for {USUAL}) to {MOST}")
    return min(asked or USUAL, MOST)
