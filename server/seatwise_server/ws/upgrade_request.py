"""Checks the HTTP request that opens a WebSocket: its path, its subprotocol, and the page that it comes from."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from seatwise_server.refusal import Refusal
from seatwise_server.ws.message_formats import FORMATS, JSON_FORMAT, PROTO_FORMAT, MessageFormat

ATTEND_PATH = "/v1/attend"
PLAY_PATH = "/v1/play"
WEBSOCKET_VERSION = "13"
"""The only one, of RFC 6455."""
_USUAL_PORTS = (80, 443)
KEY_BYTES = 16
"""Of a Sec-WebSocket-Key."""


class Upgrade(NamedTuple):
    """An upgrade that may be done."""

    path: str
    format: MessageFormat
    authorization: str | None
    """The header of that name."""


class UpgradeRules(NamedTuple):
    """Which upgrades a door allows."""

    paths: Collection[str]
    """Those of the roles of this process."""
    origins: Collection[str]
    """Origins of pages besides the door's own, as in https://example.org."""
    page_port: int | None = None
    """The port of pages at the same host that may connect too, because guests play from them; 0 for any port there."""


def check_upgrade(target: str, headers: Mapping[str, str], rules: UpgradeRules) -> Upgrade:
    """Returns the upgrade that the request asks for. Raises `Refusal` if it may not be done."""
    path, has_query, query = target.partition("?")
    if has_query:
        raise Refusal("INVALID_ARGUMENT", _query_fault(query))
    if path not in rules.paths:
        there = " and ".join(sorted(rules.paths))
        raise Refusal("NOT_FOUND", f"there is no WebSocket at {path[:80]!r}; this process has {there}")
    _check_origin(headers.get("Origin"), headers.get("Host", ""), rules)
    wanted = _missing_header(headers)
    if wanted:
        raise Refusal("INVALID_ARGUMENT", f"this URL is for WebSockets only; send the header {wanted}")
    return Upgrade(
        path, _choose_format(headers.get("Sec-WebSocket-Protocol", "")), headers.get("Authorization")
    )


def _query_fault(query: str) -> str:
    if "token" in query.lower() or "authorization" in query.lower():
        return (
            "a token in a URL ends up in logs: have this one rotated, and send it in the header Authorization: Bearer <token>, "
            'or as the first message, {"token": "..."}'
        )
    return "this URL takes no query"


def _missing_header(headers: Mapping[str, str]) -> str:
    """Returns the header that RFC 6455, section 4.2.1, wants and the request does not have; empty if all are there."""
    if headers.get("Upgrade", "").lower() != "websocket":
        return "Upgrade: websocket"
    if "upgrade" not in [each.strip() for each in headers.get("Connection", "").lower().split(",")]:
        return "Connection: Upgrade"
    if headers.get("Sec-WebSocket-Version") != WEBSOCKET_VERSION:
        return f"Sec-WebSocket-Version: {WEBSOCKET_VERSION}"
    return "" if _is_key(headers.get("Sec-WebSocket-Key", "")) else "Sec-WebSocket-Key: <16 bytes in base64>"


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except ValueError:
        return False


def _check_origin(origin: str | None, host: str, rules: UpgradeRules) -> None:
    """Programs send no origin; a browser sends that of the page, which must be one that the operator knows."""
    if origin is None or origin in rules.origins:
        return
    if not host or not _is_own_page(_host_of(origin) or "", host.lower(), rules.page_port):
        raise Refusal(
            "NOT_ALLOWED",
            f"pages of {origin[:80]!r} may not connect here; its operator can allow it: --ws-origin",
        )


def _is_own_page(page: str, host: str, page_port: int | None) -> bool:
    """Whether a page at host:port `page` belongs to the server at `host`."""
    if page == host or page_port is None:
        return page == host
    name, own_name = (_name_of(each) for each in (page, host))
    return name == own_name and (
        not page_port or page in {f"{name}:{page_port}", *_plain_names(name, page_port)}
    )


def _name_of(host: str) -> str:
    """Returns a host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _plain_names(name: str, port: int) -> tuple[str, ...]:
    """Returns how a browser names the host at a port that is usual for its scheme: without the port."""
    return (name,) if port in _USUAL_PORTS else ()


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _choose_format(offered: str) -> MessageFormat:
    names = [name.strip() for name in offered.split(",")]
    for name in names:
        if name in FORMATS:
            return FORMATS[name]
    raise Refusal(
        "INVALID_ARGUMENT", f"name a subprotocol in Sec-WebSocket-Protocol: {JSON_FORMAT} or {PROTO_FORMAT}"
    )
