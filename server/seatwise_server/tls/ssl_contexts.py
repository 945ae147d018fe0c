"""Makes TLS contexts of Python's own library from the server's certificate, for the ports that gRPC does not serve."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from seatwise_server.tls.certificate_reloader import CertificateReloader
from seatwise_server.tls.tls_files import TlsIdentity


class ServerContexts:
    """The context for each new connection of a port: that of the present certificate."""

    def __init__(self, certificate: CertificateReloader) -> None:
        self._certificate = certificate
        self._shown = certificate.identity
        self._context = make_server_context(self._shown)

    def current_context(self) -> ssl.SSLContext:
        """Returns the context, made again if the certificate was reloaded."""
        if self._certificate.identity is not self._shown:
            self._shown = self._certificate.identity
            self._context = make_server_context(self._shown)
        return self._context


def new_port_context(certificate: CertificateReloader) -> ssl.SSLContext:
    """Makes one context for a port that cannot change its own. At each handshake it switches to the current one."""
    contexts = ServerContexts(certificate)
    first = make_server_context(certificate.identity)

    def hand_over(
        connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _port: ssl.SSLContext
    ) -> None:
        connection.context = contexts.current_context()

    first.sni_callback = hand_over  # it is called even if the client names no host
    return first


def make_server_context(identity: TlsIdentity) -> ssl.SSLContext:
    """Makes a context for a port.

    If the identity has CAs for clients, a client without a certificate of one of them is refused.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="seatwise-tls-") as folder:  # only its owner can read it
        pair = Path(folder) / "pair.pem"  # Python reads keys from files only
        pair.write_bytes(identity.key_pem + b"\n" + identity.cert_pem)
        context.load_cert_chain(pair)
    if identity.client_ca_pem is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=identity.client_ca_pem.decode("ascii", "ignore"))
    return context
