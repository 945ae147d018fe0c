"""The options of the encryption: which servers to trust, and which certificate to show. The environment has the defaults."""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

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
        is_hex = len(digits) == 2 * _DIGEST_BYTES
        digest = bytes.fromhex(digits) if is_hex else b64decode(plain, validate=True)
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


INSECURE_VARIABLE = "SEATWISE_INSECURE"
PIN_VARIABLE = "SEATWISE_TLS_PIN"
CA_VARIABLE = "SEATWISE_TLS_CA"
CERT_VARIABLE = "SEATWISE_TLS_CERT"
KEY_VARIABLE = "SEATWISE_TLS_KEY"

_ON = ("1", "true", "yes", "on")
_OFF = ("", "0", "false", "no", "off")


class SecurityOptions(TypedDict, total=False):
    """The options that a caller may give. `None` means the value of the environment."""

    insecure: bool | None
    tls_pin: str | Sequence[str] | None
    tls_ca: str | os.PathLike[str] | None
    tls_cert: str | os.PathLike[str] | None
    tls_key: str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True)
class Security:
    """The options of the encryption, complete."""

    insecure: bool = False
    """Whether a token may travel in clear to another machine."""
    pins: frozenset[bytes] = frozenset()
    """SHA-256 of the keys that a server may have. If there are any, the name and the CA of its certificate do not count."""
    ca: str = ""
    """The PEM file with the CAs to trust; empty means those that gRPC trusts."""
    cert: str = ""
    """The PEM file with the certificate to show to a server that asks for one."""
    key: str = ""
    """The PEM file with the key of that certificate."""

    @classmethod
    def resolve_options(cls, **given: Unpack[SecurityOptions]) -> Security:
        """Return the given options, and those of the environment for the others. Raises `UsageError`."""
        cert = _given_file(given.get("tls_cert"), CERT_VARIABLE)
        key = _given_file(given.get("tls_key"), KEY_VARIABLE)
        if bool(cert) != bool(key):
            raise UsageError("a client certificate needs both its files: tls_cert and tls_key")
        insecure = given.get("insecure")
        return cls(
            insecure=_is_on(os.environ.get(INSECURE_VARIABLE, "")) if insecure is None else insecure,
            pins=frozenset(map(parse_pin, _given_pins(given.get("tls_pin")))),
            ca=_given_file(given.get("tls_ca"), CA_VARIABLE),
            cert=cert,
            key=key,
        )

    def to_environment(self) -> Mapping[str, str]:
        """Return environment variables that give another process the same options, with full paths of files."""
        told = {
            INSECURE_VARIABLE: "1" if self.insecure else "",
            PIN_VARIABLE: ",".join(sorted(map(format_pin, self.pins))),
        }
        files = {CA_VARIABLE: self.ca, CERT_VARIABLE: self.cert, KEY_VARIABLE: self.key}
        told |= {name: str(Path(file).absolute()) for name, file in files.items() if file}
        return {name: value for name, value in told.items() if value}

    def read_ca(self) -> bytes | None:
        """Return the CAs as PEM; `None` means those that gRPC trusts. The file is read for each link, because files are renewed."""
        return _read_file(self.ca)

    def read_identity(self) -> tuple[bytes | None, bytes | None]:
        """Return the key and the certificate to show, as PEM."""
        return _read_file(self.key), _read_file(self.cert)


def _given_pins(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        given = os.environ.get(PIN_VARIABLE, "")
    several = given.split(",") if isinstance(given, str) else given
    return [pin for pin in map(str.strip, several) if pin]


def _given_file(given: str | os.PathLike[str] | None, variable: str) -> str:
    return os.environ.get(variable, "") if given is None else os.fspath(given)


def _is_on(text: str) -> bool:
    if text.lower() not in (*_ON, *_OFF):
        raise UsageError(f"{INSECURE_VARIABLE} is {text!r}: write 1 or 0")
    return text.lower() in _ON


def _read_file(file: str) -> bytes | None:
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
