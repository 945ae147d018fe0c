"""Opens the channels of gRPC, and explains in plain words why one cannot be opened.

With a pin, and on this machine, the server's certificate is fetched first. If it is the right one, it is all that gRPC is
told to trust. So nobody can slip in between: a server with another certificate is turned away by gRPC itself.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import grpc

from seatwise.defaults import PORT
from seatwise.errors import EncryptionError, SeatwiseError, UnavailableError, UsageError
from seatwise.link.endpoint import REST_PREFIX, Endpoint
from seatwise.link.security import Security, dates_of, format_pin, key_digest, names_of

Option = tuple[str, Any]

CHANNEL_OPTIONS: list[Option] = [
    ("grpc.primary_user_agent", f"seatwise-python/{version('seatwise')}"),
    # A server accepts a limited number of calls on one connection. Bots of one program would share a connection.
    ("grpc.use_local_subchannel_pool", 1),
    # A stopped machine breaks no connection: without the second ping limit it takes a minute to notice.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    # The waits are ours (backoff.py); those of gRPC grow to two minutes, and a bot's clock runs.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]

HANDSHAKE_S = 3.0
"""The longest wait for a TLS handshake, in seconds."""

_IS_OF_TLS = re.compile("handshake|verif", re.IGNORECASE)
"""Matches the messages of gRPC for a failure of TLS."""

_IS_OF_HTTP = re.compile(r"http1\.x server \(HTTP status 400\)|missing selected ALPN")
_IS_OF_NAME = re.compile("Domain name not found|Misformatted domain name")


class Dial(NamedTuple):
    """The arguments with which gRPC opens a channel."""

    target: str
    credentials: grpc.ChannelCredentials | None
    """`None` for plain text."""
    options: list[Option]


async def open_channel(endpoint: Endpoint, security: Security) -> grpc.aio.Channel:
    """Open a channel to that server. Raises `EncryptionError` if it is not trusted, `UnavailableError` if it gives no certificate."""
    if fetches_certificate(endpoint, security):
        target, credentials, options = await asyncio.to_thread(prepare_dial, endpoint, security)
    else:
        target, credentials, options = prepare_dial(endpoint, security)
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, credentials, options=options)


def open_blocking_channel(endpoint: Endpoint, security: Security) -> grpc.Channel:
    """Open a channel as `open_channel` does, in a program without an event loop."""
    target, credentials, options = prepare_dial(endpoint, security)
    if credentials is None:
        return grpc.insecure_channel(target, options=options)
    return grpc.secure_channel(target, credentials, options=options)


def prepare_dial(endpoint: Endpoint, security: Security) -> Dial:
    """Return the arguments for gRPC. This may fetch the server's certificate, and then blocks for at most `HANDSHAKE_S` seconds."""
    if endpoint.is_web_socket:
        raise UsageError(
            f"{endpoint.address} takes bots only: give the address for gRPC, HOST:PORT or https://HOST:PORT"
        )
    options = list(CHANNEL_OPTIONS)
    if endpoint.is_local:  # with HTTP_PROXY set, gRPC would take even this way through another machine
        options.append(("grpc.enable_http_proxy", 0))
    if not endpoint.is_encrypted:
        return Dial(endpoint.target, None, options)
    roots, (key, shown) = security.read_ca(), security.read_identity()
    if fetches_certificate(endpoint, security):
        certificate = _fetch_certificate(endpoint, security)
        names = _check_certificate(endpoint, security, certificate)
        roots = ssl.DER_cert_to_PEM_cert(certificate).encode()
        options += _name_override(endpoint, names)
    return Dial(endpoint.target, grpc.ssl_channel_credentials(roots, key, shown), options)


def explain_failure(endpoint: Endpoint, security: Security, error: SeatwiseError) -> SeatwiseError:
    """Return an `EncryptionError` if the server is there and TLS is why the link failed, a `UsageError` if the port is one for HTTP,
    else the same error.

    This blocks as `prepare_dial` does, and sends no token."""
    told = str(error.__cause__ or error)  # gRPC's own text, which the message of the error says plainly
    if _IS_OF_HTTP.search(told):
        return UsageError(http_only(endpoint))
    if _IS_OF_NAME.search(told):
        return UnavailableError(f"this machine knows no host {endpoint.target.rpartition(':')[0]}")
    is_checked = endpoint.is_encrypted and not fetches_certificate(endpoint, security)
    context = _make_context(security, is_checked=is_checked)
    try:
        _shake_hands(endpoint, context, is_whole=True)
    except _HungUp:
        return UnavailableError(_hangs_up(endpoint))
    except ssl.SSLCertVerificationError as refused:
        if not _IS_OF_TLS.search(told):
            return error  # gRPC has its own list of CAs, and the server may have come up meanwhile
        return EncryptionError(untrusted(endpoint, refused.verify_message))
    except ssl.SSLError as refused:
        if "CERTIFICATE_REQUIRED" in (refused.reason or ""):
            return UnavailableError(_hangs_up(endpoint))
        return _explain_refusal(endpoint, refused) or error
    except (OSError, ValueError):
        return error
    return error if endpoint.is_encrypted else EncryptionError(tls_only(endpoint))


