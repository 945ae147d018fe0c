"""grpc.health.v1: whether the server, and each service, takes calls.

The servicer of grpcio-health-checking will not do: one watcher who does not read keeps it from telling anybody
else, and whoever sets a status, from going on; one who leaves takes the others' news away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from seatwise_server.refusal import Refusal
from seatwise_server.rpc.call_context import Context
from seatwise_server.services.stream_quota import StreamQuota

MOST_WATCHERS = 1_000

Status: TypeAlias = pb.HealthCheckResponse.ServingStatus.ValueType


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # its package has no types
    """Open to everybody. A watcher who does not read misses what changes meanwhile, and holds up nobody."""

    def __init__(self) -> None:
        self._said: dict[str, Status] = {}
        self._news = asyncio.Event()
        """That of the next change; each has its own."""
        self._watchers = StreamQuota(MOST_WATCHERS, "watch the health")

    def set_statuses(self, said: Mapping[str, Status]) -> None:
        """From now on, of each service. Only a change is news."""
        if said != self._said:
            self._said = dict(said)
            self._news.set()
            self._news = asyncio.Event()

    async def Check(self, request: pb.HealthCheckRequest, context: Context) -> pb.HealthCheckResponse:  # noqa: ARG002
        """As the protocol of health checks has it."""
        if request.service not in self._said:
            raise Refusal("NOT_FOUND", f"there is no service {request.service[:80]!r}")
        return pb.HealthCheckResponse(status=self._said[request.service])

    async def Watch(
        self,
        request: pb.HealthCheckRequest,
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.HealthCheckResponse]:
        """As the protocol of health checks has it."""
        last: Status | None = None
        with self._watchers.reserve_stream():
            while True:
                news = self._news
                status = self._said.get(request.service, pb.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != last:
                    yield pb.HealthCheckResponse(status=status)
                    last = status
                await news.wait()
