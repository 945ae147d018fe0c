"""The options of the encryption: which servers to trust, and which certificate to show. The environment has the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from seatwise.errors import UsageError
from seatwise.link.certificate import format_pin, parse_pin

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
        cert, key = (
            _given_file(given.get("tls_cert"), CERT_VARIABLE),
            _given_file(given.get("tls_key"), KEY_VARIABLE),
        )
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
