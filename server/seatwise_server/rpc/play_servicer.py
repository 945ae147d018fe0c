"""PlayService: bytes in, bytes out; one reader and one writer for each stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.referee import Referee
from seatwise_server.rpc import play_requests
from seatwise_server.rpc.call_context import Context, authorize_call
from seatwise_server.rpc.stream_reader import reading_beside
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams

SERVICE = "seatwise.v1.PlayService"
METHOD = f"/{SERVICE}/Play"
ITEMS_PER_TURN = 32
"""Items that are taken before others have their turn: a message of the smallest ones would stop them for a second."""


class PlayServicer:
    """Takes raw bytes: what cannot be read is owed an answer, not a broken stream."""

    def __init__(self, referee: Referee, authenticator: Authenticator, open_streams: OpenStreams) -> None:
        self._referee = referee
        self._authenticator = authenticator
        self._open_streams = open_streams

    def handler(self) -> grpc.GenericRpcHandler:
        """For `grpc.aio.Server.add_generic_rpc_handlers`."""
        play: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self.play)
        return grpc.method_handlers_generic_handler(SERVICE, {"Play": play})

    async def play(self, raws: AsyncIterator[bytes], context: Context) -> None:
        """One stream, from its first byte to its last."""
        caller = await authorize_call(self._authenticator, METHOD, context)
        stream = PlayStream(caller.bot, self._referee.lease.holds)
        with (
            self._open_streams.track_stream(caller, stream),
            self._referee.streams.attach_stream(stream),
            reading_beside(self._read(raws, stream), lambda: stream.end(None)) as reader,
        ):
            refusal = await stream.write_all(context.write)
            if reader.done():
                await reader  # which may have met a fault of ours
        if refusal:
            raise refusal

    async def _read(self, raws: AsyncIterator[bytes], stream: PlayStream) -> None:
        """Never waits for the journal; only for room for answers that the bot does not read."""
        loop = asyncio.get_running_loop()
        async for raw in raws:
            at = loop.time()
            for count, item in enumerate(play_requests.read_items(raw), start=1):
                if stream.outbox.is_full:
                    await stream.outbox.wait_for_room()
                if stream.is_ending:  # what comes late must not undo what came on a newer one
                    return
                self._referee.intake.dispatch_item(stream, item, at)
                if count % ITEMS_PER_TURN == 0:
                    await asyncio.sleep(0)
