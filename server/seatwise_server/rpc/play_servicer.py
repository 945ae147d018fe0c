"""PlayService: a stream of bytes in each direction, with one reader and one writer for each stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import grpc

from seatwise_server.kernel_round_trips import IS_MEASURED_HERE, PeerConnections
from seatwise_server.play import inbound
from seatwise_server.play.allowance import DistanceMeter
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.referee import Referee
from seatwise_server.rpc.error_interceptor import Context, authorize_call
from seatwise_server.services.access import PLAY_METHOD
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.services.read_budget import address_of_peer
from seatwise_server.streams import note_arrival_of_stream, reading_beside

SERVICE = "seatwise.v1.PlayService"


class PlayServicer:
    """Takes raw bytes: an item that cannot be read gets an answer, and does not break the stream."""

    def __init__(self, referee: Referee, authenticator: Authenticator, open_streams: OpenStreams) -> None:
        self._referee = referee
        self._authenticator = authenticator
        self._open_streams = open_streams
        self._connections = PeerConnections()

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler for `grpc.aio.Server.add_generic_rpc_handlers`."""
        play: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self.play)
        return grpc.method_handlers_generic_handler(SERVICE, {"Play": play})

    async def play(self, raws: AsyncIterator[bytes], context: Context) -> None:
        """Serve one stream, from its first byte to its last."""
        arrival = note_arrival_of_stream()
        caller = await authorize_call(self._authenticator, PLAY_METHOD, context)
        meter = self._meter_for(caller.bot, context.peer())
        stream = PlayStream(caller.bot, self._referee.lease.holds, meter=meter, arrival=arrival)
        with (
            self._open_streams.track_stream(caller, stream),
            self._referee.streams.attach_stream(stream),
            reading_beside(self._read(raws, stream), lambda: stream.end(None)) as reader,
        ):
            refusal = await stream.write_all(context.write)
            if reader.done():
                await reader  # raises an error of the server
        if refusal:
            raise refusal

    def _meter_for(self, bot: str, peer: str) -> DistanceMeter:
        address, port = address_of_peer(peer), peer.rpartition(":")[2]
        is_tcp = peer.startswith("ipv") and port.isdigit() and IS_MEASURED_HERE
        read = partial(self._connections.round_trip_ms, address, int(port)) if is_tcp else None
        return self._referee.meters.meter_for(bot, address, read)

    async def _read(self, raws: AsyncIterator[bytes], stream: PlayStream) -> None:
        """Read until the stream ends. It never waits for the journal, only for room in an outbox that the bot does not read."""
        loop = asyncio.get_running_loop()
        async for raw in raws:
            at = loop.time()
            for count, item in enumerate(inbound.read_items(raw), start=1):
                if stream.outbox.is_full:
                    await stream.outbox.wait_for_room()
                if stream.is_ending:  # a late item must not undo one that came on a newer stream
                    return
                self._referee.intake.dispatch_item(stream, item, at)
                if count % inbound.ITEMS_PER_TURN == 0:
                    await asyncio.sleep(0)
