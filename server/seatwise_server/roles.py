"""What each role of a process is made of: its services, its tasks, its end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from seatwise_server.config import EVERYWHERE, Config, address_from_here
from seatwise_server.house import HouseLink, house_bots, run_house_bots
from seatwise_server.ladder.ladder_host import LadderHost
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import Seating
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.heartbeat import HeartbeatSender
from seatwise_server.play.lag import EventLoopLag
from seatwise_server.play.referee import Referee, RefereeIdentity
from seatwise_server.play.takeover import Takeover
from seatwise_server.rpc.grpc_server import GrpcServer
from seatwise_server.rpc.lobby_servicer import LobbyServicer
from seatwise_server.rpc.play_servicer import PlayServicer
from seatwise_server.services.api import new_operations
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import Flusher, Store
from seatwise_server.tls.announced_address import check_announced_address
from seatwise_server.tls.certificate_reloader import CertificateReloader

Tasks = dict[str, Coroutine[Any, Any, None]]
"""By name; the server cannot go on without any of them."""


@dataclass(frozen=True, slots=True)
class Common:
    """What all roles of a process share."""

    config: Config
    name: str
    """Of the process, a new one with each start."""
    listens_on: str
    """host:port."""
    certificate: CertificateReloader | None
    """With it the port speaks TLS."""
    store: Store
    flusher: Flusher
    authenticator: Authenticator
    open_streams: OpenStreams
    lag: EventLoopLag
    durability: str
    is_alone: bool
    """The store is this process's own: nobody else can be alive on it."""

    def with_scheme(self, address: str) -> str:
        """The address as clients are told it: with TLS it begins with https://, unless it has a scheme of its own."""
        return address if self.certificate is None or "://" in address else f"https://{address}"


class Role(Protocol):
    """One of them."""

    @property
    def is_full(self) -> bool:
        """Whether it takes no more for now."""
        ...

    @property
    def is_able(self) -> bool:
        """Whether it can do its work at all."""
        ...

    def add_services(self, server: GrpcServer) -> None:
        """Adds its services."""
        ...

    async def start(self) -> Tasks:
        """Makes it ready, and says what it does from now on."""
        ...

    async def stop(self) -> None:
        """Its tasks have ended: lets go in order."""
        ...

    def store_is_back(self, gap_s: float) -> None:
        """The store was away for so long."""
        ...

    def gauges(self) -> dict[str, float]:
        """What is to be seen of it on the page of metrics; only read, for another thread asks."""
        ...


class RefereeRole:
    """Play: tables, and the streams of those who sit there."""

    def __init__(self, common: Common) -> None:
        config, store = common.config, common.store
        delivery = Delivery(store, config.keep_records_s)
        place = RefereeIdentity(common.name, _address(common), config.most_tables)
        self.referee = referee = Referee(place, store, common.flusher, common.lag, delivery)
        self._presence = HeartbeatSender(referee, referee.ownership, store, referee.lease)
        self._inheritance = Takeover(referee, store)
        self._common = common

    @property
    def is_full(self) -> bool:
        """See `Role`."""
        return self.referee.free_tables == 0

    @property
    def is_able(self) -> bool:
        """See `Role`. Not as long as it may not speak."""
        return self.referee.lease.holds()

    def add_services(self, server: GrpcServer) -> None:
        """See `Role`."""
        common = self._common
        server.add_play(PlayServicer(self.referee, common.authenticator, common.open_streams))

    async def start(self) -> Tasks:
        """See `Role`. The first heartbeat comes before everything: without it nothing may be said."""
        await self._presence.send_heartbeat()
        if self._common.is_alone:
            await self._inheritance.take_over_all()
        announced = _address(self._common) if self._common.config.address else ""
        return {
            **({"check address": check_announced_address(announced)} if announced else {}),
            "beat": self._presence.run_heartbeat(),
            "orders": self._presence.listen_for_orders(),
            "take jobs": self.referee.take_jobs(),
            "inherit": self._inheritance.run_takeovers(),
            "farewells": self._inheritance.listen_for_handovers(),
            "watch streams": self.referee.streams.watch_streams(),
        }

    async def stop(self) -> None:
        """See `Role`."""
        await self.referee.hand_over_matches()

    def store_is_back(self, gap_s: float) -> None:
        """See `Role`."""
        self.referee.ownership.on_store_back(gap_s)

    def gauges(self) -> dict[str, float]:
        """See `Role`."""
        referee = self.referee
        return {
            "matches_running": len(referee.tables),
            "tables_free": referee.free_tables,
            "streams_open": len(referee.streams),
            "lease_holds": float(referee.lease.is_held),
        }


