"""Verifies the certificate of a bot: what a server has found and signed about one version of it."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from seatwise.bot_errors import UsageError

LONGEST_CERTIFICATE: Final = 64 * 1024
"""The most bytes of a file with a certificate."""


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A certificate as it was read. Nobody has checked it yet."""

    statement: str
    signature: bytes
    public_key: bytes

    @property
    def key_fingerprint(self) -> str:
        """The SHA-256 of the public key in hex, by which people compare keys."""
        return sha256(self.public_key).hexdigest()


@dataclass(frozen=True, slots=True)
class BotFindings:
    """The content of a valid certificate."""

    bot: str
    """The full name of the bot: a new version needs a certificate of its own."""

    suite: str
    """The list of checks."""

    version: str
    """The version of the server."""

    time: str
    """The end of the examination, RFC 3339 in UTC."""

    results: Mapping[str, str]
    """`passed`, `failed` or `skipped` for each check."""

    @property
    def not_passed(self) -> tuple[str, ...]:
        """The checks that are not passed."""
        return tuple(name for name, result in self.results.items() if result != "passed")


def parse_certificate(data: bytes) -> SignedStatement | None:
    """Return the certificate in this text; `None` if it has none.

    Args:
        data: JSON: a certificate, or the bot that has it, as `seatwise bots show --json` and `GET /v1/bots/...` write it.
    """
    if len(data) > LONGEST_CERTIFICATE:
        return None
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for name in ("bot", "certificate"):
        if isinstance(told, dict) and isinstance(told.get(name), dict):
            told = told[name]
    if not isinstance(told, dict) or not {"statement", "signature"} <= told.keys():
        return None
    key = told.get("public_key", told.get("publicKey", ""))
    return SignedStatement(str(told["statement"]), _bytes_of(told["signature"]), _bytes_of(key))


def verify_certificate(certificate: SignedStatement, public_key: bytes | None = None) -> BotFindings:
    """Return what the certificate says, if its signature is right.

    Args:
        certificate: The certificate.
        public_key: The key of the server that is said to have signed it. Without it, anyone
            could have signed it with a key of their own.

    Raises:
        ValueError: The signature is wrong, the key is another one, or the text is no statement. The message says which.
        UsageError: The library `cryptography` is not installed.
    """
    if public_key is not None and certificate.public_key != public_key:
        raise ValueError("another key has signed it than the server's")
    if not _is_signed(certificate):
        raise ValueError("the signature does not fit the statement")
    try:
        told = json.loads(certificate.statement)
        results = {_printable(name): _printable(result) for name, result in told["results"].items()}
        bot, suite, version, time = (_printable(told[name]) for name in ("bot", "suite", "version", "time"))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ValueError("what was signed is no result of an examination") from None
    if not results:
        raise ValueError("what was signed is no result of an examination: it names no check")
    return BotFindings(bot, suite, version, time, results)


def _is_signed(certificate: SignedStatement) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise UsageError(
            "a certificate is verified with the library cryptography: pip install cryptography"
        ) from None
    try:
        key = Ed25519PublicKey.from_public_bytes(certificate.public_key)
        key.verify(certificate.signature, certificate.statement.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _printable(text: Any) -> str:
    """Return the text without control characters: a terminal that shows a stranger's statement would obey them.

    Raises `TypeError` for any other value.
    """
    if not isinstance(text, str):
        raise TypeError("this is no text")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _bytes_of(text: Any) -> bytes:
    try:
        return b64decode(str(text), validate=True)
    except (BadBase64, ValueError):
        return b""


__all__ = [
    "LONGEST_CERTIFICATE", "BotFindings", "SignedStatement", "parse_certificate", "verify_certificate",
]  # fmt: skip
