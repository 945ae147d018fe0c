"""One gRPC server with all services of a process, its limits and its health."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from seatwise.v1 import lobby_service_pb2_grpc
from seatwise_server.rpc.error_interceptor import ErrorInterceptor
from seatwise_server.rpc.health_servicer import HealthServicer
from seatwise_server.rpc.lobby_servicer import LobbyServicer
from seatwise_server.rpc.play_servicer import PlayServicer
from seatwise_server.rpc.service_handlers import service_handler
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.operations import Operation

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

HANDSHAKE_TIMEOUT_MS = 10_000
"""A connection that has not begun to speak HTTP/2 by then is closed: it holds a place that a bot could have."""

MOST_PROBES = 64
"""Connections to the port for health checks."""

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


class GrpcServer:
    """A gRPC server with the services of the roles that run here; a call to any other is UNIMPLEMENTED."""

    def __init__(self, most_connections: int) -> None:
        limits = (
            ("grpc.max_allowed_incoming_connections", most_connections),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
        )
        self.server = grpc.aio.server(interceptors=[ErrorInterceptor()], options=OPTIONS + limits)
        self._servers = [self.server]
        self._health = HealthServicer()
        self._services: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)

    def add_lobby(self, lobby: LobbyServicer) -> None:
        """Serves Attend."""
        lobby_service_pb2_grpc.add_LobbyServiceServicer_to_server(lobby, self.server)  # type: ignore[no-untyped-call]  # generated
        self._services.append(LOBBY)

    def add_play(self, play: PlayServicer) -> None:
        """Serves Play."""
        self.server.add_generic_rpc_handlers((play.handler(),))
        self._services.append(PLAY)

    def add_operations(self, operations: Iterable[Operation], authenticator: Authenticator) -> None:
        """Serves every operation of the services layer."""
        by_service: dict[str, list[Operation]] = {}
        for operation in operations:
            by_service.setdefault(operation.method.split("/")[1], []).append(operation)
        for service, its in by_service.items():
            self.server.add_generic_rpc_handlers((service_handler(service, its, authenticator),))
        self._services += by_service

    def bind(self, where: str, credentials: grpc.ServerCredentials | None) -> int:
        """Listens at host:port, with TLS if there are credentials; the port, or 0 if it is not to be had."""
        try:
            if credentials is None:
                return self.server.add_insecure_port(where)
            return self.server.add_secure_port(where, credentials)
        except RuntimeError:
            return 0

    def bind_health(self, where: str) -> int:
        """Answers health checks, and nothing else, in plain text at host:port too; the port, or 0 as `bind`."""
        server = grpc.aio.server(options=(*OPTIONS, ("grpc.max_allowed_incoming_connections", MOST_PROBES)))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._servers.append(server)
        try:
            return server.add_insecure_port(where)
        except RuntimeError:
            return 0

    async def start(self) -> None:
        """Begins to answer; not yet ready, as health says."""
        reflection.enable_server_reflection((*self._services, HEALTH, reflection.SERVICE_NAME), self.server)
        self.set_ready(False)
        for server in self._servers:
            await server.start()

    async def stop(self, grace_s: float) -> None:
        """Ends what is left of open calls after that time."""
        await asyncio.gather(*(server.stop(grace_s) for server in self._servers))

    def set_ready(self, is_ready: bool, *, is_full: bool = False, is_able: bool = True) -> None:
        """What health says; for the process as a whole, and for Play, a full house is not ready either."""
        said = dict.fromkeys(self._services, is_ready)
        said |= dict.fromkeys(("", PLAY) if PLAY in said else ("",), is_ready and is_able and not is_full)
        said |= {LIVE: True, ABLE: is_ready and is_able}
        self._health.set_statuses({name: _SERVING if is_so else _NOT_SERVING for name, is_so in said.items()})


_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
