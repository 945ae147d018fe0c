"""What the SDK reads of certificates is what the library `cryptography` reads of them."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from doubles.certificates import identity
from hypothesis import given
from hypothesis import strategies as st

from seatwise.errors import UsageError
from seatwise.link.security import format_pin, key_digest, names_of, parse_pin

NAMES = ("a.example", "*.b.example", "10.1.2.3", "::1")


@pytest.mark.parametrize(
    "key",
    [ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048)],
    ids=["ec", "ed25519", "rsa"],
)  # fmt: skip
@pytest.mark.parametrize("names", [(), NAMES, NAMES * 40], ids=["none", "some", "many"])
def test_the_fingerprint_is_of_the_key(key: Any, names: tuple[str, ...]) -> None:
    mine = identity(*names, key=key)
    assert key_digest(mine.der) == hashlib.sha256(mine.key_info).digest()


def test_a_renewed_certificate_has_the_same_fingerprint() -> None:
    first = identity("a.example")
    renewed = identity("b.example", key=first.key, days=90)
    assert first.der != renewed.der
    assert key_digest(first.der) == key_digest(renewed.der)


def test_names_come_before_addresses() -> None:
    assert names_of(identity("10.1.2.3", "a.example", "::1", "*.b.example").der) == [
        "a.example",
        "*.b.example",
        "10.1.2.3",
        "::1",
    ]


def test_without_other_names_the_common_one_counts() -> None:
    assert names_of(identity(subject="server.example").der) == ["server.example"]
    assert names_of(identity(subject="").der) == []


def test_a_fingerprint_is_read_in_every_usual_notation() -> None:
    digest = hashlib.sha256(b"key").digest()
    base64 = b64encode(digest).decode()
    colons = digest.hex(":").upper()
    for text in (format_pin(digest), base64, f" {base64}\n", digest.hex(), colons):
        assert parse_pin(text) == digest


@pytest.mark.parametrize("text", ["", "sha256//", "sha256//AAAA", "x" * 64, "sha1//" + "A" * 43 + "="])
def test_a_text_that_is_no_fingerprint_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no fingerprint of a key, as in sha256//AAAA"):
        parse_pin(text)


WHOLE = identity(*NAMES).der


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_broken_certificate_is_said_to_be_one(at: int, put: bytes, left_out: int) -> None:
    """Whatever a hostile server sends: a result or a ValueError."""
    broken = WHOLE[:at] + put + WHOLE[at + left_out :]
    for read in (key_digest, names_of):
        with suppress(ValueError):
            read(broken)


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x84", b"\x30\x80\x00\x00", b"\x30\xff", b"\x30\x02\x30\x00"]
)
def test_bytes_that_are_no_certificate_raise_a_value_error(data: bytes) -> None:
    for read in (key_digest, names_of):
        with pytest.raises(ValueError, match="certificate"):
            read(data)


def test_half_a_certificate_is_a_value_error() -> None:
    for read in (key_digest, names_of):
        with pytest.raises(ValueError, match="ends too early"):
            read(WHOLE[:100])
