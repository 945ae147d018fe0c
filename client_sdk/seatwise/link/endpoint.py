"""Reads addresses: which server an address names, and whether the link to it is encrypted.

    https://host:7433    TLS
    http://host:7433     plain text; a token travels so only to this machine, or with `insecure`
    host:7433            plain text to this machine or with `insecure`, else TLS
    unix:/run/seatwise   a socket of this machine: plain text

A referee's address comes from the lobby, in the offer of a seat. Without a scheme it takes that of the lobby.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from seatwise.errors import EncryptionError

HTTPS_PORT = 443
"""The port that gRPC dials if an address names none."""

_SCHEME = re.compile(r"(https?)://(.*)", re.IGNORECASE | re.DOTALL)
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
        return int(_split_target(self.target)[1] or HTTPS_PORT)


def resolve_endpoint(address: str, *, insecure: bool = False, lobby: Endpoint | None = None) -> Endpoint:
    """Return the server that an address names. `lobby` is the server that has offered a seat there, if one has."""
    scheme, target = _split_scheme(address.strip())
    is_local = is_local_target(target)
    if target.startswith(_SOCKETS):
        is_encrypted = False
    elif scheme:
        is_encrypted = scheme == "https"
    else:
        is_encrypted = not insecure and (not is_local or (lobby is not None and lobby.is_encrypted))
    return Endpoint(address, target, is_encrypted, is_local, is_offered=lobby is not None)


def is_local_address(address: str) -> bool:
    """Return whether the server at this address, with or without a scheme, runs on this machine."""
    return is_local_target(_split_scheme(address.strip())[1])


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
        f"the token would travel in clear to {endpoint.address}: write https://{endpoint.target}, or {allow}"
    )


def _split_scheme(address: str) -> tuple[str, str]:
    found = _SCHEME.fullmatch(address)
    return (found[1].lower(), found[2].rstrip("/")) if found else ("", address)


def _split_target(target: str) -> tuple[str, str]:
    """Return the host and the port of a target; an empty port if it has none. Raises `ValueError` if it names no host."""
    found = re.fullmatch(r"(?:dns:///)?(?:\[([^\]]*)\](?::(\d+))?|([^:/]*)(?::(\d+))?)", target)
    if found is None:
        raise ValueError(f"{target} names no host")
    return found[1] or found[3] or "", found[2] or found[4] or ""
