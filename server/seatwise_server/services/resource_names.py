"""Names of resources that a caller chooses: `ladders/summer`, `leagues/1`, `sets/a`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from seatwise_server.refusal import Refusal

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
        """Returns whether the name has the form."""
        return name.startswith(self._prefix) and bool(_ID.fullmatch(name.removeprefix(self._prefix)))

    def check_name(self, name: str, field: str) -> None:
        """Raises `Refusal` INVALID_ARGUMENT, naming the request's field, unless the name has the form."""
        if not self.is_valid(name):
            raise Refusal(
                "INVALID_ARGUMENT",
                f"{field} is {name[:80]!r}; it must be {self._prefix} followed by 1 to 63 of a-z, 0-9 and -",
            )

    async def find_resource(self, name: str, read: Callable[[str], Awaitable[Found | None]]) -> Found:
        """Returns what `read` finds under the name.

        Raises `Refusal` NOT_FOUND if it finds nothing, or if the name has another form.
        """
        found = await read(name) if self.is_valid(name) else None
        if found is None:
            raise self.not_found(name)
        return found

    async def create_resource(
        self, name: str, settings: bytes, create: Callable[[str, bytes], Awaitable[bytes]]
    ) -> None:
        """Creates a resource, or leaves one with the same settings as it is.

        `create` returns the settings that are stored now. Raises `Refusal` ALREADY_EXISTS if these are others.
        """
        if await create(name, settings) != settings:
            raise Refusal(
                "ALREADY_EXISTS",
                f"there is a {self._label} {name} with other settings; choose another name",
            )

    def not_found(self, name: str) -> Refusal:
        """Returns the refusal for a resource that does not exist."""
        return Refusal("NOT_FOUND", f"there is no {self._label} {name[:80]!r}", **{self._key: name[:80]})
