"""Reads addresses: which server an address names, and whether the link to it is encrypted.

    https://host:7433    TLS
    http://host:7433     plain text; a token travels so only to this machine, or with `insecure`
    host:7433            plain text to this machine or with `insecure`, else TLS
    unix:/run/seatwise   a socket of this machine: plain text
    wss://host:7481      WebSockets over TLS; only bots connect by them
    ws://host:7481       WebSockets in plain text, as http://
    rest+https://host    plain HTTP over TLS, for bots; rest+http://host:7480 without TLS

A referee's address comes from the lobby, in the offer of a seat. Without a scheme it takes that of the lobby.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from seatwise.codec.game_codec import MalformedOffer
from seatwise.errors import EncryptionError, UsageError

HTTPS_PORT = 443
"""The port to dial if an address names none: that of gRPC, and of WebSockets over TLS."""
PLAIN_WEB_PORT = 80
"""The port of WebSockets in plain text if an address names none."""

REST_PREFIX = "rest+"
"""Before http:// or https://: bots play by plain HTTP."""

_LONGEST_OFFERED = 300
"""The most characters of a referee's address in an offer."""
_HIGHEST_PORT = 65535

_SCHEME = re.compile(r"(https?|wss?)://(.*)", re.IGNORECASE | re.DOTALL)
_WEB_SOCKETS = ("ws", "wss")
_SOCKETS = ("unix:", "unix-abstract:")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server, and how to connect to it."""

    address: str
    """The address as the user or the lobby has written it."""
    target: str
    """The address without its scheme, which gRPC dials."""
    is_encrypted: bool
    is_local: bool
    """Whether the server is on this machine, so that nobody can read the traffic."""
    is_offered: bool = False
    """Whether the lobby has named it, in the offer of a seat."""

    @property
    def host(self) -> str:
        """The name or IP address, without brackets. Raises `ValueError` if the address names none."""
        return _split_target(self.target)[0]

    @property
    def port(self) -> int:
        """The port. Raises `ValueError` as `host` does."""
        usual = PLAIN_WEB_PORT if self.is_web_socket and not self.is_encrypted else HTTPS_PORT
        port = int(_split_target(self.target)[1][:6] or usual)
        if port > _HIGHEST_PORT:
            raise ValueError(f"{self.address} has the port {port}; the highest is {_HIGHEST_PORT}")
        return port

    @property
    def is_web_socket(self) -> bool:
        """Whether the address is one for WebSockets."""
        return is_web_socket_address(self.address)

    def with_scheme(self, *, is_encrypted: bool) -> str:
        """The address as it would be written for TLS, or for plain text."""
        name = "ws" if self.is_web_socket else "http"
        return f"{name}{'s' if is_encrypted else ''}://{self.target}"


def resolve_endpoint(address: str, *, insecure: bool = False, lobby: Endpoint | None = None) -> Endpoint:
    """Return the server that an address names. `lobby` is the server that has offered a seat there, if one has.

    Raises `UsageError` for an address of IPv6 without brackets: nobody knows where its port begins.
    """
    scheme, target = _split_scheme(address.strip())
    if scheme in _WEB_SOCKETS:
        target = target.partition("/")[0]
    is_local = is_local_target(target)
    if lobby is None and target.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:]+", target):
        host, _, port = target.rpartition(":")
        raise UsageError(f"{address} is an address of IPv6: write it in brackets, as in [{host}]:{port}")
    if target.startswith(_SOCKETS):
        is_encrypted = False
    elif scheme:
        is_encrypted = scheme in ("https", "wss")
    else:
        is_encrypted = not insecure and (not is_local or (lobby is not None and lobby.is_encrypted))
    return Endpoint(address, target, is_encrypted, is_local, is_offered=lobby is not None)


def is_local_address(address: str) -> bool:
    """Return whether the server at this address, with or without a scheme, runs on this machine."""
    bare = address.strip()[len(REST_PREFIX) :] if is_rest_address(address) else address.strip()
    scheme, target = _split_scheme(bare)
    return is_local_target(target.partition("/")[0] if scheme in _WEB_SOCKETS else target)


def is_web_socket_address(address: str) -> bool:
    """Return whether the address begins with ws:// or wss://."""
    return _split_scheme(address.strip())[0] in _WEB_SOCKETS


def is_rest_address(address: str) -> bool:
    """Return whether the address begins with rest+http:// or rest+https://."""
    text = address.strip().lower()
    return text.startswith((f"{REST_PREFIX}http://", f"{REST_PREFIX}https://"))


def web_socket_path(address: str) -> str:
    """Return the path that an address for WebSockets has, e.g. behind a proxy: /referee-1; empty if it has none."""
    _, separator, path = _split_scheme(address.strip())[1].partition("/")
    return separator + path


def is_local_target(target: str) -> bool:
    """Return whether this target of gRPC is this machine. Any name except `localhost` may be another machine's."""
    if target.startswith(_SOCKETS):
        return True
    try:
        host = _split_target(target)[0]
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_clear_text(endpoint: Endpoint, token: str, *, insecure: bool) -> None:
    """Raise `EncryptionError` if the token would travel in clear to another machine, and that is not allowed."""
    if not token or insecure or endpoint.is_encrypted or endpoint.is_local:
        return
    allow = "allow it with --insecure (insecure=True, SEATWISE_INSECURE=1)"
    if endpoint.is_offered:
        raise EncryptionError(
            f"the lobby offers a seat at {endpoint.address}, where the token would travel in clear: its operator can "
            f"turn TLS on at that referee, or you can {allow}"
        )
    raise EncryptionError(
        f"the token would travel in clear to {endpoint.address}: write {endpoint.with_scheme(is_encrypted=True)}, or {allow}"
    )


def check_offered_address(address: str) -> None:
    """Raise `MalformedOffer` if this cannot be the address of a referee: gRPC would refuse to send it on."""
    is_text = address.isascii() and address.isprintable() and " " not in address
    if not is_text or len(address) > _LONGEST_OFFERED:
        raise MalformedOffer(f"address is {address[:_LONGEST_OFFERED]!a}, which is no address")


def _split_scheme(address: str) -> tuple[str, str]:
    address = re.sub(r"(:\d+)\.$", r"\1", address)  # copied with the end of the sentence
    found = _SCHEME.fullmatch(address)
    return (found[1].lower(), found[2].rstrip("/")) if found else ("", address)


def _split_target(target: str) -> tuple[str, str]:
    """Return the host and the port of a target; an empty port if it has none. Raises `ValueError` if it names no host."""
    found = re.fullmatch(r"(?:dns:///)?(?:\[([^\]]*)\](?::(\d+))?|([^:/]*)(?::(\d+))?)", target)
    if found is None:
        raise ValueError(f"{target} names no host")
    return found[1] or found[3] or "", found[2] or found[4] or ""
