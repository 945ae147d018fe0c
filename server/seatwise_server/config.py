"""The settings of a server process."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from seatwise.defaults import HTTP_PORT, PORT, data_folder
from seatwise_server.game_choice import GameChoice
from seatwise_server.tls.tls_files import TlsFiles

ROLES = ("lobby", "referee", "gateway")
EVERYWHERE = ("0.0.0.0", "[::]", "::")
"""Hosts to listen on that are no address to connect to: they stand for all addresses of this machine."""
KEEP_RECORDS_S = 30 * 24 * 3600
PROCESS_NAME_VARIABLE = "SEATWISE_PROCESS_NAME"
"""The variable by which a process learns the name that its supervisor has given it."""
READS_PER_SECOND = 100.0
OWNER_REQUESTS_PER_MINUTE = 30.0
OWNER_WATCHES = 50
ANONYMOUS_READS_PER_SECOND = 300.0
"""Six callers that list 50 matches each in a closed loop get 9 lists a second of it, and matches are not slowed down."""


def address_from_here(listens_on: str) -> str:
    """Returns the address at which a program on this machine reaches a server that listens on `listens_on`.

    Both are host:port, with a scheme or without.
    """
    scheme, separator, where = listens_on.rpartition("://")
    host, _, port = where.rpartition(":")
    return f"{scheme}{separator}localhost:{port}" if host in EVERYWHERE else listens_on


class SpectatorDelay(StrEnum):
    """When spectators are shown a position."""

    LIVE = "live"
    """At once; hands when the rules open them."""
    ROUND = "round"
    """When the cards of its round are out of play."""
    OVER = "over"
    """When the match is over."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP port, which serves the REST API."""

    host: str = "127.0.0.1"
    port: int = HTTP_PORT
    """0 takes a free one."""
    is_port_default: bool = False
    """Whether the operator left the port at its default, so that a free one is taken if it is busy."""
    descriptor: int | None = None
    """A socket that listens already, which this process has inherited; then the port is not taken again."""
    cors_origins: tuple[str, ...] = ()
    """Origins of web pages that may call from a browser; `*` stands for all."""
    lobby: str = ""
    """The address of the lobby, for bots over HTTP; empty: bots cannot come over HTTP."""
    lobby_pin: str = ""
    """The pin of the key that the lobby and all referees share; empty: those that the environment names are trusted."""
    is_lobby_insecure: bool = False
    """Whether tokens of bots may be sent there in plain text."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies, whose X-Forwarded-For header gives the caller's address."""
    guests: int = 0
    """How many guests may play at once, each from a page; 0 admits none."""
    guest_sockets: str = ""
    """The WebSocket of the lobby for them: ws://host:port, or only a scheme and a port, as in ws://:50053, at the page's host."""
    has_other_sockets: bool = False
    """Whether referees may be at other ports of that host."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one server process."""

    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes a free port."""
    roles: frozenset[str] = frozenset(ROLES)
    """The roles that run in this process."""
    address: str = ""
    """host:port at which bots reach this referee, with or without a scheme; empty for where it listens."""
    tls: TlsFiles | None = None
    """The server's certificate and key; None for plain text."""
    is_tls_auto: bool = False
    """Whether the server makes the files of `tls` itself, and renews the certificate."""
    data: Path = field(default_factory=data_folder)
    """The folder of the embedded Redis and the admin token."""
    redis_url: str = ""
    """The URL of the store; empty for an embedded, private Redis. Then this process has all roles."""
    allow_loss: bool = False
    wait_replicas: int = 0
    """The number of replicas that must have an entry before any client learns of it."""
    keep_records_s: int = KEEP_RECORDS_S
    most_tables: int = 5000
    max_memory: int = 0
    """The memory, in bytes, above which this process ends itself, so that its supervisor starts it again; 0 for no limit."""
    house_bots: bool = True
    guests: int = 0
    """How many guests may play at once, each from a page of this server; 0 admits none."""
    house_names: tuple[str, ...] = ()
    """The house bots that fill free seats, as the operator has chosen them; empty for the default ones."""
    ws_port: int | None = None
    """The port for bots that use WebSocket; 0 takes a free one; None for no such port."""
    is_ws_port_default: bool = False
    """Whether the operator left the port at its default, so that a free one is taken if it is busy."""
    ws_host: str = ""
    """The host on which that port listens; empty for `host`."""
    ws_address: str = ""
    """ws://host:port or wss://host:port at which bots reach that port of this referee; empty for where it listens."""
    ws_origins: tuple[str, ...] = ()
    """Origins of web pages that may connect there, in addition to its own, such as https://example.org."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies before the ports: behind one of them all callers have one address."""
    health_port: int | None = None
    """A second port for health checks, in plain text, for probes that do not support TLS; None for no such port."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """0 takes a free port; None serves no metrics."""
    http: HttpSettings | None = None
    """The HTTP port of a gateway; None: there is none."""
    has_read_process: bool = False
    """Whether reads without a token are answered by a process of their own, which this one starts."""
    socket: Path | None = None
    """A UNIX socket at which this process listens in place of `host` and `port`: it is such a process."""
    decks: tuple[str, ...] = ()
    """The deck files of this server."""
    default_deck: str = ""
    """The deck of a match that names none; empty for the house's default."""
    games: GameChoice = GameChoice.ALL
    """The games that the referee of this process plays."""
    spectators: SpectatorDelay = SpectatorDelay.LIVE
    reads_per_second: float = READS_PER_SECOND
    """Units of reads a second for each token, and for each address of callers without one; 0 for no limit."""
    anonymous_reads_per_second: float = ANONYMOUS_READS_PER_SECOND
    """Units of reads a second for all callers without a token together; 0 for no limit."""
    registration: str = "closed"
    """Whether owners register their bots themselves: `closed`, or `invite` for those with an invite."""
    oidc_issuer: str = ""
    """The URL of the OIDC issuer whose people may become owners; empty: there is none."""
    oidc_audience: str = ""
    """The name of this server at the issuer: its client id."""
    owner_requests_per_minute: float = OWNER_REQUESTS_PER_MINUTE
    """How much each owner may change in a minute; 0 for no limit."""
    owner_matches_at_once: int = 0
    """How many matches the bots of each owner may play at once; 0 for no limit."""
    owner_matches_a_day: int = 0
    """How many matches the bots of each owner may begin in 24 hours; 0 for no limit."""
    owner_watches: int = OWNER_WATCHES
    """How many matches each owner and its bots may watch at once; 0 for no limit."""
    log_level: str = "info"
    process_name: str = ""
    """The name that the supervisor of this process has given it, unique to this start; empty: it takes one itself."""
    gone_for_good_s: float = 60.0
    """How long the store may be away before the server stops, in seconds."""

    @property
    def hosts(self) -> list[str]:
        """The hosts by which clients call this server, as far as the settings name them."""
        address = self.address.rpartition("://")[2].rpartition(":")[0]
        return [host.strip("[]") for host in (self.host, address) if host and host not in EVERYWHERE]

    @property
    def admin_token_file(self) -> Path:
        """The file of the admin token. It is made at the first start, with mode 600."""
        return self.data / "admin.token"
