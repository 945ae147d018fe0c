"""The roles of a process: the services and tasks of each, and how it stops."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from seatwise_server.config import EVERYWHERE, Config, address_from_here
from seatwise_server.house import ALL_HOUSE, HouseLink, house_bots, run_house_bots
from seatwise_server.ladder.ladder_host import LadderHost
from seatwise_server.lobby.lobby import Lobby
from seatwise_server.lobby.pairing import Pairing
from seatwise_server.lobby.seating import Seating
from seatwise_server.play.delivery import Delivery
from seatwise_server.play.match_clock import EventLoopLag, TransportLag
from seatwise_server.play.referee import HeartbeatSender, Referee
from seatwise_server.play.seat_offers import RefereeIdentity
from seatwise_server.play.step_marker import STEP_FILE_VARIABLE, STEP_MARKER
from seatwise_server.play.takeover import Takeover
from seatwise_server.rpc.grpc_server import GrpcServer
from seatwise_server.rpc.lobby_servicer import LobbyServicer
from seatwise_server.rpc.play_servicer import PlayServicer
from seatwise_server.services.api import new_operations
from seatwise_server.services.audit_trail import AuditTrail, is_audited
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.guest_seats import GuestSeats
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.store import Flusher, OwnerLimits, Store
from seatwise_server.tls.announced_address import check_announced_address
from seatwise_server.tls.certificate_reloader import CertificateReloader
from seatwise_server.ws.bot_handlers import AttendSockets, PlaySockets, SocketAuthentication
from seatwise_server.ws.websocket_server import ATTEND_PATH, PLAY_PATH, WebSocketServer

Tasks = dict[str, Coroutine[Any, Any, None]]
"""Tasks by name; the server stops when one of them fails."""


@dataclass(frozen=True, slots=True)
class Common:
    """The objects and settings that all roles of a process share."""

    config: Config
    name: str
    """The name of the process, a new one at each start."""
    listens_on: str
    """host:port."""
    ws_listens_on: str
    """host:port for WebSockets; empty without that port."""
    certificate: CertificateReloader | None
    """With a certificate the port speaks TLS."""
    store: Store
    flusher: Flusher
    authenticator: Authenticator
    open_streams: OpenStreams
    lag: EventLoopLag
    durability: str
    is_alone: bool
    """Whether the store belongs to this process, so that no other process works on it."""

    def with_scheme(self, address: str) -> str:
        """Return the address as clients get it: with TLS it begins with https://, unless it has a scheme already."""
        return address if self.certificate is None or "://" in address else f"https://{address}"

    def as_websocket(self, address: str) -> str:
        """Return the address as ws:// or wss://; an empty one stays empty."""
        if not address or "://" in address:
            return address
        return f"{'ws' if self.certificate is None else 'wss'}://{address}"


class Role:
    """One role of a process, as the server uses it."""

    @property
    def is_full(self) -> bool:
        """Whether the role takes no more work for now."""
        return False

    @property
    def is_able(self) -> bool:
        """Whether the role can do its work at all."""
        return True

    def add_services(self, server: GrpcServer, websockets: WebSocketServer | None) -> None:
        """Add the services of the role to the server, and its paths to the WebSocket port if there is one."""
        raise NotImplementedError

    async def start(self) -> Tasks:
        """Prepare the role, and return the tasks that it needs from now on."""
        return {}

    async def stop(self) -> None:
        """Stop the role in order; its tasks have ended before."""

    def store_is_back(self, gap_s: float) -> None:
        """Handle the return of a store that was away for `gap_s` seconds."""

    def gauges(self) -> dict[str, float]:
        """Return the gauges of the role by name. Another thread calls it, so it only reads."""
        return {}


class RefereeRole(Role):
    """The referee: it owns tables, and serves the play streams of the bots that sit there."""

    def __init__(self, common: Common) -> None:
        STEP_MARKER.open_file(os.environ.get(STEP_FILE_VARIABLE, ""))
        config, store = common.config, common.store
        delivery = Delivery(store, config.keep_records_s)
        address, ws_address = _address(common), _ws_address(common)
        ws_port = 0 if address or ws_address else int(common.ws_listens_on.rpartition(":")[2] or 0)
        place = RefereeIdentity(common.name, address, config.most_tables, ws_address, ws_port, config.games)
        self.referee = referee = Referee(place, store, common.flusher, common.lag, delivery, config.proxies)
        self._heartbeats = HeartbeatSender(referee, store)
        self._takeover = Takeover(referee, store)
        self._common = common

    @property
    def is_full(self) -> bool:
        return self.referee.free_tables == 0

    @property
    def is_able(self) -> bool:
        """See `Role`. A referee without its lease cannot work."""
        return self.referee.lease.holds()

    def add_services(self, server: GrpcServer, websockets: WebSocketServer | None) -> None:
        common = self._common
        server.add_play(PlayServicer(self.referee, common.authenticator, common.open_streams))
        if websockets:
            authentication = SocketAuthentication(common.authenticator)
            websockets.add_handler(PLAY_PATH, PlaySockets(self.referee, authentication, common.open_streams))

    async def start(self) -> Tasks:
        """See `Role`.

        The first heartbeat is sent before anything else: a referee without a lease must not answer bots.
        """
        await self._heartbeats.send_heartbeat()
        if self._common.is_alone:
            await self._takeover.take_over_all()
        announced = _address(self._common) if self._common.config.address else ""
        return {
            **({"check address": check_announced_address(announced)} if announced else {}),
            "beat": self._heartbeats.run_heartbeat(),
            "orders": self._heartbeats.listen_for_orders(),
            "take jobs": self.referee.take_jobs(),
            "takeovers": self._takeover.run_takeovers(),
            "handovers": self._takeover.listen_for_handovers(),
            "watch streams": self.referee.streams.watch_streams(),
            **({"signs of life": STEP_MARKER.give_signs_of_life()} if STEP_MARKER.is_on else {}),
        }

    async def stop(self) -> None:
        await self.referee.hand_over_matches()

    def store_is_back(self, gap_s: float) -> None:
        self.referee.open_tables.on_store_back(gap_s)

    def gauges(self) -> dict[str, float]:
        referee = self.referee
        return {
            "matches_running": len(referee.tables),
            "tables_free": referee.free_tables,
            "streams_open": len(referee.streams),
            "lease_holds": float(referee.lease.is_held),
        }


