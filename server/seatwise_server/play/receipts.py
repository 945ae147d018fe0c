"""What a bot's receipt says of our journal: that it ends where it should, or that it has lost its end."""

from __future__ import annotations

from collections import Counter

from seatwise_server.play import items

HORIZON = 1024
"""So many entries beyond the journal's end are looked for; a failover forgets a second's worth."""
MOST_DOUBTS = 8
"""Receipts of one seat that are neither known nor a proof; after these its receipts are not looked at."""


class Doubts:
    """Of one match, as one owner has it."""

    def __init__(self) -> None:
        self._doubts: Counter[int] = Counter()

    def prove_loss(self, key: bytes, seat: int, receipt: bytes, seq: int) -> bool:
        """Whether the receipt is of an entry behind `seq`, where the journal ends.

        Nobody without the key can make one, so such an entry was there, and its bot was told.
        """
        if self._doubts[seat] >= MOST_DOUBTS or _is_of(key, receipt, range(seq, -1, -1)):
            return False
        self._doubts[seat] += 1
        return _is_of(key, receipt, range(seq + 1, seq + 1 + HORIZON))


def _is_of(key: bytes, receipt: bytes, seqs: range) -> bool:
    return any(items.receipt(key, seq) == receipt for seq in seqs)
