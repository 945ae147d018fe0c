"""PlayService: a stream of bytes in each direction, with one reader and one writer for each stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from seatwise_server.play import play_requests
from seatwise_server.play.play_stream import PlayStream
from seatwise_server.play.referee import Referee
from seatwise_server.rpc.call_context import Context, authorize_call
from seatwise_server.services.access import PLAY_METHOD
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.open_streams import OpenStreams
from seatwise_server.stream_reader import reading_beside

SERVICE = "seatwise.v1.PlayService"


class PlayServicer:
    """Takes raw bytes: an item that cannot be read gets an answer, and does not break the stream."""

    def __init__(self, referee: Referee, authenticator: Authenticator, open_streams: OpenStreams) -> None:
        self._referee = referee
        self._authenticator = authenticator
        self._open_streams = open_streams

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the handler for `grpc.aio.Server.add_generic_rpc_handlers`."""
        play: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self.play)
        return grpc.method_handlers_generic_handler(SERVICE, {"Play": play})

    async def play(self, raws: AsyncIterator[bytes], context: Context) -> None:
        """Serves one stream, from its first byte to its last."""
        caller = await authorize_call(self._authenticator, PLAY_METHOD, context)
        stream = PlayStream(caller.bot, self._referee.lease.holds)
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

    async def _read(self, raws: AsyncIterator[bytes], stream: PlayStream) -> None:
        """Reads until the stream ends.

        It never waits for the journal, only for room in an outbox that the bot does not read.
        """
        loop = asyncio.get_running_loop()
        async for raw in raws:
            at = loop.time()
            for count, item in enumerate(play_requests.read_items(raw), start=1):
                if stream.outbox.is_full:
                    await stream.outbox.wait_for_room()
                if stream.is_ending:  # a late item must not undo one that came on a newer stream
                    return
                self._referee.intake.dispatch_item(stream, item, at)
                if count % play_requests.ITEMS_PER_TURN == 0:
                    await asyncio.sleep(0)
