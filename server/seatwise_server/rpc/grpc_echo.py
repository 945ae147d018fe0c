"""Sends a message round through this process's gRPC again and again, so that `TransportLag` knows how far it is behind.

All servers and channels of a process share gRPC's threads. So the echo has a server of its own, on loopback, which knows one
method with a secret name: nothing is added to the port that bots reach.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import grpc
import structlog

from seatwise_server.play.match_clock import ECHO_BEAT_S, TransportLag

ATTENDED_BEAT_S = 0.25
"""The time between two echoes while bots attend and none plays: then only delays of `LINK_BREAKING_S` matter."""
ECHO_RETRY_S = 1.0
"""The pause after a connection of the echo was lost."""

log = structlog.get_logger()


class GrpcEcho:
    """The echo of one process."""

    def __init__(
        self, lag: TransportLag, is_playing: Callable[[], bool], is_attended: Callable[[], bool]
    ) -> None:
        """`is_playing` says whether anybody's time runs here, `is_attended` whether bots wait: otherwise nothing is sent."""
        self._lag = lag
        self._is_playing, self._is_attended = is_playing, is_attended
        self._method = f"/{secrets.token_hex(16)}/Echo"

    async def run_echo(self) -> None:
        """Measure until cancelled. A fault of the measurement stops nothing: then no delay is known."""
        server = grpc.aio.server(options=[("grpc.max_allowed_incoming_connections", 8)])
        server.add_generic_rpc_handlers((_EchoHandler(self._method),))
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
            call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(self._method)()
            attended_due = 0.0
            while True:
                now = loop.time()
                if not (self._is_playing() or (now >= attended_due and self._is_attended())):
                    await asyncio.sleep(ECHO_BEAT_S)
                    continue
                attended_due = now + ATTENDED_BEAT_S
                self._lag.note_sent(now)
                await call.write(b"")
                if await call.read() is grpc.aio.EOF:
                    return
                self._lag.note_returned(loop.time())
                await asyncio.sleep(ECHO_BEAT_S)


class _EchoHandler(grpc.GenericRpcHandler):
    """Return what it is sent."""

    def __init__(self, method: str) -> None:
        self._method = method

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if handler_call_details.method != self._method:
            return None
        return grpc.stream_stream_rpc_method_handler(_echo)


async def _echo(messages: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
    async for message in messages:
        yield message
