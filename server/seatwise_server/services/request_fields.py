"""The fields that requests share: names of resources, pages of lists, and texts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from seatwise_server.play.inbound import LONGEST_REQUEST_ID as LONGEST_REQUEST_ID
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resource_names import unify_owner
from seatwise_server.store.errors import (
    AccessTokenAbsent,
    AccessTokenExists,
    BadPageToken,
    InviteAbsent,
    InviteExists,
)

# Names of resources that a caller chooses: `ladders/summer`, `leagues/1`, `sets/a`.

Found = TypeVar("Found")

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class ResourceName:
    """The form of the names of one kind of resource."""

    def __init__(self, collection: str, label: str, key: str) -> None:
        self._prefix = f"{collection}/"
        self._label = label
        """The word for the resource in the text of a refusal, e.g. "ladder"."""
        self._key = key
        """The key of the name in the metadata of a refusal."""

    def is_valid(self, name: str) -> bool:
        return name.startswith(self._prefix) and bool(_ID.fullmatch(name.removeprefix(self._prefix)))

    def check_name(self, name: str, field: str) -> None:
        """Raise `Refusal` INVALID_ARGUMENT, naming the request's field, unless the name has the form."""
        if not self.is_valid(name):
            why = f"{field} is {name[:80]!r}; it must be {self._prefix} followed by 1 to 63 of a-z, 0-9 and -"
            raise bad_argument(field, why)

    async def find_resource(self, name: str, read: Callable[[str], Awaitable[Found | None]]) -> Found:
        """Return what `read` finds under the name.

        Raises `Refusal` NOT_FOUND if it finds nothing, or if the name has another form.
        """
        found = await read(name) if self.is_valid(name) else None
        if found is None:
            why = f"there is no {self._label} {name[:80]!r}"
            raise Refusal("NOT_FOUND", why, **{self._key: name[:80]})
        return found

    async def create_resource(
        self, name: str, settings: bytes, create: Callable[[str, bytes], Awaitable[bytes]]
    ) -> None:
        """Create a resource, or leave one with the same settings as it is.

        `create` returns the settings that are stored now. Raises `Refusal` ALREADY_EXISTS if these are others.
        """
        if await create(name, settings) != settings:
            why = f"there is a {self._label} {name} with other settings; choose another name"
            raise Refusal("ALREADY_EXISTS", why)


# Page sizes and page tokens, in the same form for every list.

DEFAULT_PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 1000


def page_size(asked: int) -> int:
    """Return the size of a page: 0 asks for the default, and more than the largest asks for the largest.

    Raises `Refusal` below 0.
    """
    if asked < 0:
        message = f"page_size is {asked}; it must be 0 (for {DEFAULT_PAGE_SIZE}) to {LARGEST_PAGE_SIZE}"
        raise bad_argument("page_size", message)
    return min(asked or DEFAULT_PAGE_SIZE, LARGEST_PAGE_SIZE)


def parse_position(token: str, otherwise: int = 0) -> int:
    """Return the position in a log that a page token names, or `otherwise` if there is no token.

    Raises `Refusal` for a token that names no position.
    """
    if not token:
        return otherwise
    if not (token.isascii() and token.isdigit() and len(token) < 18):
        raise bad_page_token()
    return int(token)


async def page_of_names(
    read_names: Callable[[str, int], Awaitable[Sequence[str]]], form: ResourceName, size: int, token: str
) -> tuple[Sequence[str], str]:
    """Return up to `size` names after the token, which is the last name shown, and the next token."""
    size = page_size(size)
    if token and not form.is_valid(token):
        raise bad_page_token()
    names = await read_names(token, size + 1)
    return names[:size], names[size - 1] if len(names) > size else ""


def bad_page_token() -> Refusal:
    return bad_argument("page_token", "page_token is not valid: send the next_page_token of the page before")


@contextmanager
def refusing_store_errors() -> Iterator[None]:
    """Turn errors of the store inside this block into a `Refusal`: NOT_FOUND, ALREADY_EXISTS, or INVALID_ARGUMENT of a page token."""
    try:
        yield
    except (AccessTokenAbsent, InviteAbsent) as absent:
        raise Refusal("NOT_FOUND", str(absent)) from None
    except (AccessTokenExists, InviteExists) as there:
        raise Refusal("ALREADY_EXISTS", str(there)) from None
    except BadPageToken as bad:
        raise bad_argument("page_token", str(bad)) from None


# Limits for texts in requests.


def check_text(field: str, text: str, longest: int, *, least: int = 0) -> None:
    """Raise `Refusal` INVALID_ARGUMENT, naming the field, for a wrong length or an unprintable character.

    A text has `least` to `longest` characters. Others than printable ones could control the terminal that shows
    the text, or change the order in which it is shown.
    """
    if not least <= len(text) <= longest:
        wanted = f"{least} to {longest}" if least else f"at most {longest}"
        raise bad_argument(field, f"{field} has {len(text)} characters; {wanted} are allowed")
    place = next((place for place, letter in enumerate(text, 1) if not letter.isprintable()), 0)
    if place:
        why = f"character {place} of {field} is {text[place - 1]!a}; only printable characters are allowed"
        raise bad_argument(field, why)


def read_owner(field: str, text: str, longest: int, *, least: int = 0) -> str:
    """Return the name of a person or team in its one form. Raises `Refusal` INVALID_ARGUMENT as `check_text`."""
    check_text(field, text, longest, least=least)
    name = unify_owner(text)
    if text and not name:
        raise bad_argument(field, f"{field} has nothing visible in it")
    return name
