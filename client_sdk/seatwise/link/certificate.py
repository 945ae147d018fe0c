"""Reads three facts from a certificate: the fingerprint of its key, its names, and its dates.

This is a walk over the few fields that come before (RFC 5280, section 4.1). It judges nothing: the TLS library does.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

from seatwise.errors import UsageError

PIN_PREFIX = "sha256//"
"""The prefix of fingerprints, as curl writes them (`--pinnedpubkey`)."""

_DIGEST_BYTES = 32
_CONSTRUCTED = 0x30
_UTC_TIME = 0x17
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87
_COMMON_NAME, _ALTERNATIVE_NAMES = b"\x55\x04\x03", b"\x55\x1d\x11"


class _Value(NamedTuple):
    """One element of DER."""

    tag: int
    content: bytes
    whole: bytes
    """The element with its tag and length."""


def format_pin(digest: bytes) -> str:
    """Return a key's fingerprint as it is shown and typed."""
    return PIN_PREFIX + b64encode(digest).decode()


def parse_pin(text: str) -> bytes:
    """Return the SHA-256 of a fingerprint, in base64 with or without `sha256//`, or in hex. Raises `UsageError` if it is none."""
    plain = text.strip().removeprefix(PIN_PREFIX)
    try:
        digits = plain.replace(":", "")
        digest = (
            bytes.fromhex(digits) if len(digits) == 2 * _DIGEST_BYTES else b64decode(plain, validate=True)
        )
    except ValueError:
        digest = b""
    if len(digest) != _DIGEST_BYTES:
        raise UsageError(f"{text!r} is no fingerprint of a key, as in {format_pin(bytes(_DIGEST_BYTES))}")
    return digest


def key_digest(certificate: bytes) -> bytes:
    """Return the SHA-256 of the certificate's SubjectPublicKeyInfo. Raises `ValueError` if it cannot be read."""
    return hashlib.sha256(_certificate_fields(certificate)[5].whole).digest()


def names_of(certificate: bytes) -> list[str]:
    """Return the names and addresses of a certificate (DER), names first. Raises `ValueError` if it cannot be read."""
    fields = _certificate_fields(certificate)
    names: list[str] = []
    addresses: list[str] = []
    for extensions in fields[6:]:
        if extensions.tag != _EXTENSIONS:
            continue
        for extension in _inner_values(_inner_values(extensions)[0]):
            identifier, *_, value = _inner_values(extension)
            if identifier.content == _ALTERNATIVE_NAMES:
                for name in _inner_values(_inner_values(value)[0]):
                    if name.tag == _DNS_NAME:
                        names.append(name.content.decode("ascii"))
                    elif name.tag == _IP_ADDRESS:
                        addresses.append(str(ip_address(name.content)))
    return names + addresses or list(_common_names(fields[4]))


def dates_of(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the first and the last moment at which the certificate is valid. Raises `ValueError` if they cannot be read."""
    first, last, *_ = map(_parse_time, _inner_values(_certificate_fields(certificate)[3]))
    return first, last


def _parse_time(value: _Value) -> datetime:
    """Return a date of a certificate. One with two digits for the year is from 1950 to 2049 (RFC 5280, section 4.1.2.5)."""
    text = value.content.decode("ascii")
    if value.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _common_names(subject: _Value) -> Iterator[str]:
    for relative in _parse_values(subject.content):
        for attribute in _inner_values(relative):
            identifier, value = _inner_values(attribute)
            if identifier.content == _COMMON_NAME:
                yield value.content.decode()


def _certificate_fields(certificate: bytes) -> list[_Value]:
    """Return the serial number, algorithm, issuer, validity, subject, key, and all later fields."""
    outer = _parse_values(certificate)
    if not outer or outer[0].tag != _CONSTRUCTED:
        raise ValueError("no certificate")
    fields = _inner_values(_inner_values(outer[0])[0])
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) < 6:
        raise ValueError("a certificate without a key")
    return fields


def _inner_values(value: _Value) -> list[_Value]:
    found = _parse_values(value.content)
    if not found:
        raise ValueError("an element of a certificate is empty")
    return found


def _parse_values(data: bytes) -> list[_Value]:
    """Return the elements that follow each other in these bytes."""
    found, at = [], 0
    while at < len(data):
        start, tag = at, data[at]
        length, at = _parse_length(data, at + 1)
        if at + length > len(data):
            raise ValueError("a certificate that ends too early")
        found.append(_Value(tag, data[at : at + length], data[start : at + length]))
        at += length
    return found


def _parse_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length, and the place at which its content begins."""
    if at >= len(data):
        raise ValueError("a certificate that ends too early")
    first = data[at]
    if first < 0x80:
        return first, at + 1
    count = first & 0x7F
    if not 1 <= count <= 4:
        raise ValueError("a length that no certificate has")
    return int.from_bytes(data[at + 1 : at + 1 + count]), at + 1 + count
