"""grpc.health.v1: whether the server, and each of its services, takes calls.

The servicer of grpcio-health-checking cannot be used. There one watcher that does not read blocks the other
watchers and the code that sets a status, and one watcher that leaves can take updates away from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from seatwise_server.limits import HEALTH_WATCHERS, Places
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.error_interceptor import Context

Status: TypeAlias = pb.HealthCheckResponse.ServingStatus.ValueType


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

    async def Check(self, request: pb.HealthCheckRequest, context: Context) -> pb.HealthCheckResponse:  # noqa: ARG002
        """Return the status of a service. Raises `Refusal` NOT_FOUND if there is no such service."""
        if request.service not in self._said:
            raise Refusal("NOT_FOUND", f"there is no service {request.service[:80]!r}")
        return pb.HealthCheckResponse(status=self._said[request.service])

    async def Watch(
        self,
        request: pb.HealthCheckRequest,
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.HealthCheckResponse]:
        """Send the status of a service, and send it again after each change."""
        last: Status | None = None
        with self._watchers.reserve_place():
            while True:
                news = self._news
                status = self._said.get(request.service, pb.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != last:
                    yield pb.HealthCheckResponse(status=status)
                    last = status
                await news.wait()
