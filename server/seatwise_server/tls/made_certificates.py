"""Keys and certificates that the server makes: the self-signed one of `--tls auto`, and those of a CA of the operator's own.

It needs libraries that a server without TLS does not wait for, so it is imported only where a certificate is made.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from seatwise_server.tls.tls_files import TlsError, TlsFiles, read_identity

SELF_SIGNED_DAYS = 365
SELF_SIGNED_RENEWED_BEFORE_S = 30 * 24 * 3600.0
"""A certificate that expires in fewer seconds is renewed."""

ALWAYS = ("localhost", "127.0.0.1", "::1")
CA_DAYS = 3650
SERVER_CERTIFICATE_DAYS = 825
SERVER_CERTIFICATE_RENEWED_BEFORE_S = 90 * 24 * 3600.0
"""A certificate that expires in fewer seconds is made again."""
READABLE_MODE = 0o644
CLOCK_SKEW = timedelta(days=1)
"""How far a client's clock may be behind."""
_LONGEST_COMMON_NAME = 64
"""The most characters of a common name, by X.509."""


def ensure_self_signed(files: TlsFiles, hosts: Iterable[str] = ()) -> None:
    """Make the key and certificate, or renew the certificate, if necessary. The key stays, so that pins stay valid.

    Several processes may share the files. Raises `TlsError`.
    """
    try:
        key = ensure_key(files.key)
        names = [name for name in (*ALWAYS, socket.gethostname(), *hosts) if name.isascii()]
        if not _is_good(files, hosts):
            write_whole(files.cert, sign_certificate(key, "Seatwise", names, SELF_SIGNED_DAYS).pem)
    except OSError as error:
        raise TlsError(f"{error.filename or files.key.parent} cannot be written: {error.strerror}") from None


def _is_good(files: TlsFiles, hosts: Iterable[str]) -> bool:
    """Return whether the certificate is valid for long enough and names these hosts."""
    try:
        if read_identity(TlsFiles(files.cert, files.key)).seconds_left < SELF_SIGNED_RENEWED_BEFORE_S:
            return False
        named = host_names(x509.load_pem_x509_certificate(files.cert.read_bytes()))
    except (TlsError, ValueError):
        return False
    return named.issuperset(host for host in hosts if host.isascii())


def issue_certificate(ca: Path, into: Path, hosts: Sequence[str], *, is_readable: bool = False) -> TlsFiles:
    """Write `tls.crt`, `tls.key` and the CA's certificate `ca.crt` into a folder, for a server with these hosts.

    The CA is made in its folder if there is none. A certificate that is still good for these hosts stays; a key
    always stays. If `is_readable`, every user who can open the folder may read the key: for a server that runs as
    another user, such as Redis. Raises `TlsError`.
    """
    files = TlsFiles(into / "tls.crt", into / "tls.key")
    try:
        authority = _ensure_ca(ca)
        key = ensure_key(files.key, READABLE_MODE if is_readable else 0o600)
        write_whole(into / "ca.crt", authority.pem)
        if not _is_signed(files, authority, hosts):
            write_whole(
                files.cert,
                sign_certificate(key, hosts[0], hosts, SERVER_CERTIFICATE_DAYS, issuer=authority).pem,
            )
    except OSError as error:
        raise TlsError(f"{error.filename or into} cannot be written: {error.strerror}") from None
    return files


def _ensure_ca(folder: Path) -> KeyPair:
    key, file = ensure_key(folder / "ca.key"), folder / "ca.crt"
    if not file.exists():
        write_whole(file, sign_certificate(key, "Seatwise private CA", [], CA_DAYS).pem)
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except ValueError:
        raise TlsError(f"{file} holds no certificate in PEM: delete it, and it is made again") from None
    if certificate.public_key() != key.public_key():
        raise TlsError(f"{folder / 'ca.key'} is not the key of {file}: delete one of them")
    return KeyPair(key, certificate)


def _is_signed(files: TlsFiles, authority: KeyPair, hosts: Sequence[str]) -> bool:
    """Return whether the certificate exists, is of this CA, names exactly these hosts, and is valid for long enough."""
    try:
        if read_identity(files).seconds_left < SERVER_CERTIFICATE_RENEWED_BEFORE_S:
            return False
        certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
        certificate.verify_directly_issued_by(authority.certificate)
    except (TlsError, InvalidSignature, ValueError):
        return False
    return host_names(certificate) == set(hosts)


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


def write_whole(file: Path, data: bytes) -> None:
    """Replace the file in one step. Raises OSError."""
    _write_draft(file, data, READABLE_MODE).replace(file)


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
