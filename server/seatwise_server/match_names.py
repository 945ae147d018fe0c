"""Names of matches: random ones that cannot be guessed, and names derived from the request that creates a match."""

from __future__ import annotations

import hashlib
import secrets

ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Characters that are not easily confused with one another."""
ID_LENGTH = 12


def new_match_name() -> str:
    """Draws a name that cannot be guessed and is short enough to type."""
    return "matches/" + "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def match_name_for(request_id: str) -> str:
    """Derives a name from the request id, always the same, so that a repeated request creates no second match."""
    digest = hashlib.sha256(f"create/{request_id}".encode()).digest()[:ID_LENGTH]
    return "matches/" + "".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest)