class LobbyRole:
    """Attend: who is present, who waits, who is seated with whom."""

    def __init__(self, common: Common) -> None:
        seating = Seating(common.store, common.durability)
        house = house_bots() if common.config.house_bots else {}
        self.ladders = LadderHost(common.store, common.name)
        self.pairing = Pairing(common.store, seating, house, self.ladders)
        self.lobby = Lobby(common.name, common.store, self.pairing, common.lag.broke_links)
        self._common = common

    is_full = False
    is_able = True

    def add_services(self, server: GrpcServer) -> None:
        """See `Role`."""
        common = self._common
        server.add_lobby(LobbyServicer(self.lobby, common.authenticator, common.open_streams))

    async def start(self) -> Tasks:
        """See `Role`."""
        common = self._common
        tasks: Tasks = {
            "lobby beat": self.lobby.renew_attendances(),
            "lobby listen": self.lobby.listen_for_notices(),
            "lobby look after": self.lobby.look_after_changed(),
            "pairing": self.pairing.run_pairing(),
            "ladders": self.ladders.run(),
        }
        if common.config.house_bots:
            tasks["house bots"] = run_house_bots(common.store, _house_link(common), common.name)
        return tasks

    async def stop(self) -> None:
        """See `Role`. Attendances end with their streams, or with their lease."""
        await self.ladders.release_ladders()

    def store_is_back(self, gap_s: float) -> None:
        """See `Role`. Nothing of it has a clock."""

    def gauges(self) -> dict[str, float]:
        """See `Role`."""
        return {"bots_present": len(self.lobby)}


class GatewayRole:
    """All unary services, and Watch: it keeps nothing in memory."""

    def __init__(self, common: Common, wake_pairing: Callable[[], None]) -> None:
        self._common = common
        self._wake_pairing = wake_pairing

    is_full = False
    is_able = True

    def add_services(self, server: GrpcServer) -> None:
        """See `Role`."""
        common = self._common
        its_own = [bot for bots in house_bots().values() for bot in bots]
        operations = new_operations(
            common.store, common.durability, common.config.keep_records_s, self._wake_pairing, its_own
        )
        server.add_operations(operations, common.authenticator)

    async def start(self) -> Tasks:
        """See `Role`."""
        return {}

    async def stop(self) -> None:
        """See `Role`."""

    def store_is_back(self, gap_s: float) -> None:
        """See `Role`."""

    def gauges(self) -> dict[str, float]:
        """See `Role`."""
        return {}


def _address(common: Common) -> str:
    """Where bots find this referee; nothing where it is the only one, for then it is where they are already."""
    if common.config.address:
        return common.with_scheme(common.config.address)
    if common.is_alone:
        return ""
    host, _, port = common.listens_on.rpartition(":")
    return common.with_scheme(f"{socket.gethostname()}:{port}" if host in EVERYWHERE else common.listens_on)


def _house_link(common: Common) -> HouseLink:
    """The way of the house's own bots to this server, and from here to the referees of others."""
    address = common.with_scheme(address_from_here(common.listens_on))
    if common.certificate is None:
        # The operator has chosen plain text for all servers.
        return HouseLink(address, insecure=True)
    has_one_key = common.config.is_tls_auto or common.is_alone
    return HouseLink(address, tls_pin=common.certificate.identity.pin if has_one_key else None)
