"""What a match is called: a name that nobody guesses, or one that follows from the request that creates the match."""

from __future__ import annotations

import hashlib
import secrets

ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Without characters that are read for one another."""
ID_LENGTH = 12


def new_match_name() -> str:
    """Draw a name that cannot be guessed and is short enough to be typed."""
    return "matches/" + "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def match_name_for(request_id: str) -> str:
    """Derive the name from the request: the same for the same request, so that a repeat creates nothing new."""
    digest = hashlib.sha256(f"create/{request_id}".encode()).digest()[:ID_LENGTH]
    return "matches/" + "".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest)
