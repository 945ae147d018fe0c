"""Puts the doors together into one gRPC server."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from seatwise.v1 import (
    bot_service_pb2_grpc,
    game_service_pb2_grpc,
    lobby_service_pb2_grpc,
    match_service_pb2_grpc,
)
from seatwise_server.rpc.bots import BotDoor
from seatwise_server.rpc.games import GameDoor
from seatwise_server.rpc.guard import Guard
from seatwise_server.rpc.lobby import LobbyDoor
from seatwise_server.rpc.matches import MatchDoor
from seatwise_server.rpc.play import PlayDoor

SERVICES = (
    "seatwise.v1.LobbyService",
    "seatwise.v1.PlayService",
    "seatwise.v1.MatchService",
    "seatwise.v1.BotService",
    "seatwise.v1.GameService",
)

LARGEST_REQUEST = 256 * 1024
"""Bytes. The transport itself refuses more, with RESOURCE_EXHAUSTED."""

OPTIONS = (
    ("grpc.so_reuseport", 0),
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
    """A gRPC server with the services of the roles that run here."""

    def __init__(self) -> None:
        self.server = grpc.aio.server(interceptors=[Guard()], options=OPTIONS)
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.server)

    def add(
        self, lobby: LobbyDoor, play: PlayDoor, matches: MatchDoor, bots: BotDoor, games: GameDoor
    ) -> None:
        """Opens the doors of all roles."""
        lobby_service_pb2_grpc.add_LobbyServiceServicer_to_server(lobby, self.server)  # type: ignore[no-untyped-call]  # generated
        self.server.add_generic_rpc_handlers((play.handler(),))
        match_service_pb2_grpc.add_MatchServiceServicer_to_server(matches, self.server)  # type: ignore[no-untyped-call]  # generated
        bot_service_pb2_grpc.add_BotServiceServicer_to_server(bots, self.server)  # type: ignore[no-untyped-call]  # generated
        game_service_pb2_grpc.add_GameServiceServicer_to_server(games, self.server)  # type: ignore[no-untyped-call]  # generated

    async def set_ready(self, is_ready: bool) -> None:
        """What health says, for the server as a whole and each service."""
        serving = health_pb2.HealthCheckResponse.SERVING
        state = serving if is_ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", *SERVICES):
            await self._health.set(name, state)
