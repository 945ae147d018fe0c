"""The pair of `--tls auto`: a key that stays, and a certificate that signs itself and is renewed in time."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from seatwise_server.tls.tls_files import TlsError, TlsFiles, read_identity

VALID_DAYS = 365
RENEWED_BEFORE_S = 30 * 24 * 3600.0
"""Seconds before a certificate expires at which it is renewed."""

ALWAYS = ("localhost", "127.0.0.1", "::1")


def self_signed_files(folder: Path, client_ca: Path | None = None) -> TlsFiles:
    """Where the pair is kept."""
    return TlsFiles(folder / "tls.crt", folder / "tls.key", client_ca)


def ensure_self_signed(files: TlsFiles, hosts: Iterable[str] = ()) -> None:
    """Makes the pair, or renews its certificate, if need be. The key stays, so that pins stay good.

    Several processes may share the files. Raises `TlsError`.
    """
    from seatwise_server.tls.certificates import ensure_key, sign_certificate, write_whole

    try:
        key = ensure_key(files.key)
        if not _is_good(files):
            names = [name for name in (*ALWAYS, socket.gethostname(), *hosts) if name.isascii()]
            write_whole(files.cert, sign_certificate(key, "Seatwise", names, VALID_DAYS).pem)
    except OSError as error:
        raise TlsError(f"{error.filename or files.key.parent} cannot be written: {error.strerror}") from None


def _is_good(files: TlsFiles) -> bool:
    try:
        return read_identity(TlsFiles(files.cert, files.key)).seconds_left > RENEWED_BEFORE_S
    except TlsError:
        return False
