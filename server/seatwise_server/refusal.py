"""What a caller is told when something is refused: one reason, one sentence.

`REASONS` is the whole list; docs/protocol.md explains each to a bot author, and a test holds the two
together. Which door it goes out by, and in what form, is the door's business.
"""

from __future__ import annotations

REASONS: dict[str, str] = {
    "TOKEN_MISSING": "UNAUTHENTICATED",
    "TOKEN_UNKNOWN": "UNAUTHENTICATED",
    "TOKEN_REVOKED": "UNAUTHENTICATED",
    "NOT_ALLOWED": "PERMISSION_DENIED",
    "NOT_FOUND": "NOT_FOUND",
    "ALREADY_EXISTS": "ALREADY_EXISTS",
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "MALFORMED": "INVALID_ARGUMENT",
    "MATCH_NOT_OVER": "FAILED_PRECONDITION",
    "MATCH_VOIDED": "FAILED_PRECONDITION",
    "SET_RUNNING": "FAILED_PRECONDITION",
    "SET_OVER": "FAILED_PRECONDITION",
    "REPLACED": "ABORTED",
    "MATCH_MOVED": "UNAVAILABLE",
    "SERVER_FULL": "RESOURCE_EXHAUSTED",
    "SLOW_READER": "RESOURCE_EXHAUSTED",
    "SERVER_STOPPING": "UNAVAILABLE",
    "STORE_UNAVAILABLE": "UNAVAILABLE",
    "INTERNAL": "INTERNAL",
}
"""Every reason, with the name of its canonical code."""

RETRY_AFTER_S = "1"
"""Seconds after which to come back, where the refusal knows no better."""

LONGEST_REFUSAL_TEXT = 300
"""Characters of a text: it may quote what the caller sent, and all of it travels in one header."""

LAST_WORD_S = 0.4
"""How long a stream that we end waits for its caller to read why. It ends within a second in all."""


class Refusal(Exception):  # it is not an error of ours
    """The caller is told no."""

    def __init__(self, reason: str, message: str, **metadata: str) -> None:
        message = _printable(_cut(message))
        super().__init__(message)
        self.reason = reason
        self.code = REASONS[reason]
        self.message = message
        if self.code == "RESOURCE_EXHAUSTED":
            metadata = {"retry_after": RETRY_AFTER_S, **metadata}
        self.metadata = {name: _cut(value) for name, value in metadata.items()}


def _printable(text: str) -> str:
    """It may quote what another caller sent, and the terminal that shows it obeys control characters."""
    return (
        text
        if text.isprintable()
        else "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REFUSAL_TEXT else text[: LONGEST_REFUSAL_TEXT - 3] + "..."
