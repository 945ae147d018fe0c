"""TLS of WebSockets: which servers a bot trusts. The rules are those of `dialing`, which gRPC's channels follow."""

from __future__ import annotations

import socket
import ssl

from seatwise.errors import UsageError
from seatwise.link.certificate import key_digest
from seatwise.link.dialing import HANDSHAKE_S, fetches_certificate
from seatwise.link.endpoint import Endpoint
from seatwise.link.security import Security


class WrongKeyError(ssl.SSLCertVerificationError):
    """The server's key is not pinned."""

    def __init__(self, digest: bytes) -> None:
        super().__init__("the key is not pinned")
        self.digest = digest


def make_context(endpoint: Endpoint, security: Security) -> ssl.SSLContext | None:
    """Return the context for a link to that server; `None` for plain text. Raises `UsageError` for files that do not fit."""
    if not endpoint.is_encrypted:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if fetches_certificate(endpoint, security):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.sslobject_class = _pinned_class(security.pins)
    try:
        if security.ca:
            context.load_verify_locations(cadata=(security.read_ca() or b"").decode("ascii", "ignore"))
        else:
            context.load_default_certs()
        if security.cert:
            context.load_cert_chain(security.cert, security.key)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"the files of tls_ca, tls_cert and tls_key do not fit: {error}") from error
    return context


def answers_in_clear(endpoint: Endpoint) -> bool:
    """Return whether a server answers HTTP in plain text there. This blocks for at most `HANDSHAKE_S` seconds, and sends no token.

    Such a server waits for the end of a request when a client begins with TLS.
    """
    try:
        with socket.create_connection((endpoint.host, endpoint.port), timeout=HANDSHAKE_S) as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % endpoint.target.encode("ascii", "replace"))
            return link.recv(5) == b"HTTP/"
    except (OSError, ValueError):
        return False


def _pinned_class(pins: frozenset[bytes]) -> type[ssl.SSLObject]:
    """Return a connection of TLS whose handshake fails if the server's key is none of these. No pins means any key."""

    class PinnedConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            digest = key_digest(self.getpeercert(binary_form=True) or b"") if pins else b""
            if pins and digest not in pins:  # before a byte of ours is sent
                raise WrongKeyError(digest)

    return PinnedConnection
