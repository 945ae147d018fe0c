"""The entries that this process knows to be in a match's journal, kept so that they can be written again."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Sequence

PACKED_FROM = 4_096
"""The number of bytes of entries that are packed together. A smaller number would compress worse; a larger one would leave more unpacked."""

_TAIL_COMPRESSION = 1


class JournalTail:
    """All entries of one match, most of them compressed: they take about a quarter of their size in Redis."""

    __slots__ = ("_packs", "_recent", "_size", "count", "epoch", "owner")

    def __init__(self, epoch: int, owner: str, entries: Sequence[bytes] = ()) -> None:
        self.epoch = epoch
        self.owner = owner
        self.count = 0
        """The number of entries, and so the number of the last one."""
        self._packs: list[tuple[int, bytes]] = []
        self._recent: list[bytes] = []
        self._size = 0
        self.add_entries(entries)

    def add_entries(self, entries: Sequence[bytes]) -> None:
        """Adds the next entries."""
        self._recent += entries
        self.count += len(entries)
        self._size += sum(map(len, entries))
        if self._size > PACKED_FROM:
            packed = zlib.compress(marshal.dumps(self._recent), _TAIL_COMPRESSION)
            self._packs.append((len(self._recent), packed))
            self._recent, self._size = [], 0

    def entries_after(self, seq: int) -> list[bytes]:
        """Returns the entries after that number."""
        found = self._recent
        first = self.count - len(found)
        for count, packed in reversed(self._packs):
            if first <= seq:
                break
            found = marshal.loads(zlib.decompress(packed)) + found
            first -= count
        return found[max(0, seq - first) :]
