"""What proves to a match's owner that its journal has lost what a bot was told.

Each entry has a mark: a keyed hash of it and of all before it that every seat may know of. A receipt is the mark of the
last entry that a seat may know of, under a seal that nobody can make without the match's key. So one that is sealed, and
whose mark the journal does not have, is of an entry that was there once. Its place alone would prove less: where entries
were lost, others stand by now, if only that the match was taken over.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b

MARK_BYTES = 8
SEAL_BYTES = 8

_REJECTED = b'"kind":"rejected"'
"""In an entry that one seat alone may know of. No text in an entry can look so: its quotes would be escaped."""


class Receipts:
    """Of one match, as one owner has it."""

    __slots__ = ("_behind", "_key", "_last", "_marks", "_public")

    def __init__(self, key: bytes, journal: Iterable[bytes] = (), seq: int = 0) -> None:
        self._key = key
        self._marks = bytearray(MARK_BYTES)
        """One after the other; the first is of no entry at all."""
        self._public = bytes(MARK_BYTES)
        """Of the last entry that every seat may know of."""
        for entry in journal:
            self.add_entry(entry)
        self._behind = max(0, seq + 1 - len(self._marks) // MARK_BYTES)
        """Entries up to `seq` that are not known; none, unless a match is begun in its midst."""
        self._last = (-1, b"")
        """The last receipt that was given, and of which entry: a move's is asked for by several."""

    def add_entry(self, entry: bytes) -> None:
        """One more is in the journal."""
        mark = blake2b(self._public + entry, key=self._key, digest_size=MARK_BYTES).digest()
        self._marks += mark
        if _REJECTED not in entry:
            self._public = mark

    def receipt_of(self, seq: int) -> bytes:
        """Proves that entry `seq` was in the journal, and tells nothing else: not even the number."""
        if self._last[0] != seq:
            at = max(0, seq - self._behind) * MARK_BYTES
            mark = bytes(self._marks[at : at + MARK_BYTES])
            self._last = (seq, mark + self._seal_mark(mark))
        return self._last[1]

    def prove_loss(self, receipt: bytes) -> bool:
        """Whether it is of an entry that is not in the journal (any more). What is no receipt of ours proves nothing."""
        mark, seal = receipt[:MARK_BYTES], receipt[MARK_BYTES:]
        return hmac.compare_digest(seal, self._seal_mark(mark)) and not self._has_mark(mark)

    def _seal_mark(self, mark: bytes) -> bytes:
        return blake2b(mark, key=self._key, digest_size=SEAL_BYTES, person=b"seal").digest()

    def _has_mark(self, mark: bytes) -> bool:
        at = self._marks.rfind(mark)
        while at > 0 and at % MARK_BYTES:
            at = self._marks.rfind(mark, 0, at + MARK_BYTES - 1)
        return at >= 0