def speaks_tls(endpoint: Endpoint) -> bool | None:
    """Return whether a server speaks TLS there; `None` if no server answers. This blocks for at most `HANDSHAKE_S` seconds."""
    try:
        _shake_hands(endpoint, _make_context(Security(), is_checked=False))
    except ssl.SSLError as refused:
        if isinstance(refused, ssl.SSLEOFError):
            return None
        return "ALERT" in (refused.reason or "")
    except (OSError, ValueError):
        return None
    return True


def _explain_refusal(endpoint: Endpoint, refused: ssl.SSLError) -> EncryptionError | None:
    reason = refused.reason or ""
    if not endpoint.is_encrypted or isinstance(refused, ssl.SSLEOFError) or "ALERT" in reason:
        return None
    return EncryptionError(clear_text_only(endpoint))


# The server's certificate


def fetches_certificate(endpoint: Endpoint, security: Security) -> bool:
    """Return whether the server's certificate is fetched before gRPC dials.

    Nobody can intercept the link to a server on this machine. So any certificate is accepted there, unless a CA is named."""
    return endpoint.is_encrypted and bool(security.pins or (endpoint.is_local and not security.ca))


def _fetch_certificate(endpoint: Endpoint, security: Security) -> bytes:
    context = _make_context(security, is_checked=False)
    try:
        return _shake_hands(endpoint, context)
    except ssl.SSLError as refused:
        explained = _explain_refusal(endpoint, refused)
        raise explained or UnavailableError(f"TLS failed: {refused}") from refused
    except (OSError, ValueError) as error:
        raise UnavailableError(getattr(error, "strerror", "") or str(error)) from error


def _check_certificate(endpoint: Endpoint, security: Security, certificate: bytes) -> list[str]:
    """Return the names of the certificate. Raise `EncryptionError` if its key is not pinned, or it is not valid now.

    gRPC would refuse one that is not valid now, and not say why.
    """
    try:
        digest, names, (first, last) = key_digest(certificate), names_of(certificate), dates_of(certificate)
    except ValueError as error:
        raise EncryptionError(f"the certificate of {endpoint.address} cannot be read: {error}") from error
    if security.pins and digest not in security.pins:
        raise EncryptionError(not_pinned(endpoint, digest))
    if not first <= datetime.now(UTC) <= last:
        raise EncryptionError(out_of_date(endpoint, first, last))
    return names


def _name_override(endpoint: Endpoint, names: list[str]) -> list[Option]:
    """Return the option with a name that fits the certificate. The key identifies the server, but gRPC compares names too."""
    if not names or endpoint.host in names or f"*.{endpoint.host.partition('.')[2]}" in names:
        return []
    return [("grpc.ssl_target_name_override", names[0].replace("*", "any", 1))]


def _make_context(security: Security, *, is_checked: bool, protocol: str = "h2") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols([protocol])
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        if is_checked and security.ca:
            context.load_verify_locations(cadata=(security.read_ca() or b"").decode("ascii", "ignore"))
        elif is_checked:
            context.load_default_certs()
        if security.cert:
            context.load_cert_chain(security.cert, security.key)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"the files of tls_ca, tls_cert and tls_key do not fit: {error}") from error
    return context


def _shake_hands(endpoint: Endpoint, context: ssl.SSLContext, *, is_whole: bool = False) -> bytes:
    """Return the certificate of the server, as DER. If `is_whole`, raise `_HungUp` if the server does not accept our certificate."""
    with (
        socket.create_connection((endpoint.host, endpoint.port), timeout=HANDSHAKE_S) as link,
        context.wrap_socket(link, server_hostname=endpoint.host) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True) or b""
        if is_whole and not tls.recv(1):
            raise _HungUp
        return certificate


class _HungUp(Exception):  # gRPC's server gives no reason where a certificate is missing
    pass


# Texts of errors


def not_pinned(endpoint: Endpoint, digest: bytes) -> str:
    """Return the message for a server whose key is not pinned."""
    return (
        f"{endpoint.address} has the key {format_pin(digest)}, which is not pinned: either its operator has a new key "
        "and tells you so, or another server answers in its place"
    )


