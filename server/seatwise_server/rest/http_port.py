"""Takes the HTTP port. The process that takes it need not be the one that serves it, so nothing here needs the HTTP libraries."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from errno import EADDRINUSE

import structlog

from seatwise_server.config import HttpSettings

HTTP_BACKLOG = 512

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HttpPort:
    """A port that this process has taken."""

    socket: socket.socket
    url: str
    """http://host:port or https://host:port."""

    @property
    def number(self) -> int:
        """The number of the port."""
        return int(self.socket.getsockname()[1])


def take_http_port(settings: HttpSettings, *, is_encrypted: bool) -> HttpPort:
    """Takes the port, or the socket that another process has taken. Connections wait from now on. Raises OSError."""
    if settings.descriptor is None:
        taken = _take_free_port(settings)
        taken.listen(HTTP_BACKLOG)
    else:
        taken = socket.socket(fileno=settings.descriptor)
    scheme = "https" if is_encrypted else "http"
    return HttpPort(taken, f"{scheme}://{settings.host}:{taken.getsockname()[1]}")


def _take_free_port(settings: HttpSettings) -> socket.socket:
    try:
        return bind_port(settings.host, settings.port)
    except OSError as error:
        if not settings.is_port_default or error.errno != EADDRINUSE:
            raise
        log.warning(
            "http_port_busy", port=settings.port, why="a free one is taken; choose one with --http-port"
        )
        return bind_port(settings.host, 0)


def bind_port(host: str, port: int) -> socket.socket:
    """Takes the port of this host, or a free one for 0. Raises OSError if the port is not free."""
    family, kind, protocol, _, where = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(where)
    except OSError:
        taken.close()
        raise
    return taken
