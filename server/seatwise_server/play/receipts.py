"""Receipts: they prove to a match's owner that its journal has lost entries that a bot was told of.

Each entry has a mark: a keyed hash of the entry and of all earlier entries that every seat may know of. A
receipt is the mark of the last entry that a seat may know of, with a seal that requires the match's key. So a
receipt with a valid seal, whose mark is not in the journal, belongs to an entry that once existed. The number
of the entry would prove less: lost entries are replaced by others, at least by the one about the takeover.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b

MARK_BYTES = 8
SEAL_BYTES = 8

_REJECTED_ENTRY = b'"kind":"rejected"'
"""Part of an entry that only one seat may know of. No text in an entry can contain it, because its quotes would
be escaped.
"""


class Receipts:
    """The receipts of one match, as one owner has them."""

    __slots__ = ("_behind", "_key", "_last", "_marks", "_public")

    def __init__(self, key: bytes, journal: Iterable[bytes] = (), seq: int = 0) -> None:
        self._key = key
        self._marks = bytearray(MARK_BYTES)
        """All marks, one after the other; the first one belongs to no entry."""
        self._public = bytes(MARK_BYTES)
        """The mark of the last entry that every seat may know of."""
        for entry in journal:
            self.add_entry(entry)
        self._behind = max(0, seq + 1 - len(self._marks) // MARK_BYTES)
        """The number of entries up to `seq` that are not known: 0, unless the receipts begin in the middle of a match."""
        self._last = (-1, b"")
        """The entry and the bytes of the last receipt, because several seats need the receipt of the same move."""

    def add_entry(self, entry: bytes) -> None:
        """Adds the next entry of the journal."""
        mark = blake2b(self._public + entry, key=self._key, digest_size=MARK_BYTES).digest()
        self._marks += mark
        if _REJECTED_ENTRY not in entry:
            self._public = mark

    def receipt_of(self, seq: int) -> bytes:
        """Returns a proof that entry `seq` was in the journal. It reveals nothing else, not even the number."""
        if self._last[0] != seq:
            at = max(0, seq - self._behind) * MARK_BYTES
            mark = bytes(self._marks[at : at + MARK_BYTES])
            self._last = (seq, mark + self._seal_mark(mark))
        return self._last[1]

    def prove_loss(self, receipt: bytes) -> bool:
        """Whether the receipt is of an entry that is not in the journal (any more); False for a receipt with a
        wrong seal.
        """
        mark, seal = receipt[:MARK_BYTES], receipt[MARK_BYTES:]
        return hmac.compare_digest(seal, self._seal_mark(mark)) and not self._has_mark(mark)

    def _seal_mark(self, mark: bytes) -> bytes:
        return blake2b(mark, key=self._key, digest_size=SEAL_BYTES, person=b"seal").digest()

    def _has_mark(self, mark: bytes) -> bool:
        at = self._marks.rfind(mark)
        while at > 0 and at % MARK_BYTES:
            at = self._marks.rfind(mark, 0, at + MARK_BYTES - 1)
        return at >= 0
