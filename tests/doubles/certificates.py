"""Keys and certificates for tests, made where they are asked for: a CA, those that it signs, and those that sign themselves."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

HERE = ("localhost", "127.0.0.1", "0.0.0.0")


@dataclass(frozen=True)
class Identity:
    """A key and the certificate for it."""

    key: Any
    certificate: x509.Certificate

    @property
    def cert_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def key_info(self) -> bytes:
        """SubjectPublicKeyInfo, as `cryptography` writes it."""
        return self.certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def credentials(self, client_ca: Identity | None = None) -> grpc.ServerCredentials:
        """Of a server; with a CA it wants certificates of that from its clients."""
        pairs = [(self.key_pem, self.cert_pem)]
        if client_ca is None:
            return grpc.ssl_server_credentials(pairs)
        return grpc.ssl_server_credentials(pairs, client_ca.cert_pem, require_client_auth=True)

    @property
    def pin(self) -> str:
        """As `--tls-pin` takes it."""
        return f"sha256//{b64encode(sha256(self.key_info).digest()).decode()}"

    def write(self, folder: Path, name: str = "server") -> tuple[str, str]:
        """The files of certificate and key; each is replaced at once, as by certbot or Kubernetes."""
        files = folder / f"{name}.crt", folder / f"{name}.key"
        for file, pem in zip(files, (self.cert_pem, self.key_pem), strict=True):
            draft = file.with_suffix(".draft")
            draft.write_bytes(pem)
            draft.replace(file)
        return str(files[0]), str(files[1])


def identity(
    *names: str,
    key: Any = None,
    signer: Identity | None = None,
    is_ca: bool = False,
    days: int = 30,
    subject: str = "test",
) -> Identity:
    """A certificate for these names and addresses; signed by itself, if by nobody else. `days` below 0 have passed."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)] if subject else [])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(signer.certificate.subject if signer else own)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=100))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([*map(_name, names)]), critical=False)
    signing = signer.key if signer else key
    algorithm = SHA256() if hasattr(signing, "key_size") else None  # Ed25519 has one of its own
    return Identity(key, builder.sign(signing, algorithm))


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
