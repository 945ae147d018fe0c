"""How many bytes a browser loads to show a page."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.house import House

LARGEST_PAGE: Final = 40_000
"""Packed bytes of a page with all that it loads."""


async def packed_size(house: House, url: str, **headers: str) -> int:
    """The packed bytes of a page, of its files with all that they import, and of the steps that it shows."""
    size, wanted, seen = 0, {url}, set()
    async with house.http() as http:
        while wanted:
            one = wanted.pop()
            seen.add(one)
            answer = await http.get(one, accept_encoding="gzip", **headers)
            assert answer.status == 200, one
            size += len(answer.body)
            packed = answer.headers.get("content-encoding") == "gzip"
            text = (gzip.decompress(answer.body) if packed else answer.body).decode()
            loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', text) + re.findall(
                r'data-frames="([^"]+)"', text
            )
            imported = [f"{one.rpartition('/')[0]}/{each}" for each in re.findall(r'from "\./([^"]+)"', text)]
            wanted |= {*loaded, *imported} - seen
    return size
