"""What an operator can set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from seatwise.defaults import PORT, data_folder

ROLES = ("lobby", "referee", "gateway")
EVERYWHERE = ("0.0.0.0", "[::]", "::")
"""Hosts to listen on that nobody can call: they stand for all addresses of this machine."""
KEEP_RECORDS_S = 30 * 24 * 3600


def address_from_here(listens_on: str) -> str:
    """Where a program on this machine reaches what listens on host:port."""
    host, _, port = listens_on.rpartition(":")
    return f"localhost:{port}" if host in EVERYWHERE else listens_on


@dataclass(frozen=True, slots=True)
class Config:
    """One server process."""

    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes a free one."""
    roles: frozenset[str] = frozenset(ROLES)
    """What this process does."""
    address: str = ""
    """host:port at which bots reach this referee; empty: where it listens."""
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
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """0 takes a free one; None serves no metrics."""
    gone_for_good_s: float = 60.0
    """How long the store may be away before the server stops."""

    @property
    def admin_token_file(self) -> Path:
        """Made at the first start, mode 600."""
        return self.data / "admin.token"
