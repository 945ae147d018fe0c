"""Keeps a port's certificate up to date: new files are used for new connections, and no process is restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import structlog

from seatwise_server.tls.tls_files import TlsError, TlsFiles, TlsIdentity, read_identity

CERTIFICATE_CHECK_S = 1.0
"""How often the files are looked at. A look costs three calls of `stat`."""
RENEW_S = 3600.0
"""How often a pair that signs itself is asked whether it is to be renewed."""
WARN_BEFORE_S = 14 * 24 * 3600.0
WARN_EVERY_S = 24 * 3600.0

log = structlog.get_logger()


class CertificateReloader:
    """The identity that new connections are shown. Raises `TlsError` if it cannot be read at the start."""

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
        """For one port of gRPC, which asks at each connection whether there is a new identity."""
        shown = self.identity

        def fetch_changed() -> grpc.ServerCertificateConfiguration | None:  # called by threads of gRPC
            nonlocal shown
            if self.identity is shown:
                return None
            shown = self.identity
            return _configuration(shown)

        return grpc.dynamic_ssl_server_credentials(
            _configuration(shown),
            fetch_changed,  # type: ignore[arg-type]  # the stubs do not know that None is "no change"
            require_client_authentication=self._files.client_ca is not None,
        )

    async def watch(self) -> None:
        """Reloads the files when they change, and warns of a certificate that expires. Runs until cancelled."""
        self._renewed_s = asyncio.get_running_loop().time()
        while True:
            self.look(asyncio.get_running_loop().time())
            await asyncio.sleep(CERTIFICATE_CHECK_S)

    def look(self, now_s: float) -> None:
        """One look at the files. Never raises: with files that cannot be used it keeps the identity that it has."""
        try:
            if self._renew is not None and now_s - self._renewed_s >= RENEW_S:
                self._renewed_s = now_s
                self._renew()
            self._reload()
            self._fault, self._looks_with_fault = "", 0
        except TlsError as error:
            self._complain(str(error))
        if self.identity.seconds_left < WARN_BEFORE_S and now_s - self._warned_s >= WARN_EVERY_S:
            self._warned_s = now_s
            log.warning("tls_expires_soon", cert=str(self._files.cert), expires=str(self.identity.expires))

    def _reload(self) -> None:
        signature = self._files.signature()
        if signature == self._signature:
            return
        identity = read_identity(self._files)
        self._signature = signature
        if identity != self.identity:
            self.identity = identity
            log.info("tls_reloaded", pin=identity.pin, expires=str(identity.expires))

    def _complain(self, fault: str) -> None:
        """Once, at the second look: between two files that are replaced the old one does not fit the new one."""
        if fault != self._fault:
            self._fault, self._looks_with_fault = fault, 0
        self._looks_with_fault += 1
        if self._looks_with_fault == 2:
            log.error("tls_not_reloaded", why=fault)


def _configuration(identity: TlsIdentity) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(identity.key_pem, identity.cert_pem)], identity.client_ca_pem
    )
