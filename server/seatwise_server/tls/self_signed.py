"""The key and certificate of `--tls auto`: the key stays, and the self-signed certificate is renewed in time."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from seatwise_server.tls.tls_files import TlsError, TlsFiles, read_identity

SELF_SIGNED_DAYS = 365
SELF_SIGNED_RENEWED_BEFORE_S = 30 * 24 * 3600.0
"""A certificate that expires in fewer seconds is renewed."""

ALWAYS = ("localhost", "127.0.0.1", "::1")


def self_signed_files(folder: Path, client_ca: Path | None = None) -> TlsFiles:
    """Returns the paths of the key and the certificate in this folder."""
    return TlsFiles(folder / "tls.crt", folder / "tls.key", client_ca)


def ensure_self_signed(files: TlsFiles, hosts: Iterable[str] = ()) -> None:
    """Makes the key and certificate, or renews the certificate, if necessary. The key stays, so that pins stay
    valid.

    Several processes may share the files. Raises `TlsError`.
    """
    from seatwise_server.tls.certificates import ensure_key, sign_certificate, write_whole

    try:
        key = ensure_key(files.key)
        if not _is_good(files):
            names = [name for name in (*ALWAYS, socket.gethostname(), *hosts) if name.isascii()]
            write_whole(files.cert, sign_certificate(key, "Seatwise", names, SELF_SIGNED_DAYS).pem)
    except OSError as error:
        raise TlsError(f"{error.filename or files.key.parent} cannot be written: {error.strerror}") from None


def _is_good(files: TlsFiles) -> bool:
    try:
        return read_identity(TlsFiles(files.cert, files.key)).seconds_left > SELF_SIGNED_RENEWED_BEFORE_S
    except TlsError:
        return False
