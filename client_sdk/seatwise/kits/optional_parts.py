"""Looks for packages that are installed beside the SDK."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SEARCH_PACKAGE: Final = "seatwise_fast"
"""The package of the bots that search."""


@cache
def is_search_installed() -> bool:
    """Return whether the compiled rules are here, without loading them."""
    spec = find_spec(SEARCH_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return any(True for folder in folders or () for _ in Path(folder).glob("_ugo_rules*"))
