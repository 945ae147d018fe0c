"""Seeds and shuffles that are the same on every machine and in every language."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

SEED_BYTES = 32
NONCE_BYTES = 32
"""The length of a nonce: what a bot may add to the deal of its match."""

NO_NONCE = bytes(NONCE_BYTES)
"""Takes the place of the nonce of a seat that gave none."""

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


def commitment_to(seed: bytes) -> bytes:
    """Return the SHA-256 of the seed, which is published before the deal: nobody can change the seed later."""
    return sha256(seed).digest()


def deal_seed(seed: bytes, nonces: Iterable[bytes | None]) -> bytes:
    """Return the seed of the deals: it follows from the match's seed and from every seat's nonce, in the order of seats."""
    return sha256(seed + b"".join(nonce or NO_NONCE for nonce in nonces)).digest()


def seed_in_set(set_seed: bytes, number: int) -> bytes:
    """Return the seed of one match of a set of duplicate deals. The seed of the set cannot be computed from it."""
    return hmac.digest(set_seed, f"match/{number}".encode(), "sha256")


def deal_seed_of_set(set_seed: bytes) -> bytes:
    """Return the seed of the deals that all matches of the set share. No nonce goes into it."""
    return sha256(set_seed).digest()


def shuffle_items(items: Sequence[str], seed: bytes, label: str) -> list[str]:
    """Return the items in the order of HMAC-SHA256(seed, label + ":" + item), the smallest digest first."""
    return sorted(items, key=_hmac_of(seed, f"{label}:"))


def _hmac_of(seed: bytes, prefix: str) -> Callable[[str], bytes]:
    """Return HMAC-SHA256 (RFC 2104) of texts with this prefix: key and prefix are hashed once instead of once an item.

    A shuffle of 45 cards takes 36 us this way, and 80 us with `hmac.digest` (measured). In a match of random
    moves that is a quarter of the time that the rules take.
    """
    key = seed.ljust(_BLOCK_BYTES, b"\0")
    inner = sha256(key.translate(_INNER) + prefix.encode())
    outer = sha256(key.translate(_OUTER))

    def digest(item: str) -> bytes:
        within, around = inner.copy(), outer.copy()
        within.update(item.encode())
        around.update(within.digest())
        return around.digest()

    return digest
