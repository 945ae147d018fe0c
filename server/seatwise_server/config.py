"""What an operator can set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from seatwise.defaults import PORT, data_folder
from seatwise_server.tls.tls_files import TlsFiles

ROLES = ("lobby", "referee", "gateway")
EVERYWHERE = ("0.0.0.0", "[::]", "::")
"""Hosts to listen on that nobody can call: they stand for all addresses of this machine."""
KEEP_RECORDS_S = 30 * 24 * 3600


def address_from_here(listens_on: str) -> str:
    """Where a program on this machine reaches the server that listens there; with a scheme if that has one."""
    scheme, separator, where = listens_on.rpartition("://")
    host, _, port = where.rpartition(":")
    return f"{scheme}{separator}localhost:{port}" if host in EVERYWHERE else listens_on


@dataclass(frozen=True, slots=True)
class Config:
    """One server process."""

    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes a free one."""
    roles: frozenset[str] = frozenset(ROLES)
    """What this process does."""
    address: str = ""
    """host:port at which bots reach this referee, with a scheme or without; empty: where it listens."""
    tls: TlsFiles | None = None
    """The server's certificate and key; None: plain text."""
    is_tls_auto: bool = False
    """Whether the server makes `tls` itself, and renews it."""
    data: Path = field(default_factory=data_folder)
    """Holds the embedded Redis and the admin token."""
    redis_url: str = ""
    """Empty: an embedded, private one, and then this process has all roles."""
    allow_loss: bool = False
    wait_replicas: int = 0
    """How many replicas must have an entry before anybody is told."""
    keep_records_s: int = KEEP_RECORDS_S
    most_tables: int = 5000
    house_bots: bool = True
    health_port: int | None = None
    """Health checks in plain text are answered there too, for probes that speak no TLS."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """0 takes a free one; None serves no metrics."""
    gone_for_good_s: float = 60.0
    """How long the store may be away before the server stops."""

    @property
    def hosts(self) -> list[str]:
        """The hosts by which it is called, as far as it was told."""
        address = self.address.rpartition("://")[2].rpartition(":")[0]
        return [host.strip("[]") for host in (self.host, address) if host and host not in EVERYWHERE]

    @property
    def admin_token_file(self) -> Path:
        """Made at the first start, mode 600."""
        return self.data / "admin.token"
