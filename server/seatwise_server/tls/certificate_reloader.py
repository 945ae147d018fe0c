"""Keeps a port's certificate up to date: new connections get the new files, and no process is restarted."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

import grpc
import structlog

from seatwise_server.tls.tls_files import TlsError, TlsFiles, TlsIdentity, read_identity

CERTIFICATE_CHECK_S = 1.0
"""Seconds between two checks of the files. A check costs three calls of `stat`."""
RENEW_S = 3600.0
"""Seconds between two checks of whether a self-signed certificate must be renewed."""
WARN_BEFORE_S = 14 * 24 * 3600.0
WARN_EVERY_S = 24 * 3600.0

log = structlog.get_logger()


class CertificateReloader:
    """The key and certificate that new connections get. Raises `TlsError` if they cannot be read at the start."""

    def __init__(self, files: TlsFiles, renew: Callable[[], None] | None = None) -> None:
        self._files = files
        self._renew = renew
        """Makes a new certificate if the old one expires soon."""
        if renew is not None:
            renew()
        self._signature = files.signature()
        self.identity = read_identity(files)
        self._fault, self._looks_with_fault = "", 0
        self._renewed_s = self._warned_s = -WARN_EVERY_S

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return credentials for one gRPC port. gRPC asks them at each connection whether there is a new certificate."""
        shown = self.identity

        def fetch_changed() -> grpc.ServerCertificateConfiguration | None:  # called by threads of gRPC
            nonlocal shown
            if self.identity is shown:
                return None
            shown = self.identity
            return _configuration(shown)

        return grpc.dynamic_ssl_server_credentials(
            _configuration(shown),
            fetch_changed,  # type: ignore[arg-type]  # the stubs do not say that None means "no change"
            require_client_authentication=self._files.client_ca is not None,
        )

    async def watch_files(self) -> None:
        """Reload the files when they change, and warns when the certificate expires soon. Runs until cancelled."""
        self._renewed_s = asyncio.get_running_loop().time()
        while True:
            self.check_files(asyncio.get_running_loop().time())
            await asyncio.sleep(CERTIFICATE_CHECK_S)

    def check_files(self, now_s: float) -> None:
        """Check the files once. Never raises: if they cannot be used, it keeps the certificate that it has."""
        try:
            if self._renew is not None and now_s - self._renewed_s >= RENEW_S:
                self._renewed_s = now_s
                self._renew()
            self._reload()
            self._fault, self._looks_with_fault = "", 0
        except TlsError as error:
            self._log_fault(str(error))
        if self.identity.seconds_left < WARN_BEFORE_S and now_s - self._warned_s >= WARN_EVERY_S:
            self._warned_s = now_s
            log.warning("tls_expires_soon", cert=str(self._files.cert), expires=str(self.identity.expires))

    def _reload(self) -> None:
        signature = self._files.signature()
        if signature == self._signature:
            return
        identity = read_identity(self._files)
        if identity.seconds_left <= 0 < self.identity.seconds_left:
            why = f"{self._files.cert} has expired, on {identity.expires}, and the one before has not"
            raise TlsError(why)
        self._signature = signature
        if identity != self.identity:
            self.identity = identity
            log.info("tls_reloaded", pin=identity.pin, expires=str(identity.expires))

    def _log_fault(self, fault: str) -> None:
        """Log a fault once, at the second check: while two files are replaced, the old one does not fit the new one."""
        if fault != self._fault:
            self._fault, self._looks_with_fault = fault, 0
        self._looks_with_fault += 1
        if self._looks_with_fault == 2:
            log.error("tls_not_reloaded", why=fault)


def _configuration(identity: TlsIdentity) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(identity.key_pem, identity.cert_pem)], identity.client_ca_pem
    )


class ServerContexts:
    """The context for each new connection of a port: that of the present certificate."""

    def __init__(self, certificate: CertificateReloader) -> None:
        self._certificate = certificate
        self._shown = certificate.identity
        self._context = make_server_context(self._shown)

    def current_context(self) -> ssl.SSLContext:
        """Return the context, made again if the certificate was reloaded."""
        if self._certificate.identity is not self._shown:
            self._shown = self._certificate.identity
            self._context = make_server_context(self._shown)
        return self._context


def new_port_context(certificate: CertificateReloader) -> ssl.SSLContext:
    """Make one context for a port that cannot change its own. At each handshake it switches to the current one."""
    contexts = ServerContexts(certificate)
    first = make_server_context(certificate.identity)

    def hand_over(
        connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _port: ssl.SSLContext
    ) -> None:
        connection.context = contexts.current_context()

    first.sni_callback = hand_over  # it is called even if the client names no host
    return first


def make_server_context(identity: TlsIdentity) -> ssl.SSLContext:
    """Make a context for a port.

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
