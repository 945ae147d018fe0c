"""Makes keys and certificates, and writes them so that no other process reads a file that is half written."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from seatwise_server.tls.tls_files import TlsError

CLOCK_SKEW = timedelta(days=1)
"""How far a client's clock may be behind."""
_LONGEST_COMMON_NAME = 64
"""The most characters of a common name, by X.509."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        """The certificate, as PEM."""
        return self.certificate.public_bytes(Encoding.PEM)


def sign_certificate(
    key: ec.EllipticCurvePrivateKey,
    name: str,
    hosts: Sequence[str],
    days: int,
    *,
    issuer: KeyPair | None = None,
) -> KeyPair:
    """Make a certificate for the key of a server with these hosts, valid for `days` days.

    Without an issuer it is self-signed. Without hosts it is the certificate of a CA. Raises `TlsError` for a host
    that a certificate cannot name.
    """
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])
    signer = issuer.key if issuer else key
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None if hosts else 0), critical=True)
        .add_extension(_usage(is_ca=not hosts), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(names, critical=False).add_extension(purposes, critical=False)
    return KeyPair(key, builder.sign(signer, SHA256()))


def ensure_key(file: Path, mode: int = 0o600) -> ec.EllipticCurvePrivateKey:
    """Return the key in the file, and make the file if it does not exist. Processes that do so at once get the same key.

    Raises `TlsError` if the file does not hold a key of the kind made here, and OSError.
    """
    if not file.exists():
        pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        draft = _write_draft(file, pem, mode)
        try:
            with contextlib.suppress(FileExistsError):
                os.link(draft, file)
        finally:
            draft.unlink()
    with contextlib.suppress(ValueError, TypeError):
        key = load_pem_private_key(file.read_bytes(), password=None)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return key
    raise TlsError(f"{file} holds no key that this command makes: delete it, and a new one is made")


def write_whole(file: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace the file in one step. Raises OSError."""
    _write_draft(file, data, mode).replace(file)


def _write_draft(file: Path, data: bytes, mode: int) -> Path:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        os.fchmod(out.fileno(), mode)
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    return draft


def host_names(certificate: x509.Certificate) -> set[str]:
    """Return the hosts that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _host(text: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ip_address(text.strip("[]")))
    try:
        return x509.DNSName(text)
    except ValueError:
        why = f"a certificate cannot name the host {text!r}: use a host name or an IP address"
        raise TlsError(why) from None
