"""Reads certificate and key from files, and says in one sentence what is wrong with them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from seatwise.link.security import format_pin

if TYPE_CHECKING:  # a server without TLS does not wait for this import
    from cryptography.x509 import Certificate

Signature = tuple[tuple[int, int, int], ...]
"""The time of the last change, the size and the inode of each file. It changes when a file does."""


class TlsError(Exception):
    """A certificate, a key or a CA cannot be used; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files, which may be replaced while the server runs."""

    cert: Path
    """The server's certificate, followed by those of the CAs between it and the root."""
    key: Path
    client_ca: Path | None = None
    """The certificates of the CAs of clients. With it, a client without a certificate of one of them is refused."""

    def signature(self) -> Signature:
        """Return the signature of the files. Raises `TlsError` for a file that does not exist."""
        try:
            found = [file.stat() for file in (self.cert, self.key, self.client_ca) if file is not None]
        except OSError as error:
            raise TlsError(f"{error.filename} cannot be read: {error.strerror}") from None
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)


def self_signed_files(folder: Path, client_ca: Path | None = None) -> TlsFiles:
    """Return the paths of the key and the certificate that the server makes in this folder."""
    return TlsFiles(folder / "tls.crt", folder / "tls.key", client_ca)


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The certificate and key that the server shows, and the CAs of the client certificates that it asks for."""

    cert_pem: bytes
    key_pem: bytes
    client_ca_pem: bytes | None
    pin: str
    """The fingerprint of the key, in the form of `--tls-pin`."""
    expires: datetime

    @property
    def seconds_left(self) -> float:
        """Seconds until the certificate expires; negative afterwards."""
        return (self.expires - datetime.now(UTC)).total_seconds()


def read_identity(files: TlsFiles) -> TlsIdentity:
    """Reads and checks the files. Raises `TlsError`."""
    cert_pem, key_pem = _read(files.cert), _read(files.key)
    client_ca_pem = None if files.client_ca is None else _read(files.client_ca)
    if files.client_ca is not None and client_ca_pem is not None:
        _certificates(client_ca_pem, files.client_ca)
    own = _certificates(cert_pem, files.cert)[0]
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key_info = own.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key_info != _key_info_of_key(key_pem, files.key):
        raise TlsError(f"{files.key} is not the key of the first certificate in {files.cert}")
    pin = format_pin(hashlib.sha256(key_info).digest())
    return TlsIdentity(cert_pem, key_pem, client_ca_pem, pin, own.not_valid_after_utc)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"{file} cannot be read: {error.strerror}") from None


def _certificates(pem: bytes, file: Path) -> list[Certificate]:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(pem)
    except ValueError:
        raise TlsError(f"{file} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)") from None


def _key_info_of_key(pem: bytes, file: Path) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        why = f"{file} is protected by a password: decrypt it, the server cannot ask for one"
        raise TlsError(why) from None
    except (ValueError, UnsupportedAlgorithm):
        raise TlsError(f"{file} holds no private key in PEM (-----BEGIN PRIVATE KEY-----)") from None
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
