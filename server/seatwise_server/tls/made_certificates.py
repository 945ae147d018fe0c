"""Keys and certificates that the server makes: the self-signed one of `--tls auto`, and those of a CA of the operator's own."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seatwise_server.tls.tls_files import TlsError, TlsFiles, read_identity

SELF_SIGNED_DAYS = 365
SELF_SIGNED_RENEWED_BEFORE_S = 30 * 24 * 3600.0
"""A certificate that expires in fewer seconds is renewed."""

ALWAYS = ("localhost", "127.0.0.1", "::1")


def self_signed_files(folder: Path, client_ca: Path | None = None) -> TlsFiles:
    """Return the paths of the key and the certificate in this folder."""
    return TlsFiles(folder / "tls.crt", folder / "tls.key", client_ca)


def ensure_self_signed(files: TlsFiles, hosts: Iterable[str] = ()) -> None:
    """Make the key and certificate, or renew the certificate, if necessary. The key stays, so that pins stay valid.

    Several processes may share the files. Raises `TlsError`.
    """
    from seatwise_server.tls.certificates import ensure_key, sign_certificate, write_whole

    try:
        key = ensure_key(files.key)
        names = [name for name in (*ALWAYS, socket.gethostname(), *hosts) if name.isascii()]
        if not _is_good(files, hosts):
            write_whole(files.cert, sign_certificate(key, "Seatwise", names, SELF_SIGNED_DAYS).pem)
    except OSError as error:
        raise TlsError(f"{error.filename or files.key.parent} cannot be written: {error.strerror}") from None


def _is_good(files: TlsFiles, hosts: Iterable[str]) -> bool:
    """Return whether the certificate is valid for long enough and names these hosts."""
    from cryptography.x509 import load_pem_x509_certificate

    from seatwise_server.tls.certificates import host_names

    try:
        if read_identity(TlsFiles(files.cert, files.key)).seconds_left < SELF_SIGNED_RENEWED_BEFORE_S:
            return False
        named = host_names(load_pem_x509_certificate(files.cert.read_bytes()))
    except (TlsError, ValueError):
        return False
    return named.issuperset(host for host in hosts if host.isascii())


if TYPE_CHECKING:
    from seatwise_server.tls.certificates import KeyPair

CA_DAYS = 3650
SERVER_CERTIFICATE_DAYS = 825
SERVER_CERTIFICATE_RENEWED_BEFORE_S = 90 * 24 * 3600.0
"""A certificate that expires in fewer seconds is made again."""
READABLE_MODE = 0o644


def issue_certificate(ca: Path, into: Path, hosts: Sequence[str], *, is_readable: bool = False) -> TlsFiles:
    """Write `tls.crt`, `tls.key` and the CA's certificate `ca.crt` into a folder, for a server with these hosts.

    The CA is made in its folder if there is none. A certificate that is still good for these hosts stays; a key
    always stays. If `is_readable`, every user who can open the folder may read the key: for a server that runs as
    another user, such as Redis. Raises `TlsError`.
    """
    from seatwise_server.tls.certificates import ensure_key, sign_certificate, write_whole

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
    from cryptography.x509 import load_pem_x509_certificate

    from seatwise_server.tls.certificates import KeyPair, ensure_key, sign_certificate, write_whole

    key, file = ensure_key(folder / "ca.key"), folder / "ca.crt"
    if not file.exists():
        write_whole(file, sign_certificate(key, "Seatwise private CA", [], CA_DAYS).pem)
    try:
        certificate = load_pem_x509_certificate(file.read_bytes())
    except ValueError:
        raise TlsError(f"{file} holds no certificate in PEM: delete it, and it is made again") from None
    if certificate.public_key() != key.public_key():
        raise TlsError(f"{folder / 'ca.key'} is not the key of {file}: delete one of them")
    return KeyPair(key, certificate)


def _is_signed(files: TlsFiles, authority: KeyPair, hosts: Sequence[str]) -> bool:
    """Return whether the certificate exists, is of this CA, names exactly these hosts, and is valid for long enough."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509 import load_pem_x509_certificate

    from seatwise_server.tls.certificates import host_names

    try:
        if read_identity(files).seconds_left < SERVER_CERTIFICATE_RENEWED_BEFORE_S:
            return False
        certificate = load_pem_x509_certificate(files.cert.read_bytes())
        certificate.verify_directly_issued_by(authority.certificate)
    except (TlsError, InvalidSignature, ValueError):
        return False
    return host_names(certificate) == set(hosts)
