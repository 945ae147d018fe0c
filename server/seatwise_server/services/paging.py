"""Page sizes and page tokens, in the same form for every list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from seatwise_server.refusal import Refusal
from seatwise_server.services.resource_names import ResourceName

DEFAULT_PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 1000


def page_size(asked: int) -> int:
    """Returns the size of a page: 0 asks for the default, and more than the largest asks for the largest.

    Raises `Refusal` below 0.
    """
    if asked < 0:
        message = f"page_size is {asked}; it must be 0 (for {DEFAULT_PAGE_SIZE}) to {LARGEST_PAGE_SIZE}"
        raise Refusal("INVALID_ARGUMENT", message)
    return min(asked or DEFAULT_PAGE_SIZE, LARGEST_PAGE_SIZE)


def parse_position(token: str, otherwise: int = 0) -> int:
    """Returns the position in a log that a page token names, or `otherwise` if there is no token.

    Raises `Refusal` for a token that names no position.
    """
    if not token:
        return otherwise
    if not (token.isascii() and token.isdigit() and len(token) < 15):
        raise bad_page_token()
    return int(token)


async def page_of_names(
    read_names: Callable[[str, int], Awaitable[Sequence[str]]], form: ResourceName, size: int, token: str
) -> tuple[Sequence[str], str]:
    """Returns up to `size` names after the token, which is the last name shown, and the next token."""
    size = page_size(size)
    if token and not form.is_valid(token):
        raise bad_page_token()
    names = await read_names(token, size + 1)
    return names[:size], names[size - 1] if len(names) > size else ""


def bad_page_token() -> Refusal:
    """Returns the refusal of a page token that no list has returned."""
    return Refusal("INVALID_ARGUMENT", "page_token is not valid: send the next_page_token of the page before")
