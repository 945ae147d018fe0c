"""Seeds and shuffles that are the same on every machine, in every language, for ever."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from hashlib import sha256

SEED_BYTES = 32
NO_NONCE = bytes(SEED_BYTES)
"""Stands for the nonce of a seat that gave none."""


def commitment(seed: bytes) -> bytes:
    """What is published before the deal, so that the seed cannot be changed after it."""
    return sha256(seed).digest()


def deal_seed(seed: bytes, nonces: Iterable[bytes | None]) -> bytes:
    """The seed of the deals: the match's secret and every seat's nonce, in seat order."""
    return sha256(seed + b"".join(nonce or NO_NONCE for nonce in nonces)).digest()


def shuffled(items: Sequence[str], seed: bytes, label: str) -> list[str]:
    """The items by HMAC-SHA256(seed, label + ":" + item), smallest digest first."""
    return sorted(items, key=lambda item: hmac.digest(seed, f"{label}:{item}".encode(), "sha256"))
