"""Sends a message through this process's gRPC again and again, so that `TransportLag` knows how far it is behind.

It comes back to the event loop as a message of a bot comes to it. All servers and channels of a process share gRPC's threads. So the
echo has a server of its own, on loopback, which knows one method with a secret name: nothing is added to the port that bots reach.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import grpc
import structlog

from seatwise_server.play.match_clock import ECHO_BEAT_S, TransportLag

ATTENDED_BEAT_S = 0.25
"""The time between two echoes while no bot plays through gRPC, and any may come: then only delays of `LINK_BREAKING_S` matter."""
ECHO_RETRY_S = 1.0
"""The pause after a connection of the echo was lost."""

log = structlog.get_logger()


class GrpcEcho:
    """The echo of one process."""

    def __init__(
        self, lag: TransportLag, is_playing: Callable[[], bool], is_attended: Callable[[], bool]
    ) -> None:
        """`is_playing` says whether bots play through gRPC, `is_attended` whether they may come: otherwise nothing is sent."""
        self._lag = lag
        self._is_playing, self._is_attended = is_playing, is_attended
        self._service = secrets.token_hex(16)
        self._arrived = asyncio.Event()
        """Set when the echo is back, or will not come back."""

    async def run_echo(self) -> None:
        """Measure until cancelled. A fault of the measurement stops nothing: then no delay is known."""
        server = grpc.aio.server(options=[("grpc.max_allowed_incoming_connections", 8)])
        take: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._take)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(self._service, {"Echo": take}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            while True:
                try:
                    await self._measure(f"127.0.0.1:{port}")
                except grpc.aio.AioRpcError as error:
                    log.debug("transport_echo_failed", why=error.details())
                finally:
                    self._lag.note_lost()
                await asyncio.sleep(ECHO_RETRY_S)
        finally:
            await server.stop(None)

    async def _measure(self, target: str) -> None:
        """Send echoes as long as they are needed and their connection lasts."""
        loop = asyncio.get_running_loop()
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(f"/{self._service}/Echo")()
            call.add_done_callback(lambda _: self._arrived.set())
            attended_due = 0.0
            while not call.done():
                now = loop.time()
                if self._is_playing() or (now >= attended_due and self._is_attended()):
                    attended_due = now + ATTENDED_BEAT_S
                    self._arrived.clear()
                    self._lag.note_sent(now)
                    await call.write(b"")
                    await self._arrived.wait()
                await asyncio.sleep(ECHO_BEAT_S)

    async def _take(self, messages: AsyncIterator[bytes], _: object) -> None:
        loop = asyncio.get_running_loop()
        async for _ in messages:
            self._lag.note_returned(loop.time())
            self._arrived.set()
