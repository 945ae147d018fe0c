"""The configuration of one server process, which is passed on to child processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from seatwise.defaults import HTTP_PORT
from seatwise_server.game_choice import GameChoice
from seatwise_server.settings import KEEP_RECORDS_S, ROLES, ServerSettings, SpectatorDelay
from seatwise_server.tls.tls_files import TlsFiles

__all__ = ["EVERYWHERE", "ROLES", "Config", "HttpSettings", "SpectatorDelay", "address_from_here"]

EVERYWHERE = ("0.0.0.0", "[::]", "::")
"""Hosts to listen on that are no address to connect to: they stand for all addresses of this machine."""


def address_from_here(listens_on: str) -> str:
    """Return the address at which a program on this machine reaches a server that listens on `listens_on`.

    Both are host:port, with a scheme or without.
    """
    scheme, separator, where = listens_on.rpartition("://")
    host, _, port = where.rpartition(":")
    return f"{scheme}{separator}localhost:{port}" if host in EVERYWHERE else listens_on


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
    embed_origins: tuple[str, ...] = ()
    """Origins of web pages that may show the pages under /embed/ in a frame; none: there are no such pages."""
    lobby: str = ""
    """The address of the lobby, for bots over HTTP; empty: bots cannot come over HTTP."""
    lobby_pin: str = ""
    """The pin of the key that the lobby and all referees share; empty: those that the environment names are trusted."""
    is_lobby_insecure: bool = False
    """Whether tokens of bots may be sent there in plain text."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies, whose X-Forwarded-For header gives the caller's address."""
    wheel: str = ""
    """The wheel of Seatwise that is offered to visitors; empty for none."""
    install: str = ""
    """The sentence that says where visitors get Seatwise; empty for the usual one."""
    certificate: str = ""
    """The file of a self-signed certificate that is offered for download; empty for none."""
    guests: int = 0
    """How many guests may play at once, each from a page; 0 admits none."""
    guest_sockets: str = ""
    """The WebSocket of the lobby for them: ws://host:port, or only a scheme and a port, as in ws://:50053, at the page's host."""
    has_other_sockets: bool = False
    """Whether referees may be at other ports of that host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerSettings):
    """The settings of one server process. Fields that an operator names are those of `ServerSettings`."""

    roles: frozenset[str] = frozenset(ROLES)
    """The roles that run in this process."""
    tls: TlsFiles | None = None
    """The server's certificate and key; None for plain text."""
    is_tls_auto: bool = False
    """Whether the server makes the files of `tls` itself, and renews the certificate."""
    keep_records_s: int = KEEP_RECORDS_S
    max_memory: int = 0
    """The memory, in bytes, above which this process ends itself, so that its supervisor starts it again; 0 for no limit."""
    house_bots: bool = True
    ws_port: int | None = None
    """The port for bots that use WebSocket; 0 takes a free one; None for no such port."""
    is_ws_port_default: bool = False
    """Whether the operator left the port at its default, so that a free one is taken if it is busy."""
    http: HttpSettings | None = None
    """The HTTP port of a gateway; None: there is none."""
    has_read_process: bool = False
    """Whether reads without a token are answered by a process of their own, which this one starts."""
    socket: Path | None = None
    """A UNIX socket at which this process listens in place of `host` and `port`: it is such a process."""
    games: GameChoice = GameChoice.ALL
    """The games that the referee of this process plays."""
    niceness: int = 0
    """How far the process steps back behind others; 0 for not at all."""
    process_name: str = ""
    """The name that the supervisor of this process has given it, unique to this start; empty: it takes one itself."""

    @property
    def hosts(self) -> list[str]:
        """The hosts by which clients call this server, as far as the settings name them."""
        address = self.address.rpartition("://")[2].rpartition(":")[0]
        return [host.strip("[]") for host in (self.host, address) if host and host not in EVERYWHERE]

    @property
    def admin_token_file(self) -> Path:
        """The file of the admin token. It is made at the first start, with mode 600."""
        return self.data / "admin.token"

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads, after `json.dumps` with `default=str`."""
        return asdict(self) | {"roles": sorted(self.roles)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Config:
        """Return the configuration that a parent has written."""
        config: Config = _read_value(cls, told)
        return config


def _read_value(kind: Any, told: Any) -> Any:
    if isinstance(kind, UnionType):
        [kind] = [each for each in get_args(kind) if each is not NoneType]
        return None if told is None else _read_value(kind, told)
    if isinstance(kind, type) and is_dataclass(kind):
        kinds = get_type_hints(kind)
        return kind(**{each.name: _read_value(kinds[each.name], told[each.name]) for each in fields(kind)})
    if get_origin(kind) in (tuple, frozenset):
        return get_origin(kind)(told)
    return kind(told) if issubclass(kind, Path | StrEnum) else told
