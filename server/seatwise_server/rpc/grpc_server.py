"""One gRPC server with all services of a process, its limits and its health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from google.protobuf.descriptor import FileDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from seatwise.v1 import lobby_service_pb2_grpc
from seatwise_server.limits import HEALTH_WATCHERS, Places
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.error_interceptor import CallerAddresses, Context, ErrorInterceptor
from seatwise_server.rpc.lobby_servicer import LobbyServicer
from seatwise_server.rpc.play_servicer import PlayServicer
from seatwise_server.rpc.read_forwarder import ReadForwarder
from seatwise_server.rpc.service_handlers import service_handler
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.operations import Operation

LOBBY = "seatwise.v1.LobbyService"
PLAY = "seatwise.v1.PlayService"
_OF_GATEWAY = ("Access", "Admin", "Match", "Bot", "Owner", "Game", "Ladder", "League")
GATEWAY = tuple(f"seatwise.v1.{name}Service" for name in _OF_GATEWAY)
SERVICES = (LOBBY, PLAY, *GATEWAY)
HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1.ServerReflection"
LIVE = "live"
"""The health service name that is SERVING as long as the process answers. One that does not must be restarted."""
ABLE = "able"
"""The health service name of a process that can work, even if it has no free table for more matches."""

HANDSHAKE_TIMEOUT_MS = 10_000
"""A connection that has not begun to use HTTP/2 by then is closed: it takes a place that a bot could have."""

MOST_PROBES = 64
"""The most connections to the port for health checks."""

LARGEST_REQUEST = 256 * 1024
"""The most bytes of a request. The transport itself refuses more, with RESOURCE_EXHAUSTED."""

MOST_CALLS_PER_CONNECTION = 256
"""The most open calls and streams of one connection. A client of HTTP/2 queues further calls by itself."""

IDLE_CONNECTION_MS = 5 * 60_000
"""A connection without a call is closed after this time. A client of gRPC reconnects when it makes a call."""

SERVER_OPTIONS = (
    ("grpc.so_reuseport", 0),
    # Requests must not be compressed: gRPC up to a version between 1.76 and 1.85 unpacks a request before it
    # checks its size.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    # Without these two, gRPC cancels calls without an error when many arrive at once.
    ("grpc.server.max_pending_requests", 20_000),
    ("grpc.server.max_pending_requests_hard_limit", 30_000),
    # An attacker's call costs it 15 bytes, and this process 3 to 80 kB. Without this limit one connection made it take
    # 1 to 2 GB in 5 s, with it 20 to 120 MB.
    ("grpc.max_concurrent_streams", MOST_CALLS_PER_CONNECTION),
    # With this protection gRPC still counts calls that have ended, and resets calls of honest clients above the limit:
    # 1,749 of a burst of 2,000. Without it none is reset, and floods take no more memory.
    ("grpc.http.overload_protection", 0),
    ("grpc.max_connection_idle_ms", IDLE_CONNECTION_MS),
    # gRPC would measure the bandwidth of each connection by pings, to choose its windows. Messages of bots are far smaller than
    # the windows. Measured at 3,000 echoes a second, the server's CPU for each is a tenth lower without (96 and 87 us).
    ("grpc.http2.bdp_probe", 0),
    # The server notices a half-open connection within seconds, and allows bots to check as often.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.max_pings_without_data", 0),
)


class GrpcServer:
    """A gRPC server with the services of the roles in this process; a call to any other service is UNIMPLEMENTED."""

    def __init__(
        self,
        most_connections: int,
        forwarder: ReadForwarder | None = None,
        *,
        logs_calls: bool = True,
        proxies: Collection[str] = (),
    ) -> None:
        """Make a server that is not bound yet.

        With a forwarder, reads without a token go through it. `logs_calls` is false for a process to which calls are forwarded.
        `proxies` are addresses or networks of proxies, which say in `x-forwarded-for` who calls.
        """
        self._forwarder = forwarder
        self._addresses = CallerAddresses(proxies)
        limits = (
            ("grpc.max_allowed_incoming_connections", most_connections),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
        )
        interceptors = [ErrorInterceptor(logs_calls=logs_calls)]
        self.server = grpc.aio.server(interceptors=interceptors, options=SERVER_OPTIONS + limits)
        self._servers = [self.server]
        self._health = HealthServicer()
        self._services: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)

    def add_lobby(self, lobby: LobbyServicer) -> None:
        """Serve LobbyService, whose only method is Attend."""
        lobby_service_pb2_grpc.add_LobbyServiceServicer_to_server(lobby, self.server)  # type: ignore[no-untyped-call]  # generated
        self._services.append(LOBBY)

    def add_play(self, play: PlayServicer) -> None:
        """Serve PlayService, whose only method is Play."""
        self.server.add_generic_rpc_handlers((play.handler(),))
        self._services.append(PLAY)

    def add_operations(self, operations: Iterable[Operation], authenticator: Authenticator) -> None:
        """Serve the operations of the services layer."""
        by_service: dict[str, list[Operation]] = {}
        for operation in operations:
            by_service.setdefault(operation.method.split("/")[1], []).append(operation)
        for service, its in by_service.items():
            handler = service_handler(service, its, authenticator, self._addresses, self._forwarder)
            self.server.add_generic_rpc_handlers((handler,))
        self._services += by_service

    def bind(self, where: str, credentials: grpc.ServerCredentials | None) -> int:
        """Bind host:port, with TLS if there are credentials. Return the port, or 0 if it cannot be bound."""
        try:
            if credentials is None:
                return self.server.add_insecure_port(where)
            return self.server.add_secure_port(where, credentials)
        except RuntimeError:
            return 0

    def bind_health(self, where: str) -> int:
        """Bind a second host:port for health checks alone, in plain text. Return the port, or 0 if it cannot be bound."""
        options = (*SERVER_OPTIONS, ("grpc.max_allowed_incoming_connections", MOST_PROBES))
        server = grpc.aio.server(options=options)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._servers.append(server)
        try:
            return server.add_insecure_port(where)
        except RuntimeError:
            return 0

    async def start(self) -> None:
        """Begin to answer. The health status is not ready until `set_ready`."""
        self._add_reflection()
        self.set_ready(False)
        for server in self._servers:
            await server.start()

    def _add_reflection(self) -> None:
        """Answer reflection in its newest version and in the one before, which have the same messages."""
        versions = (REFLECTION, reflection.SERVICE_NAME)
        servicer = reflection.aio.ReflectionServicer(
            (*self._services, HEALTH, *versions), _ShownDescriptors()
        )
        handler = grpc.stream_stream_rpc_method_handler(
            servicer.ServerReflectionInfo,
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        for version in versions:
            handlers = {"ServerReflectionInfo": handler}
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(version, handlers),))

    async def stop(self, grace_s: float) -> None:
        """Stop the server. Calls that are still open after `grace_s` seconds are cancelled."""
        await asyncio.gather(*(server.stop(grace_s) for server in self._servers))

    def set_ready(self, is_ready: bool, *, is_full: bool = False, is_able: bool = True) -> None:
        """Set the health status. With full tables, Play and the process as a whole are not ready; the other services are."""
        said = dict.fromkeys(self._services, is_ready)
        said |= dict.fromkeys(("", PLAY) if PLAY in said else ("",), is_ready and is_able and not is_full)
        said |= {LIVE: True, ABLE: is_ready and is_able}
        self._health.set_statuses({name: _SERVING if is_so else _NOT_SERVING for name, is_so in said.items()})


class _ShownDescriptors:
    """The descriptors that reflection shows. Unlike those of protobuf they are found by the name of a method, too."""

    def __init__(self) -> None:
        self._known = descriptor_pool.Default()
        self._newest = descriptor_pool.DescriptorPool()
        proto = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(proto)
        written = json_format.MessageToJson(proto).replace("v1alpha", "v1")
        self._newest.Add(json_format.Parse(written, descriptor_pb2.FileDescriptorProto()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)

    def FindFileByName(self, name: str) -> FileDescriptor:
        return _first_found(name, self._known.FindFileByName, self._newest.FindFileByName)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:
        """Return the file that declares a message, an enum, a service, a method or a field. Raises KeyError."""
        return _first_found(
            symbol,
            self._known.FindFileContainingSymbol,
            lambda name: self._known.FindMethodByName(name).containing_service.file,
            self._newest.FindFileContainingSymbol,
            lambda name: self._newest.FindMethodByName(name).containing_service.file,
        )


def _first_found(name: str, *ways: Callable[[str], FileDescriptor]) -> FileDescriptor:
    for find in ways:
        with suppress(KeyError):
            return find(name)
    raise KeyError(name)


_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

# grpc.health.v1: whether the server, and each of its services, takes calls. In the servicer of grpcio-health-checking one watcher that does
# not read blocks the other watchers and the code that sets a status, and one that leaves can take updates away from the others.

Status: TypeAlias = health_pb2.HealthCheckResponse.ServingStatus.ValueType


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # its package has no types
    """The health service, without authentication. A watcher that does not read misses changes, and blocks no other."""

    def __init__(self) -> None:
        self._said: dict[str, Status] = {}
        self._news = asyncio.Event()
        """Set at the next change of the status. Each change has an event of its own."""
        self._watchers = Places(HEALTH_WATCHERS)

    def set_statuses(self, said: Mapping[str, Status]) -> None:
        """Replace the status of every service. Watchers are notified only of a change."""
        if said != self._said:
            self._said = dict(said)
            self._news.set()
            self._news = asyncio.Event()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, _context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Return the status of a service. Raises `Refusal` NOT_FOUND if there is no such service."""
        if request.service not in self._said:
            raise Refusal("NOT_FOUND", f"there is no service {request.service[:80]!r}")
        return health_pb2.HealthCheckResponse(status=self._said[request.service])

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, _context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Send the status of a service, and send it again after each change."""
        last: Status | None = None
        with self._watchers.reserve_place():
            while True:
                news = self._news
                status = self._said.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != last:
                    yield health_pb2.HealthCheckResponse(status=status)
                    last = status
                await news.wait()
