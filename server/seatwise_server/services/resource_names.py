"""Names of resources that a caller chooses: `ladders/summer`, `leagues/1`, `sets/a`."""

from __future__ import annotations

import re

from seatwise_server.refusal import Refusal

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

    def not_found(self, name: str) -> Refusal:
        """Returns the refusal for a resource that does not exist."""
        return Refusal("NOT_FOUND", f"there is no {self._label} {name[:80]!r}", **{self._key: name[:80]})