class LobbyRole(Role):
    """The lobby: it knows which bots attend and wait, and seats them in matches."""

    def __init__(self, common: Common, referee: Referee | None = None) -> None:
        """`referee` is that of the same process, if there is one."""
        seating = Seating(common.store, common.durability)
        house = house_bots(common.config.house_names) if common.config.house_bots else {}
        self.ladders = LadderHost(common.store, common.name)
        limits = _owner_limits(common.config)
        self.pairing = Pairing(common.store, seating, house, self.ladders, limits)
        self.transport_lag = referee.transport_lag if referee else TransportLag(common.lag)
        """That of the process: all roles share gRPC's threads."""
        self.lobby = Lobby(common.name, common.store, self.pairing, self._has_broken_links, limits)
        self.guests: GuestSeats | None = None
        """Seats guests that come to this lobby, if there are any."""
        self._common = common

    def _has_broken_links(self) -> bool:
        now = asyncio.get_running_loop().time()
        lag = self._common.lag
        return lag.is_short or lag.broke_links() or self.transport_lag.broke_links(now)

    def add_services(self, server: GrpcServer, websockets: WebSocketServer | None) -> None:
        common = self._common
        server.add_lobby(LobbyServicer(self.lobby, common.authenticator, common.open_streams))
        if websockets:
            admit_guest = self.guests.admit_guest if self.guests else None
            authentication = SocketAuthentication(common.authenticator, admit_guest)
            handler = AttendSockets(self.lobby, authentication, common.open_streams)
            websockets.add_handler(ATTEND_PATH, handler)

    async def start(self) -> Tasks:
        common = self._common
        if self.guests:
            await common.store.access_tokens.read_ticket_key()  # so that no guest is the first to need it
        tasks: Tasks = {
            "lobby beat": self.lobby.renew_attendances(),
            "lobby listen": self.lobby.listen_for_notices(),
            "lobby look after": self.lobby.look_after_changed(),
            "pairing": self.pairing.run_pairing(),
            "ladders": self.ladders.run(),
        }
        if common.config.house_bots:
            tasks["house bots"] = run_house_bots(
                common.store, link_of_bots(common), common.name, common.config.house_names
            )
        return tasks

    async def stop(self) -> None:
        """See `Role`. Attendances end with their streams, or when their lease is over."""
        await self.ladders.release_ladders()

    def gauges(self) -> dict[str, float]:
        return {"bots_present": len(self.lobby)}


def _owner_limits(config: Config) -> OwnerLimits:
    return OwnerLimits(config.owner_matches_at_once, config.owner_matches_a_day, config.owner_watches)


class GatewayRole(Role):
    """The gateway: all unary methods and the streams of spectators. It keeps no state in memory."""

    def __init__(self, common: Common, wake_pairing: Callable[[], None]) -> None:
        self._common = common
        trail = AuditTrail(common.store.audit)
        self.operations = new_operations(
            common.store,
            common.config,
            common.durability,
            ALL_HOUSE,
            _owner_limits(common.config),
            trail,
            common.open_streams,
            wake_pairing,
            asyncio.get_running_loop().time,
        )

        async def write_refusal(method: str, name: str, peer: str, reason: str) -> None:
            if is_audited(method):
                await trail.write_refusal(method, name, peer, reason)

        common.authenticator.on_refusal = write_refusal

    def add_services(self, server: GrpcServer, websockets: WebSocketServer | None) -> None:  # noqa: ARG002
        server.add_operations(self.operations, self._common.authenticator)


def _address(common: Common) -> str:
    """Return the address at which bots reach this referee.

    It is empty if this is the only referee: then bots are connected to it already.
    """
    if common.config.address:
        return common.with_scheme(common.config.address)
    return "" if common.is_alone else common.with_scheme(_address_of_host(common.listens_on))


def _ws_address(common: Common) -> str:
    """Return the address at which bots reach this referee by WebSocket; empty if it is the only one, or has no such port."""
    config = common.config
    if config.ws_address or not common.ws_listens_on:
        return common.as_websocket(config.ws_address)
    if config.address:
        host = config.address.rpartition("://")[2].rpartition(":")[0]
        return common.as_websocket(f"{host}:{common.ws_listens_on.rpartition(':')[2]}")
    return "" if common.is_alone else common.as_websocket(_address_of_host(common.ws_listens_on))


def _address_of_host(listens_on: str) -> str:
    """Return the address for clients on other machines: with this machine's name if it listens on all addresses."""
    host, _, port = listens_on.rpartition(":")
    return f"{socket.gethostname()}:{port}" if host in EVERYWHERE else listens_on


def link_of_bots(common: Common) -> HouseLink:
    """Return how this server's own bots, and bots over HTTP, reach it, and through it the referees of other processes."""
    address = common.with_scheme(address_from_here(common.listens_on))
    if common.certificate is None:
        # The operator has chosen plain text for all servers.
        return HouseLink(address, insecure=True)
    has_one_key = common.config.is_tls_auto or common.is_alone
    return HouseLink(address, tls_pin=common.certificate.identity.pin if has_one_key else None)
