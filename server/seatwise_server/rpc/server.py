"""Puts the doors together into one gRPC server."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from seatwise.v1 import (
    admin_service_pb2_grpc,
    bot_service_pb2_grpc,
    game_service_pb2_grpc,
    ladder_service_pb2_grpc,
    league_service_pb2_grpc,
    lobby_service_pb2_grpc,
    match_service_pb2_grpc,
)
from seatwise_server.rpc.admin import AdminDoor
from seatwise_server.rpc.bots import BotDoor
from seatwise_server.rpc.games import GameDoor
from seatwise_server.rpc.guard import Guard
from seatwise_server.rpc.health import HealthDoor
from seatwise_server.rpc.ladders import LadderDoor
from seatwise_server.rpc.leagues import LeagueDoor
from seatwise_server.rpc.lobby import LobbyDoor
from seatwise_server.rpc.matches import MatchDoor
from seatwise_server.rpc.play import PlayDoor

LOBBY = "seatwise.v1.LobbyService"
PLAY = "seatwise.v1.PlayService"
GATEWAY = (
    "seatwise.v1.AdminService",
    "seatwise.v1.MatchService",
    "seatwise.v1.BotService",
    "seatwise.v1.GameService",
    "seatwise.v1.LadderService",
    "seatwise.v1.LeagueService",
)
SERVICES = (LOBBY, PLAY, *GATEWAY)
HEALTH = "grpc.health.v1.Health"
LIVE = "live"
"""What health calls a process that answers at all: one that does not is to be started anew."""
ABLE = "able"
"""... and one that does its work, though it may have no free table for more."""

SILENT_MS = 10_000
"""Who has not begun to speak HTTP/2 for so long is hung up on: he holds a connection that a bot could have."""

LARGEST_REQUEST = 256 * 1024
"""Bytes. The transport itself refuses more, with RESOURCE_EXHAUSTED."""

OPTIONS = (
    ("grpc.so_reuseport", 0),
    # Nobody packs what he sends: gRPC up to some version between 1.76 and 1.85 unpacks all of it before it looks at its size.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    # Without these two, bursts of new calls are cancelled without a word.
    ("grpc.server.max_pending_requests", 20_000),
    ("grpc.server.max_pending_requests_hard_limit", 30_000),
    # A link that is half open is noticed within seconds, and bots may do the same.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.max_pings_without_data", 0),
)


class Doors:
    """A gRPC server with the services of the roles that run here; a call to any other is UNIMPLEMENTED."""

    def __init__(self, most_connections: int) -> None:
        limits = (
            ("grpc.max_allowed_incoming_connections", most_connections),
            ("grpc.server_handshake_timeout_ms", SILENT_MS),
        )
        self.server = grpc.aio.server(interceptors=[Guard()], options=OPTIONS + limits)
        self._health = HealthDoor()
        self._services: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)

    def open_lobby(self, lobby: LobbyDoor) -> None:
        """Where bots attend."""
        lobby_service_pb2_grpc.add_LobbyServiceServicer_to_server(lobby, self.server)  # type: ignore[no-untyped-call]  # generated
        self._services.append(LOBBY)

    def open_play(self, play: PlayDoor) -> None:
        """Where bots sit."""
        self.server.add_generic_rpc_handlers((play.handler(),))
        self._services.append(PLAY)

    def open_gateway(
        self,
        admin: AdminDoor,
        matches: MatchDoor,
        bots: BotDoor,
        games: GameDoor,
        ladders: LadderDoor,
        leagues: LeagueDoor,
    ) -> None:
        """All that is asked and answered once, and watching."""
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(admin, self.server)  # type: ignore[no-untyped-call]  # generated
        match_service_pb2_grpc.add_MatchServiceServicer_to_server(matches, self.server)  # type: ignore[no-untyped-call]  # generated
        bot_service_pb2_grpc.add_BotServiceServicer_to_server(bots, self.server)  # type: ignore[no-untyped-call]  # generated
        game_service_pb2_grpc.add_GameServiceServicer_to_server(games, self.server)  # type: ignore[no-untyped-call]  # generated
        ladder_service_pb2_grpc.add_LadderServiceServicer_to_server(ladders, self.server)  # type: ignore[no-untyped-call]  # generated
        league_service_pb2_grpc.add_LeagueServiceServicer_to_server(leagues, self.server)  # type: ignore[no-untyped-call]  # generated
        self._services += GATEWAY

    async def start(self) -> None:
        """Begins to answer; not yet ready, as health says."""
        reflection.enable_server_reflection((*self._services, HEALTH, reflection.SERVICE_NAME), self.server)
        self.set_ready(False)
        await self.server.start()

    def set_ready(self, is_ready: bool, *, is_full: bool = False, is_able: bool = True) -> None:
        """What health says; for the process as a whole, and for Play, a full house is not ready either."""
        said = dict.fromkeys(self._services, is_ready)
        said |= dict.fromkeys(("", PLAY) if PLAY in said else ("",), is_ready and is_able and not is_full)
        said |= {LIVE: True, ABLE: is_ready and is_able}
        self._health.say({name: _SERVING if is_so else _NOT_SERVING for name, is_so in said.items()})


_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