def out_of_date(endpoint: Endpoint, first: datetime, last: datetime) -> str:
    """Return the message for a server whose certificate is valid at another time than now."""
    now = datetime.now(UTC)
    wrong = (
        f"has expired: it was valid until {last:%F %T}" if now > last else f"is valid only from {first:%F %T}"
    )
    return (
        f"the certificate of {endpoint.address} {wrong} UTC, and this machine's clock says {now:%F %T} UTC. If the clock is "
        "right, tell the operator to renew the certificate (seatwise serve --tls auto does so by itself); with the "
        "same key your pin still fits"
    )


def clear_text_only(endpoint: Endpoint) -> str:
    """Return the message for a server that speaks no TLS."""
    if endpoint.is_offered:
        return (
            f"the lobby offers a seat at {endpoint.address}, to be reached by TLS, but no TLS is spoken there: tell its "
            "operator (seatwise serve --tls-cert, or --tls auto). With --insecure (insecure=True) the token and all moves "
            "travel in clear to an address without a scheme"
        )
    return (
        f"{endpoint.address} speaks no TLS: its operator can turn it on (seatwise serve --tls-cert, or --tls auto). With "
        f"--insecure (insecure=True) and the address {endpoint.with_scheme(is_encrypted=False)} the token and all moves travel in clear"
    )


def tls_only(endpoint: Endpoint) -> str:
    """Return the message for a server that speaks TLS where plain text was asked for."""
    if endpoint.is_offered:
        return (
            f"the lobby offers a seat at {endpoint.address} in plain text, but TLS is spoken there: tell its operator "
            f"(seatwise serve --address https://{endpoint.target})"
        )
    return f"{endpoint.address} speaks TLS: write {endpoint.with_scheme(is_encrypted=True)}"


def http_only(endpoint: Endpoint) -> str:
    """Return the message for a port that speaks HTTP/1.1, so no gRPC."""
    rest = f"{REST_PREFIX}{endpoint.with_scheme(is_encrypted=endpoint.is_encrypted)}"
    return (
        f"{endpoint.address} is a port for HTTP or WebSockets: give the one for gRPC, which is {PORT} unless the operator says "
        f"otherwise. Bots play over HTTP with the address {rest}"
    )


def _hangs_up(endpoint: Endpoint) -> str:
    return (
        f"{endpoint.address} hangs up after the TLS handshake, as servers do that want a client certificate: name yours "
        "with --tls-cert and --tls-key"
    )


def untrusted(endpoint: Endpoint, why: str) -> str:
    """Return the message for a server whose certificate is not trusted."""
    return (
        f"the certificate of {endpoint.address} is not trusted: {why.rstrip('.')}. Pin its key with --tls-pin (tls_pin=...), as "
        "`seatwise serve` prints it, or name its CA with --tls-ca (tls_ca=...)"
    )


CODES_OF_HTTP = {400: "INTERNAL", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "UNIMPLEMENTED"}
"""The codes of gRPC by the status of a proxy, as gRPC maps them; every other is UNAVAILABLE."""


class WrongKeyError(ssl.SSLCertVerificationError):
    """The server's key is not pinned."""

    def __init__(self, digest: bytes) -> None:
        super().__init__("the key is not pinned")
        self.digest = digest


def link_error(endpoint: Endpoint, error: Exception) -> SeatwiseError:
    """Return the typed error for one of the operating system or of TLS, with which no link could be opened."""
    if isinstance(error, WrongKeyError):
        return EncryptionError(not_pinned(endpoint, error.digest))
    if isinstance(error, ssl.SSLCertVerificationError):
        return EncryptionError(untrusted(endpoint, error.verify_message))
    return UnavailableError(getattr(error, "strerror", None) or str(error) or "no answer in time")


def make_context(endpoint: Endpoint, security: Security) -> ssl.SSLContext | None:
    """Return the context for a link to that server; `None` for plain text. Raises `UsageError` for files that do not fit."""
    if not endpoint.is_encrypted:
        return None
    is_fetched = fetches_certificate(endpoint, security)
    context = _make_context(security, is_checked=not is_fetched, protocol="http/1.1")
    if is_fetched:
        context.sslobject_class = _pinned_class(security.pins)
    return context


def proxy_to(endpoint: Endpoint) -> str | None:
    """Return the proxy of the environment, as for gRPC. A server on this machine is reached without one."""
    if endpoint.is_local or proxy_bypass(endpoint.host):
        return None
    return getproxies().get("https" if endpoint.is_encrypted else "http")


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
